"""A search for a program of a model ends after a number of nodes, and the first error says why there is none."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

from landbridge.errors import CompileError, UnsupportedOperatorError
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.frontend.programs import Chosen, Imported, each_program
from landbridge.frontend.wanted_inputs import WantedInput
from landbridge.ir.budget import SearchBudget, SearchEndedError
from landbridge.ir.types import shape_of
from landbridge.sizes.printing import written
from landbridge.sizes.size import Extent, Size
from landbridge.targets import Target


def _parsed(text: str) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')


def _nested_loops(depth: int) -> str:
    """Returns nested loops in which the carried value of the innermost one grows: each body is a program."""

    def inner(left: int, carried: str) -> tuple[str, str]:
        if not left:
            return f"w0 = Concat<axis = 0>({carried}, {carried})", "w0"
        body, result = inner(left - 1, f"s{left}")
        formals = f"int64 i{left}, bool c{left}, float[a, 4] s{left}"
        outputs = f"bool d{left}, float[b, 4] {result}"
        nodes = f"d{left} = Identity(c{left}) {body}"
        return (
            f"w{left} = Loop(trip, yes, {carried}) <body = b{left}({formals}) => ({outputs}) {{ {nodes} }}>",
            f"w{left}",
        )

    body, result = inner(depth, "x")
    return f"g (float[n, 4] x, int64 trip, bool yes) => (float[p, 4] {result}) {{ {body} }}"


def _dimensions(count: int, end: str = "") -> str:
    """Returns a graph whose ``count`` dimensions are each compared with 1; ``end``: more nodes, which make ``bad``."""
    inputs = ", ".join(f"float[1, n{i}, 4] x{i}" for i in range(count))
    nodes = " ".join(f"a{i} = Squeeze(x{i}) r{i} = Relu(a{i})" for i in range(count))
    outputs = ", ".join([*(f"float[k{i}, 4] r{i}" for i in range(count)), *(["float[q, 2] bad"] if end else [])])
    return f"g ({inputs}) => ({outputs}) {{ {nodes} {end} }}"


IMPOSSIBLE = """
    from = Constant<value_ints = [3, 5]>()
    to = Constant<value_ints = [7, 2]>()
    z = ConstantOfShape(from)
    bad = Reshape(z, to)
"""


def test_a_budget_counts_walks_and_ends() -> None:
    budget = SearchBudget.for_model(100)
    walks = 0
    while budget.spent <= budget.limit:
        budget.begin_walk()
        budget.end_walk(100)
        walks += 1
    assert 7 <= walks < 200
    with pytest.raises(SearchEndedError, match="state what it searches"):
        budget.begin_walk()


def test_programs_in_programs_are_searched_within_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []
    end_walk = SearchBudget.end_walk

    def counted(budget: SearchBudget, nodes: int) -> None:
        walks.append(nodes)
        end_walk(budget, nodes)

    monkeypatch.setattr(SearchBudget, "end_walk", counted)
    request = ImportRequest(_parsed(_nested_loops(9)), (Target("llvm"),), dimensions={})
    with pytest.raises(UnsupportedOperatorError, match="Loop node 'w9'"):
        import_onnx(request)
    assert 100 < len(walks) < 2 * 10_000 // 16


def test_a_search_that_is_a_part_of_another_takes_what_that_has_left() -> None:
    request = ImportRequest(_parsed(_dimensions(1)), (Target("llvm"),), dimensions={}, search=SearchBudget(10, 11))
    with pytest.raises(SearchEndedError):
        import_onnx(request)


def test_no_extent_is_longer_than_can_be_written() -> None:
    """Nine slices with bounds that inputs give would have extents of 10^8 terms: another way is taken before that."""
    bounds = ", ".join(f"int64[1] b{i}, int64[1] e{i}" for i in range(9))
    slices = " ".join(f"r{i + 1} = Slice(r{i}, b{i}, e{i}, axis)" for i in range(9))
    nodes = f"r0 = Relu(x) {slices} y = Relu(r9)"
    text = f"g (float[n, 4] x, {bounds}) => (float[q, 4] y) <int64[1] axis = {{0}}> {{ {nodes} }}"
    found = import_onnx(ImportRequest(_parsed(text), (Target("llvm"),), dimensions={}))
    extents: list[Extent] = [
        e for op in found.module.main.walk() for result in op.results for e in shape_of(result.type)
    ]
    assert max(written(e.terms) for e in extents if isinstance(e, Size)) < 1 << 18


def test_many_dimensions_are_decided_in_one_walk() -> None:
    request = ImportRequest(_parsed(_dimensions(40)), (Target("llvm"),), dimensions={})
    assert list(import_onnx(request).walks) == [""]


@pytest.mark.parametrize("count", [3, 20])
def test_ranges_in_vain_end_soon_and_the_cause_is_shown(count: int) -> None:
    request = ImportRequest(_parsed(_dimensions(count, IMPOSSIBLE)), (Target("llvm"),), dimensions={})
    with pytest.raises(CompileError, match=r"^Reshape node 'bad'"):
        import_onnx(request)


def test_values_that_choose_programs_are_not_tried_one_after_another_where_the_model_is_large() -> None:
    wanted = UnsupportedOperatorError("axes decide")
    wanted.needed = {"axes": WantedInput("axes", 2, -4, 3, chosen=True)}
    search, tried = SearchBudget(1_000), []
    found = import_onnx(ImportRequest(_parsed(_dimensions(1)), (Target("llvm"),), dimensions={}))

    def make(chosen: Chosen, hosts: bool) -> Imported:
        if not chosen:
            raise wanted
        tried.append(chosen)
        search.end_walk(100)
        return found

    with pytest.raises(UnsupportedOperatorError, match="fewer in a large model: fix it by constants="):
        each_program(make, search)
    assert len(tried) == 1
