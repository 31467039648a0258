"""Loops that stay loops: right against onnxruntime for any number of trips, and compiled once for all of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, helper
from onnx.helper import make_node

import landbridge as lb
from landbridge.errors import UnsupportedOperatorError
from landbridge.executable.instructions import Call, HostCall, If, Loop, flattened
from landbridge.executable.parts import CodeImage
from landbridge.frontend.onnx.rolled import UNFOLDED_NODES
from landbridge.ir.constants import fill_missing_constants
from landbridge.ir.module import IRModule
from landbridge.ir.verifier import verify
from landbridge.plan_chart.of_executable import arenas_of_executable
from landbridge.targets import Target
from landbridge.vm.trace import trace_run
from tests.frontend.loop_models import WIDTH, Array, body, model, nested, recurrence, steps, vectors
from tests.frontend.models import BOOL, INT64, imported, run, value


def check(proto: ModelProto, feeds: Mapping[str, Array], target: str = "llvm") -> lb.Executable:
    """Compile ``proto`` and run it twice on ``feeds``; the outputs are those of onnxruntime."""
    executable = lb.compile(proto, target=target)
    agree(lb.Session(executable), proto, feeds)
    return executable


def agree(session: lb.Session, proto: ModelProto, feeds: Mapping[str, Array]) -> None:
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, dict(feeds))
    for _ in range(2):  # a run leaves nothing behind that the next one would meet
        for found, reference in zip(session(feeds).values(), expected, strict=True):
            # A step is a matrix product of 5 terms: a few ulp, which tanh and the factor of a half do not let grow.
            np.testing.assert_allclose(np.asarray(found), reference, rtol=1e-5, atol=1e-5)


def kinds(executable: lb.Executable) -> list[type]:
    return [type(each) for each in flattened(executable.main.instructions)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("trips", [1, 2, 3, 100])
def test_a_scan_of_a_known_number_of_steps(trips, target):
    executable = check(recurrence(trips), steps(trips), target)
    assert (Loop in kinds(executable)) == (trips * 7 > UNFOLDED_NODES)


@pytest.mark.parametrize(("axis", "back", "row_axis", "row_back"), [(1, 1, 2, 0), (2, 0, 1, 1), (0, 1, 0, 1)])
def test_a_scan_along_other_axes_and_backwards(axis, back, row_axis, row_back):
    assert Loop in kinds(check(recurrence(50, axis, back, row_axis, row_back), steps(50, axis)))


def test_a_scan_of_an_open_number_of_steps_is_one_program():
    proto = recurrence("T", back=1)
    session = lb.Session(lb.compile(proto))
    for trips in (1, 2, 30, 7, 1):
        agree(session, proto, steps(trips))


def test_what_is_compiled_does_not_depend_on_the_trips():
    few, many = (lb.compile(recurrence(trips)) for trips in (50, 5000))
    assert kinds(few) == kinds(many)
    code = [executable.modules[0].image for executable in (few, many)]
    assert all(isinstance(image, CodeImage) for image in code)
    assert len({image.code for image in code if isinstance(image, CodeImage)}) == 1


GATHERED = [
    make_node("Gather", ["table", "i"], ["e"], axis=0),
    make_node("Mul", ["s", "half"], ["s1"]),
    make_node("Add", ["s1", "e"], ["s2"]),
    make_node("Relu", ["s2"], ["r"]),
]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_loop_whose_body_reads_the_number_of_the_trip(target):
    results = [value("s2", [WIDTH]), value("r", [WIDTH])]
    loop = make_node("Loop", ["n", "", "x"], ["y", "rows"], body=body(GATHERED, "s", results))
    inputs = [value("x", [WIDTH]), value("table", [60, WIDTH])]
    proto = model([loop], inputs, [value("y", [WIDTH]), value("rows", [60, WIDTH])], n=np.int64(60))
    assert Loop in kinds(check(proto, {"x": vectors(0), "table": vectors(1, 60)}, target))


@pytest.mark.sample(6)
@pytest.mark.parametrize("trips", [-1, 0, 1, 2, 70])
@pytest.mark.parametrize("computed", [False, True])
def test_a_trip_count_that_a_run_says(trips, computed):
    halved = body([make_node("Mul", ["s", "half"], ["t"])], "s", [value("t", [WIDTH])])
    nodes = [make_node("Loop", ["m" if computed else "n", "", "x"], ["y"], body=halved)]
    if computed:
        nodes.insert(0, make_node("Add", ["n", "none"], ["m"]))
    proto = model(nodes, [value("x", [WIDTH]), value("n", [], INT64)], [value("y", [WIDTH])])
    assert Loop in kinds(check(proto, {"x": vectors(0), "n": np.asarray(trips, np.int64)}))


@pytest.mark.sample(5)
@pytest.mark.parametrize("go", [True, False, None])
@pytest.mark.parametrize("most", [None, 3, 100])
def test_a_loop_that_its_condition_ends(go, most):
    """Doubled until the largest element is over 1000: the tenth trip or so."""
    until = [
        make_node("Add", ["s", "s"], ["t"]),
        make_node("ReduceMax", ["t"], ["top"], keepdims=0),
        make_node("Less", ["top", "limit"], ["on"]),
    ]
    grown = body(until, "s", [value("on", [], BOOL), value("t", [WIDTH])])
    first = "" if go is None else "first"
    loop = make_node("Loop", ["" if most is None else "n", first, "x"], ["y"], body=grown)
    inputs = [value("x", [WIDTH]), *([value("first", [], BOOL)] if first else [])]
    constants = {} if most is None else {"n": np.int64(most)}
    proto = model([loop], inputs, [value("y", [WIDTH])], **constants)
    feeds = {"x": np.abs(vectors(0)) + 1} | ({"first": np.asarray(go)} if first else {})
    assert Loop in kinds(check(proto, feeds))


def test_carried_values_that_change_places():
    """What one carries on is what another was given, so that none may be written before all are read."""
    nodes = [make_node("Identity", ["q"], ["p2"]), make_node("Identity", ["p"], ["q2"]), make_node("Add", "pq", ["z2"])]
    results = [value(name, [WIDTH]) for name in ("p2", "q2", "z2", "p")]
    for trips in (151, 152):
        loop = make_node("Loop", ["n", "", "x", "w0", "x"], ["a", "b", "c", "r"], body=body(nodes, "pqz", results))
        outputs = [*(value(name, [WIDTH]) for name in "abc"), value("r", [trips, WIDTH])]
        proto = model([loop], [value("x", [WIDTH]), value("w0", [WIDTH])], outputs, n=np.int64(trips))
        assert Loop in kinds(check(proto, {"x": vectors(0), "w0": vectors(1)}))


def test_what_is_carried_is_not_written_before_its_last_reader():
    """The next value is there before a later node reads the one that the trip was given, and a row is of that one."""
    nodes = [make_node("Mul", ["s", "half"], ["t"]), make_node("MatMul", ["t", "w"], ["u"])]
    nodes += [make_node("Add", "su", "v")]
    results = [value("t", [WIDTH]), value("v", [WIDTH]), value("s", [WIDTH])]
    loop = make_node("Loop", ["n", "", "x"], ["a", "v", "r"], body=body(nodes, "s", results))
    outputs = [value("a", [WIDTH]), value("v", [90, WIDTH]), value("r", [90, WIDTH])]
    assert Loop in kinds(check(model([loop], [value("x", [WIDTH])], outputs, n=np.int64(90)), {"x": vectors(0)}))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_loops_and_branches_in_a_loop(target):
    found = kinds(check(nested(), {"x": vectors(0), "table": vectors(1, 40)}, target))
    assert (found.count(Loop), found.count(If)) == (2, 1)


def test_a_scan_over_what_a_scan_around_it_scans():
    """Slices of slices: the rows of a matrix of each trip."""
    inner = helper.make_graph(
        [
            make_node("Mul", ["t", "half"], ["t1"]),
            make_node("Add", ["t1", "row"], ["t2"]),
            make_node("Relu", ["t2"], ["t3"]),
        ],
        "inner",
        [value("t", [WIDTH]), value("row", [WIDTH])],
        [value("t2", [WIDTH]), value("t3", [WIDTH])],
    )
    outer = helper.make_graph(
        [make_node("Scan", ["s", "matrix"], ["s2", "made"], body=inner, num_scan_inputs=1, scan_input_directions=[1])],
        "outer",
        [value("s", [WIDTH]), value("matrix", [90, WIDTH])],
        [value("s2", [WIDTH]), value("made", [90, WIDTH])],
    )
    scan = make_node("Scan", ["x", "xs"], ["y", "ys"], body=outer, num_scan_inputs=1, scan_output_directions=[1])
    inputs = [value("x", [WIDTH]), value("xs", [40, 90, WIDTH])]
    proto = model([scan], inputs, [value("y", [WIDTH]), value("ys", [40, 90, WIDTH])])
    assert kinds(check(proto, {"x": vectors(0), "xs": vectors(1, 40, 90)})).count(Loop) == 2


def test_a_function_of_the_host_in_a_loop():
    nodes = [
        make_node("Det", ["m"], ["d"]),
        make_node("Mul", ["d", "half"], ["d1"]),
        make_node("Add", ["s", "d1"], ["t"]),
    ]
    step = helper.make_graph(
        nodes, "step", [value("s", [WIDTH]), value("m", [3, 3])], [value("t", [WIDTH]), value("d1", [])]
    )
    scan = make_node("Scan", ["x", "ms"], ["y", "ds"], body=step, num_scan_inputs=1)
    inputs = [value("x", [WIDTH]), value("ms", [80, 3, 3])]
    proto = model([scan], inputs, [value("y", [WIDTH]), value("ds", [80])])
    feeds = {"x": vectors(0), "ms": np.random.default_rng(0).standard_normal((80, 3, 3)).astype(np.float32)}
    with pytest.warns(lb.errors.FallbackWarning):
        executable = lb.compile(proto)
    assert {Loop, HostCall} <= set(kinds(executable))
    agree(lb.Session(executable), proto, feeds)


@pytest.mark.parametrize("computed", [False, True])
def test_as_many_rows_as_a_count_says_that_is_an_input_or_computed(computed):
    grown = body([make_node("Mul", ["s", "half"], ["t"])], "s", [value("t", [WIDTH]), value("t", [WIDTH])])
    grown.node.append(make_node("Relu", ["t"], ["r"]))
    grown.output[2].name = "r"
    nodes = [make_node("Loop", ["m" if computed else "n", "", "x"], ["y", "rows"], name="grow", body=grown)]
    if computed:
        nodes = [
            make_node("ReduceSum", ["n"], ["sum"], keepdims=0),
            make_node("Cast", ["sum"], ["m"], to=INT64),
            *nodes,
        ]
    count = value("n", [2]) if computed else value("n", [], INT64)
    proto = model(nodes, [value("x", [WIDTH]), count], [value("y", [WIDTH]), value("rows", ["N", WIDTH])])
    session = lb.Session(lb.compile(proto))
    for trips in (1, 2, 70):
        output = np.asarray([trips - 1, 1], np.float32) if computed else np.asarray(trips, np.int64)
        agree(session, proto, {"x": vectors(0), "n": output})


def test_what_no_trip_changes_is_computed_once():
    """The transpose of a weight that the model is given stands before the loop."""
    nodes = [
        make_node("Transpose", ["m"], ["turned"]),
        make_node("MatMul", ["s", "turned"], ["s1"]),
        make_node("Tanh", ["s1"], ["t"]),
    ]
    loop = make_node("Loop", ["n", "", "x"], ["y"], body=body(nodes, "s", [value("t", [WIDTH])]))
    proto = model([loop], [value("x", [WIDTH]), value("m", [WIDTH, WIDTH])], [value("y", [WIDTH])], n=np.int64(100))
    executable = check(proto, {"x": vectors(0), "m": vectors(1, WIDTH) / 4})
    (found,) = (each for each in executable.main.instructions if isinstance(each, Loop))
    assert not any("transpose" in each.function for each in found.body if isinstance(each, Call))


def test_a_shape_that_a_loop_counts_has_it_unfolded():
    nodes = [make_node("Mul", ["s", "half"], ["t"]), make_node("Add", ["k", "one"], ["k2"])]
    counted = body(nodes, "sk", [value("t", [WIDTH]), value("k2", [], INT64)])
    counted.input[3].CopyFrom(value("k", [], INT64))
    graph = [
        make_node("Loop", ["n", "", "x", "none"], ["y", "last"], body=counted),
        make_node("Div", ["last", "ten"], ["rows"]),
        make_node("Unsqueeze", ["rows", "front"], ["rows1"]),
        make_node("Concat", ["rows1", "width"], ["wide"], axis=0),
        make_node("Expand", ["y", "wide"], ["z"]),
    ]
    constants = {"n": np.int64(100), "ten": np.int64(10), "width": np.asarray([WIDTH]), "front": np.asarray([0])}
    proto = model(graph, [value("x", [WIDTH])], [value("z", [10, WIDTH])], **constants)
    assert Loop not in kinds(check(proto, {"x": vectors(0)}))


def test_rows_whose_number_the_data_decide():
    nodes = [make_node("Add", ["s", "s"], ["t"]), make_node("ReduceMax", ["t"], ["top"], keepdims=0)]
    nodes += [make_node("Less", ["top", "limit"], ["on"])]
    grown = body(nodes, "s", [value("on", [], BOOL), value("t", [WIDTH]), value("t", [WIDTH])])
    loop = make_node("Loop", ["", "", "x"], ["y", "rows"], name="grow", body=grown)
    proto = model([loop], [value("x", [WIDTH])], [value("y", [WIDTH]), value("rows", ["N", WIDTH])])
    assert Loop not in kinds(check(proto, {"x": abs(vectors(0))}))


def test_a_body_that_cannot_be_one_for_all_trips_is_unfolded():
    """The state grows by an element a trip."""
    nodes = [make_node("Concat", ["s", "x"], ["t"], axis=0), make_node("Relu", ["t"], ["u"])]
    grown = body(nodes, "s", [value("u", ["N"])])
    loop = make_node("Loop", ["n", "", "x"], ["y"], body=grown)
    proto = model([loop], [value("x", [WIDTH])], [value("y", [51 * WIDTH])], n=np.int64(50))
    assert Loop not in kinds(check(proto, {"x": vectors(0)}))


def test_the_interpreter_of_the_ir_agrees():
    """The graph alone, before any pass: what the body says, and what the operation means."""
    for proto, feeds in (
        (recurrence(50, 1, 1, 2, 1), steps(50, 1)),
        (nested(), {"x": vectors(0), "table": vectors(1, 40)}),
    ):
        expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
        for found, reference in zip(run(proto, **feeds), expected, strict=True):
            np.testing.assert_allclose(found, reference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{"sanitize": True}, {"mutable": ["w"]}, {"check_indices": True}])
def test_what_else_a_compile_does(options):
    """Checks of accesses are host functions in the body; a weight that may be replaced is not folded."""
    proto = recurrence(60)
    executable = lb.compile(proto, **options)
    assert Loop in kinds(executable)
    agree(lb.Session(executable), proto, steps(60))


def test_printed_and_parsed_it_is_the_same_program(tmp_path):
    lb.compile(nested(), dump=tmp_path)
    for file in sorted(tmp_path.glob("*.mlir"))[:-1]:
        text = file.read_text()
        module = IRModule.parse(text, (Target("llvm"),))
        fill_missing_constants(module)
        verify(module)
        assert module.print() == text, file.name


def test_rows_and_carried_values_are_written_in_place():
    """Of what a trip of the recurrence makes, the value that is both carried and a row is copied; the other carried one
    is written onto what it is computed from."""
    (loop,) = (each for each in lb.compile(recurrence(100)).main.instructions if isinstance(each, Loop))
    calls = [each for each in loop.body if isinstance(each, Call)]
    assert [each.moves_bytes for each in calls if each.moves_bytes] == [40]


def test_a_trace_has_each_trip():
    executable = lb.compile(recurrence(60))
    inputs = {name: lb.asarray(array) for name, array in steps(60).items()}
    (loop,) = (each for each in executable.main.instructions if isinstance(each, Loop))
    before, inside = (
        sum(isinstance(each, Call) for each in within) for within in (executable.main.instructions, loop.body)
    )
    assert len(trace_run(executable, "cpu:0", inputs)) == before + 60 * inside


def test_the_pictures_of_a_plan_have_the_loop():
    (arena,) = arenas_of_executable(lb.compile(nested()))
    names = [step.name for step in arena.steps]
    assert names.count("outer end") == 1
    end = names.index("outer end")
    assert all(block.end <= end + 1 for block in arena.blocks)


def test_what_grows_for_any_number_of_trips_is_named():
    grows = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
    g (int64 n, float[1,2] x) => (float[k,2] y) {
        t = Constant<value = bool {1}>()
        y = Loop (n, t, x) <body = b (int64 i, bool c, float[a,2] s) => (bool d, float[e,2] r) {
            d = Identity(c)
            r = Concat<axis = 0>(s, x)
        }>
    }""")
    with pytest.raises(
        UnsupportedOperatorError,
        match=r"trip count is computed .* y: an iteration is given float32\[1, 2\] and carries on float32\[2, 2\]",
    ):
        imported(grows)  # with no dimensions that a run decides
