from landbridge.device.api import NdSpace as NdSpace
from landbridge.device.api import Region as Region
from landbridge.device.api import Space as Space
from landbridge.device.import_source import BusAddress as BusAddress
from landbridge.device.import_source import DmaBuf as DmaBuf
from landbridge.device.import_source import HostPointer as HostPointer
from landbridge.device.import_source import ImportSource as ImportSource
