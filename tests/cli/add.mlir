builtin.module {
  func.func @add_1(%0: memref<4x8xf32, "global">, %1: memref<4x8xf32, "global">, %2: memref<4x8xf32, "global">) attributes {lb.prim} {
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0, %1 : memref<4x8xf32, "global">, memref<4x8xf32, "global">) outs(%2 : memref<4x8xf32, "global">) attrs =  {lb.extents = [4 : i64, 8 : i64]} {
    ^bb0(%3: f32, %4: f32, %5: f32):
      %6 = arith.addf %3, %4 fastmath<contract> : f32
      linalg.yield %6 : f32
    }
    func.return
  }
  func.func @main(%0: tensor<4x8xf32, #lb.vdevice<0, "global">>, %1: tensor<4x8xf32, #lb.vdevice<0, "global">>) -> tensor<4x8xf32, #lb.vdevice<0, "global">> {
    %2 = bufferization.alloc_tensor() : tensor<4x8xf32, #lb.vdevice<0, "global">>
    %3 = "lb.call"(%0, %1, %2) {callee = @add_1, node = "add", operandSegmentSizes = array<i32: 2, 1>} : (tensor<4x8xf32, #lb.vdevice<0, "global">>, tensor<4x8xf32, #lb.vdevice<0, "global">>, tensor<4x8xf32, #lb.vdevice<0, "global">>) -> tensor<4x8xf32, #lb.vdevice<0, "global">>
    func.return %3 : tensor<4x8xf32, #lb.vdevice<0, "global">>
  }
}
