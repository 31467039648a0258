"""Appending calls: which call of a body copies what is carried to the beginning of what it becomes."""

from __future__ import annotations

import pytest
from onnx import parser

import landbridge as lb
from landbridge.executable.executable import Executable
from landbridge.executable.instance import dimensions
from landbridge.executable.instructions import Call
from landbridge.executable.segments import segments_of
from landbridge.session.given_parameters import GivenParameters
from landbridge.session.open_executor import OpenExecutor
from landbridge.session.segment_steps import ProgramPiece
from landbridge.session.session_options import BindOptions
from landbridge.vm.appending_calls import appending_call
from landbridge.vm.entry import Entry


def compiled(body: str, shape: str = "float[K,2]") -> Executable:
    return lb.compile(
        parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]> g ({shape} x, int64 n) => ({shape} y) {{
        go = Constant<value = bool {{1}}>() rows = Constant<value = int64[1] {{0}}>()
        last = Constant<value = int64[1] {{1}}>()
        y = Loop(n, go, x) <body = b (int64 i, bool c, {shape} a) => (bool d, {shape} e)
        {{ d = Identity(c) m = ReduceMean<keepdims=1>(a, rows) {body} }}> }}""")
    )


def appended(executable: Executable) -> tuple[list[int], str, int | None]:
    """What is appended to by the file; the function of all trips but the first; its call, where it is ``a``'s."""
    (call,) = [call for segment in segments_of(executable) for call in segment.calls]
    (segment,) = call.bodies[-1].segments
    declared: dict[str, list[int]] = call.attributes["attributes"]  # type: ignore[assignment]
    options = BindOptions("cpu", num_threads=1)
    piece = ProgramPiece(executable, segment.function, Entry("a test"), options, GivenParameters())
    assert isinstance(piece.executor, OpenExecutor)
    piece.executor.prepare(dict.fromkeys(dimensions(piece.function), 3))
    executor = piece.executor.instances.program_of("main").executor
    assert executor is not None
    names = [spec.name for spec in (*piece.function.inputs, *piece.function.outputs)]
    found = appending_call(piece.function, executor.program.program, names.index("a"), names.index("e"))
    return declared["appended"], segment.function, found


def test_a_concat_behind_what_is_carried_leaves_it_where_it_is() -> None:
    executable = compiled("e = Concat<axis=0>(a, m)")
    values, name, found = appended(executable)
    assert values == [0] and found is not None
    calls = [each for each in executable.functions[name].instructions if isinstance(each, Call)]
    assert calls[found].name == "e" and calls[found].moves_bytes != calls[-1].moves_bytes


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("e = Concat<axis=0>(m, a)", "float[K,2]"),  # it is put in front
        ("s = Neg(a) e = Concat<axis=0>(s, m)", "float[K,2]"),  # it is another value
        ("t = ReduceMean<keepdims=1>(a, last) e = Concat<axis=1>(a, t)", "float[2,K]"),  # behind each of several rows
    ],
)
def test_others_are_copied(body: str, shape: str) -> None:
    assert appended(compiled(body, shape))[0] == []


def test_it_is_behind_all_rows_where_there_is_one() -> None:
    body = "t = ReduceMean<keepdims=1>(a, last) e = Concat<axis=1>(a, t)"
    values, _, found = appended(compiled(body, "float[1,K]"))
    assert values == [0] and found is not None
