from landbridge.testing.conformance import DeviceConformance
from tests.devices.present import first_instance


class TestOpenCL(DeviceConformance):
    device_name = "opencl:0"

    def setup_method(self, method: object = None) -> None:
        first_instance("opencl")
        super().setup_method(method)
