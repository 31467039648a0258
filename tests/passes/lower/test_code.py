"""Index arithmetic as it is written: once where it is known, and again where it is not."""

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import FunctionType, f32
from xdsl.ir import Block, Region

from landbridge.passes.lower.code import INDEX, Code, Index


def written(build) -> func.FuncOp:
    """What ``build(code, x, y)`` writes into a function of two indices and a memref, verified: values are defined
    where they are used."""
    block = Block(arg_types=[INDEX, INDEX, memref.MemRefType(f32, [64])])
    code = Code(block)
    build(code, *block.args[:2])
    block.add_op(func.ReturnOp())
    code.finish()
    function = func.FuncOp("f", FunctionType.from_lists(list(block.arg_types), []), Region(block))
    function.verify()
    return function


def count(function: func.FuncOp, kind: type) -> int:
    return sum(isinstance(op, kind) for op in function.walk())


def use(code: Code, index: Index) -> None:
    buffer = code.entry.args[2]
    code.store(code.load(buffer, index, f32), buffer, index)


def test_an_index_is_computed_once_in_a_block_and_in_those_inside_it() -> None:
    def build(code: Code, x: Index, y: Index) -> None:
        for _ in range(2):
            use(code, code.add(code.mul(x, 8), y))
        code.loop(0, 4, 1, [], lambda i, _: [use(code, code.add(code.add(code.mul(x, 8), y), i))][:0])

    found = written(build)
    assert (count(found, arith.MuliOp), count(found, arith.AddiOp)) == (1, 2)


def test_an_index_of_a_block_is_not_known_after_it_or_beside_it() -> None:
    """``verify`` would not find a value that is used outside of its block, so the block of each is asked."""

    def build(code: Code, x: Index, y: Index) -> None:
        def inner() -> None:
            use(code, code.remainder(x, 3))

        code.when(code.inside(x, 5), inner)
        code.when(code.inside(y, 5), inner)
        code.loop(0, 4, 1, [], lambda i, _: [inner()][:0])
        code.choose(code.inside(x, 2), lambda: code.value(code.remainder(x, 3)), lambda: code.value(0))
        inner()

    found = written(build)
    made = [op for op in found.walk() if isinstance(op, arith.RemUIOp)]
    assert len({op.parent for op in made}) == len(made) == 5
    users = [(use.operation, op) for op in made for use in op.results[0].uses]
    assert all(user.parent is op.parent for user, op in users)


def test_operations_and_operands_are_told_apart() -> None:
    def build(code: Code, x: Index, y: Index) -> None:
        values = [make(x, y) for make in (code.minimum, code.maximum, code.add, code.mul)]
        values += [make(x, 3) for make in (code.quotient, code.floordiv, code.remainder)]
        values += [code.remainder(y, 3), code.remainder(x, 4), code.minimum(y, x)]
        assert len({id(v) for v in values}) == len(values) == 10

    written(build)
