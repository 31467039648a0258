"""Lowering for targets with a grid of workgroups: a PrimFunc becomes launches.

A lowered function takes the PrimFunc's memrefs, flattened, and holds ``gpu.launch`` operations, in order, whose shapes
are constants, or words of the operand of Sizes, which is then the last one. A ``memref.alloc`` outside of them is
scratch of the function; one inside them, in the scope ``"local"``, is shared by the work-items of a workgroup;
``memref.alloca`` is private to a work-item. Accesses are loads and stores of typed elements at an index, or of vectors,
so that printers of logical addressing (SPIR-V) need nothing else.
"""
