"""The device ``wasm``: kernels in WebAssembly, run by Wasmtime in this process. The host uses their memory in place."""

from __future__ import annotations

from landbridge.devices.wasm.api import WasmDeviceAPI

__all__ = ["WasmDeviceAPI"]
