"""No access is proved that some input takes out of its operand: random small kernels, run for every value in Python."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block
from xdsl.parser import Parser
from xdsl.rewriter import Rewriter

from landbridge.analysis.open_ranges import OpenRanges
from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.errors import AccessError
from landbridge.ir.kernel_attributes import set_sizes, set_task_count
from landbridge.ir.types import extents_attr
from landbridge.sizes.size import dimension

#: Sizes of W, and values that an element of the input is tried with.
SIZES = range(8, 65, 8)
WIDTH = dimension("W", SIZES[0], SIZES[-1], SIZES.step)
VALUES = (*range(-70, 200), 10**9, -(10**9))
CONSTANTS = (0, 1, 4, 7, 8, 32, 33, 40, 63, 64, 100)
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def quotient(a: int, b: int) -> int:
    """Division as ``arith.divsi`` has it: towards 0."""
    return abs(a) // b if a >= 0 else -(abs(a) // b)


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "minsi": min,
    "maxsi": max,
    "divsi": quotient,
    "remsi": lambda a, b: a - quotient(a, b) * b,
}


#: Operations in their order: a result's name and its value, a read's and its index, a condition's name and its branch.
Step = Callable[[dict[str, int]], int]
Code = list[tuple[str, "Step | Code"]]


def written(r: random.Random, values: list[str], depth: int, names: list[int]) -> tuple[str, Code]:
    """Random operations over ``values``, and the same as Python: results by name, branches, accesses as ``load``."""
    text = ""
    code: Code = []
    values = list(values)

    def made(line: str, does: Step) -> str:
        nonlocal text
        names[0] += 1
        text += f"%v{names[0]} = {line}\n"
        code.append((f"%v{names[0]}", does))
        return f"%v{names[0]}"

    def compared() -> str:
        a, b, how = r.choice(values), r.choice([*values, *(f"%c{c}" for c in CONSTANTS), "%W"]), r.choice([*COMPARE])
        return made(f"arith.cmpi {how}, {a}, {b} : index", lambda elements: COMPARE[how](elements[a], elements[b]))

    def of_size() -> str:
        b, how = f"%c{r.choice(CONSTANTS)}", r.choice([*COMPARE])
        return made(f"arith.cmpi {how}, %W, {b} : index", lambda elements: COMPARE[how](elements["%W"], elements[b]))

    def between() -> str:
        a, low, high = r.choice(values), r.choice(("%c0", "%c0", "%c1")), r.choice(("%W", "%W", "%c7", "%c8", "%c64"))
        one = made(f"arith.cmpi sge, {a}, {low} : index", lambda elements: elements[a] >= elements[low])
        two = made(f"arith.cmpi slt, {a}, {high} : index", lambda elements: elements[a] < elements[high])
        return made(f"arith.andi {one}, {two} : i1", lambda elements: elements[one] and elements[two])

    for _ in range(r.randint(2, 5)):
        match r.choice(("value", "value", "load", "if", "if", "if")):
            case "value":
                subject, a, b = r.choice([*ARITHMETIC]), r.choice([*values, "%W"]), r.choice([*values, "%W"])
                if subject in ("muli", "divsi", "remsi") or r.random() < 0.5:
                    b = r.choice([f"%c{c}" for c in CONSTANTS[1:]] + ["%W"])
                values.append(
                    made(
                        f"arith.{subject} {a}, {b} : index",
                        lambda elements, subject=subject, a=a, b=b: ARITHMETIC[subject](elements[a], elements[b]),
                    )
                )
            case "if" if depth:
                condition = r.choice((compared, of_size, between, between))()
                inner, does = written(r, values, depth - 1, names)
                text += f"scf.if {condition} {{\n{inner}}}\n"
                code.append((condition, does))
            case _:
                at = r.choice(values)
                names[0] += 1
                text += f"%l{names[0]} = memref.load %x[{at}] : memref<64xf32>\n"
                code.append((f"%l{names[0]}", lambda elements, at=at: elements[at]))
    return text, code


def outside(code: Code, values: dict[str, int]) -> Iterator[str]:
    """The reads that, run with these values, are outside an operand of ``%W`` elements."""
    for name, does in code:
        if isinstance(does, list):
            if values[name]:
                yield from outside(does, values)
        elif name.startswith("%l"):
            if not 0 <= does(values) < values["%W"]:
                yield name
        else:
            values[name] = does(values)


def proved(block: Block, ranges: OpenRanges, unreached: bool = False) -> Iterator[str]:
    """The reads that are proved to be inside such an operand, or never to be reached."""
    for op in block.ops:
        if isinstance(op, scf.IfOp):
            with ranges.where(op.cond) as reached:
                yield from proved(op.true_region.block, ranges, unreached or not reached)
        elif (
            isinstance(op, memref.LoadOp)
            and (name := op.res.name_hint or "").startswith("l")
            and (unreached or ranges.lies_within(ranges.form(op.indices[0]), 0, WIDTH - 1))
        ):
            yield f"%{name}"


def parsed(body: str) -> func.FuncOp:
    constants = "".join(f"%c{c} = arith.constant {c} : index\n" for c in CONSTANTS)
    text = f"""func.func @kernel(
        %x: memref<64xf32>, %n: memref<8xi64>, %w: memref<1xi64>, %begin: index, %end: index
      ) {{
      {constants}
      %word = memref.load %w[%c0] : memref<1xi64>
      %W = arith.index_cast %word : i64 to index
      %read = memref.load %n[%c0] : memref<8xi64>
      %i = arith.index_cast %read : i64 to index
      {body}
      func.return
    }}"""
    context = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, memref.MemRef, scf.Scf):
        context.load_dialect(dialect)
    (function,) = Parser(context, text).parse_module().body.block.ops
    assert isinstance(function, func.FuncOp)
    set_task_count(function, 8)
    set_sizes(function, [WIDTH])
    x = function.body.block.args[0]
    assert isinstance(x.type, MemRefType)
    Rewriter.replace_value_with_new_type(
        x, MemRefType.new([extents_attr([WIDTH]), x.type.element_type, x.type.layout, x.type.memory_space])
    )
    return function


def is_proved(body: str) -> bool:
    try:
        verify_accesses(parsed(body))
    except AccessError:
        return False
    return True


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 300), marks=pytest.mark.full)], ids=str)
def test_no_proved_access_leaves_its_operand(seeds: range) -> None:
    retained = 0
    for seed in seeds:
        body, code = written(random.Random(seed), ["%i"], 3, [0])
        function = parsed(body)
        block = function.body.block
        inside = set(proved(block, OpenRanges(block.args[-3], [WIDTH])))
        retained += len(inside)
        for width in SIZES:
            for value in VALUES:
                values = {"%i": value, "%W": width, **{f"%c{c}": c for c in CONSTANTS}}
                assert inside.isdisjoint(outside(code, values)), f"W={width} %i={value} {inside}\n{body}"
    assert retained > len(seeds) // 2, "nothing was proved"


GUARDED = """%a{0} = arith.cmpi sge, %i, %c0 : index
%b{0} = arith.cmpi slt, %i, {1} : index
%g{0} = arith.andi %a{0}, %b{0} : i1
scf.if %g{0} {{ %l{0} = memref.load %x[%i] : memref<64xf32> }}
"""


def test_what_was_proved_under_a_condition_ends_with_it() -> None:
    assert is_proved(GUARDED.format(0, "%W"))
    assert not is_proved(GUARDED.format(0, "%W") + GUARDED.format(1, "%c100"))
    assert not is_proved(GUARDED.format(0, "%W") + GUARDED.format(1, "%W") + GUARDED.format(2, "%c100"))


def test_a_value_first_used_under_a_condition_is_not_bounded_by_it() -> None:
    inside = "%l0 = memref.load %x[%r] : memref<64xf32>"
    guarded = f"%r = arith.remsi %i, %c8 : index\n%a = arith.cmpi sge, %i, %c0 : index\nscf.if %a {{ {inside} }}\n"
    assert not is_proved(guarded + "%l1 = memref.load %x[%r] : memref<64xf32>")


def test_a_word_at_an_index_that_is_no_constant_is_no_size() -> None:
    assert not is_proved("""scf.for %t = %c0 to %c4 step %c1 {
      %s = memref.load %w[%t] : memref<1xi64>
      %j = arith.index_cast %s : i64 to index
      %k = arith.subi %j, %c1 : index
      %l = memref.load %x[%k] : memref<64xf32>
    }""")


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        "%x[%before] : memref<64xf32>",
        "%x[%after] : memref<64xf32>",
        "%x[%far] : memref<64xf32>",
        "%n[%i] : memref<8xi64>",
    ],
)
def test_each_of_several_accesses_of_a_block_is_proved(other: str, swapped: bool) -> None:
    start = """%before = arith.subi %i, %c1 : index
    %after = arith.addi %i, %c1 : index
    %far = arith.addi %i, %W : index
    %a = arith.cmpi sge, %i, %c0 : index
    %b = arith.cmpi slt, %i, %W : index
    %g = arith.andi %a, %b : i1"""
    loads = ["%l0 = memref.load %x[%i] : memref<64xf32>", f"%l1 = memref.load {other}"]
    assert is_proved(f"{start}\nscf.if %g {{\n{loads[0]}\n}}")
    both = "\n".join(reversed(loads) if swapped else loads)
    assert not is_proved(f"{start}\nscf.if %g {{\n{both}\n}}")


def when(condition: str, at: str) -> str:
    return f"%t = arith.cmpi {condition} : index\nscf.if %t {{ %l = memref.load %x[{at}] : memref<64xf32> }}\n"


def test_conditions_between_sizes_are_known_where_they_hold() -> None:
    start = "%s = arith.subi %W, %c32 : index\n"
    assert is_proved(start + when("sge, %W, %c32", "%s"))
    assert not is_proved(start + when("sge, %W, %c8", "%s"))
    assert not is_proved("%s = arith.subi %W, %c33 : index\n" + when("sge, %W, %c32", "%s"))
    after = "%l1 = memref.load %x[%s] : memref<64xf32>"
    assert not is_proved(start + when("sge, %W, %c32", "%s") + after)


def test_a_minimum_is_either_side() -> None:
    start = "%s = arith.subi %W, %c32 : index\n%n0 = arith.maxsi %i, %c0 : index\n"
    assert is_proved(start + "%m = arith.minsi %n0, %s : index\n" + when("sge, %W, %c32", "%m"))
    assert not is_proved(start + "%m = arith.minsi %i, %s : index\n" + when("sge, %W, %c32", "%m"))
    assert not is_proved(start + "%m = arith.minsi %n0, %s : index\n" + when("sge, %W, %c8", "%m"))


def test_a_value_first_used_where_a_size_is_large_is_not_bounded_by_it() -> None:
    start = "%s = arith.subi %W, %c33 : index\n%r = arith.remsi %s, %c8 : index\n"
    after = "%l1 = memref.load %x[%r] : memref<64xf32>"
    assert is_proved(start + when("sge, %W, %c40", "%r"))
    assert not is_proved(start + when("sge, %W, %c40", "%r") + after)


def test_the_range_is_named() -> None:
    with pytest.raises(AccessError, match=r"at elements 0 to 99 by memref.load, .* it has W"):
        verify_accesses(parsed(GUARDED.format(0, "%c100")))
