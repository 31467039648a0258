from landbridge.device.api import Device as Device
