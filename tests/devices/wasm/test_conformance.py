from landbridge.testing.conformance import DeviceConformance


class TestWasm(DeviceConformance):
    device_name = "wasm:0"
