"""What a program does with its parameters: who reads them, and which are read through a copy."""

from __future__ import annotations

from landbridge.executable import instructions as ins
from landbridge.executable.parameter_uses import ParameterCopy, ParameterUse, parameter_uses
from landbridge.executable.parts import Function, TensorSpec

X, Y, W, V = 0, 1, 2, 3


def function(*instructions: ins.Instruction) -> Function:
    x, y = TensorSpec("x", (4,), "float32"), TensorSpec("y", (4,), "float32")
    parameters = (TensorSpec("w", (4,), "float32"), TensorSpec("v", (4,), "float32"))
    return Function("main", (x,), (y,), instructions, parameters)


def call(*args: int, name: str = "k", module: int = 0, vdevice: int = 0) -> ins.Call:
    return ins.Call(module, name, args, 1, name, 0, vdevice)


def tensor(dst: int, *shape: int) -> ins.AllocTensor:
    return ins.AllocTensor(dst, 9, 0, shape, "float32", "t")


STORAGE = ins.AllocStorage(9, 256, 0, 64)


def test_code_that_reads_the_memory_itself() -> None:
    view = ins.View(5, W, 0, (2, 2), "float32")
    uses = parameter_uses(function(view, call(X, 5, Y), call(X, V, Y, module=1, vdevice=2)), frozenset({1}))
    assert uses == (ParameterUse(None, True, frozenset()), ParameterUse(None, False, frozenset({2})))


def test_a_copy_that_is_made_in_advance_names_who_reads_it() -> None:
    steps = call(W, 5, name="turned"), call(5, 6, name="packed")
    prepared = STORAGE, tensor(5, 4), tensor(6, 2, 2), *steps, ins.Prepared((6,))
    later = ins.View(7, 6, 0, (4,), "float32")
    w, v = parameter_uses(function(*prepared, later, call(X, 7, V, Y, name="conv")), frozenset())
    assert w == ParameterUse(ParameterCopy("conv", "turned", "float32", (2, 2)), False, frozenset())
    assert v == ParameterUse(None, True, frozenset())


def test_a_copy_of_two_is_one_of_both() -> None:
    prepared = STORAGE, tensor(5, 4), call(W, V, 5, name="sum"), ins.Prepared((5,))
    for use in parameter_uses(function(*prepared, call(X, 5, Y, name="conv")), frozenset()):
        assert use.copy == ParameterCopy("conv", "sum", "float32", (4,))


def test_a_copy_to_other_memory() -> None:
    crossing = ins.ToVDevice(W, 5, "w to b")
    for prepared in ((ins.Prepared((5,)),), ()):
        steps = (STORAGE, tensor(5, 4), crossing, *prepared, call(X, 5, Y, name="conv", module=1))
        copy = parameter_uses(function(*steps), frozenset({1}))[0].copy
        assert copy is not None and copy.crosses and (copy.step, copy.shape) == ("w to b", (4,))
        assert copy.reader == ("conv" if prepared else "a later step")


def test_bodies_of_loops_and_branches_are_read() -> None:
    loop = ins.Loop(3, (ins.Slice(5, W, 0, 4, (1,), "float32"),), (call(X, 5, Y),))
    branch = ins.If(X, (call(V, Y, module=1, vdevice=1),), ())
    assert parameter_uses(function(loop, branch), frozenset({1})) == (
        ParameterUse(None, True, frozenset()),
        ParameterUse(None, False, frozenset({1})),
    )
    condition = ins.If(W, (), ())
    assert parameter_uses(function(condition), frozenset())[0].by_host
