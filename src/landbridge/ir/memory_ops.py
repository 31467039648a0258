"""Memory-level operations: the output of the memory planner, which the VM executes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_attr_def,
    result_def,
    var_operand_def,
)

from landbridge.ir.op_attributes import NODE
from landbridge.ir.plain_attributes import int_array, int_attr, int_of
from landbridge.ir.types import SizeAttr, VDeviceAttr
from landbridge.sizes.size import Extent


@irdl_attr_definition
class StorageType(ParametrizedAttribute, TypeAttribute):
    """The type of one allocation of one device and scope."""

    name = "lb.storage"


@irdl_op_definition
class AllocStorageOp(IRDLOperation):
    """Allocates ``nbytes`` of the memory of ``vdevice``, aligned to ``alignment``.

    In an n-D scope ``shape`` gives the extents of the space, outermost first, in elements of ``dtype``; a run may
    decide them.
    """

    name = "lb.alloc_storage"
    nbytes = attr_def(Attribute)
    alignment = attr_def(IntegerAttr)
    vdevice = attr_def(VDeviceAttr)
    shape = opt_attr_def(ArrayAttr[IntegerAttr | SizeAttr])
    dtype = opt_attr_def(StringAttr)
    result = result_def(StorageType)

    def __init__(
        self, nbytes: Extent, alignment: int, vdevice: VDeviceAttr, shape: Sequence[Extent] = (), dtype: str = "uint8"
    ) -> None:
        attributes: dict[str, Attribute] = {
            "nbytes": int_attr(nbytes),
            "alignment": IntegerAttr(alignment, i64),
            "vdevice": vdevice,
        }
        if shape:
            attributes |= {"shape": int_array(shape), "dtype": StringAttr(dtype)}
        super().__init__(result_types=[StorageType()], attributes=attributes)

    @property
    def size(self) -> int:
        """Returns the size in bytes."""
        return int_of(self.nbytes)


@irdl_op_definition
class AllocTensorOp(IRDLOperation):
    """Places a tensor at byte ``offset`` of a storage; if the storage has a shape, the offset is a number of whole
    rows."""

    name = "lb.alloc_tensor"
    offset = attr_def(Attribute)
    node = attr_def(StringAttr)
    storage = operand_def(StorageType)
    result = result_def()

    def __init__(self, storage: SSAValue, offset: Extent, ty: Attribute, node: str = "") -> None:
        attributes = {"offset": int_attr(offset), NODE: StringAttr(node)}
        Operation.__init__(self, operands=[storage], result_types=[ty], attributes=attributes)

    @property
    def first(self) -> int:
        """Returns the byte of the storage at which the tensor begins."""
        return int_of(self.offset)


@irdl_op_definition
class PreparedOp(IRDLOperation):
    """Ends the code that runs once for given parameter values: ``buffers`` retain its results for every run."""

    name = "lb.prepared"
    buffers = var_operand_def()

    def __init__(self, buffers: Sequence[SSAValue]) -> None:
        super().__init__(operands=[list(buffers)])
