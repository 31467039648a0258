"""DLPack 1.x through ctypes: exports our memory as capsules, and imports those of others. Nothing is copied.

The form is ``DLManagedTensorVersioned`` when the consumer takes it, else the unversioned form, which cannot express
read-only and is therefore refused for read-only memory.
"""

from landbridge.dlpack.consume import import_capsule as import_capsule
from landbridge.dlpack.consume import import_object as import_object
from landbridge.dlpack.elements import Elements as Elements
from landbridge.dlpack.produce import dlpack_device as dlpack_device
from landbridge.dlpack.produce import export_capsule as export_capsule
