"""The Tensor class, and the functions that make tensors.

Three verbs are never mixed: a *view* never copies and raises ZeroCopyError with the reason, a *copy* always copies, and
``asarray`` follows the array API's ``copy=None | True | False``.
"""

from landbridge.tensor.bus_memory import from_bus_address as from_bus_address
from landbridge.tensor.convert import asarray as asarray
from landbridge.tensor.convert import from_dlpack as from_dlpack
from landbridge.tensor.create import empty as empty
from landbridge.tensor.dma_buf import export_fd as export_fd
from landbridge.tensor.dma_buf import from_dma_buf as from_dma_buf
from landbridge.tensor.tensor import Tensor as Tensor
