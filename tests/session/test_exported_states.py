"""Decoders as exporters write them: states found by their names, continued in place, as onnxruntime continues them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.executable.state_growth import growths_of
from tests.cli.command_line import invoke
from tests.session.exported_decoders import CAPACITY, FORMS, HEADS, LAYERS, SIZE, WORDS, Form

Array = np.ndarray[Any, Any]


class Theirs:
    """onnxruntime, to which what it returned is given again."""

    def __init__(self, form: Form, state: lb.State) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        content = form.model().SerializeToString()
        self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self.pairs, self.grows = state.pairs, form.grows
        shape = (form.batch, HEADS, 0 if form.grows else CAPACITY, SIZE)
        self.past: dict[str, Array] = {name: np.zeros(shape, np.float32) for name in self.pairs.values()}

    def step(self, feeds: dict[str, Array]) -> Array:
        names = [each.name for each in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(names, feeds | self.past), strict=True))
        self.past = {past: found[present] for present, past in self.pairs.items()}
        return found["logits"]

    def rewind(self, length: int) -> None:
        if self.grows:
            self.past = {name: value[:, :, :length].copy() for name, value in self.past.items()}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", FORMS)
def test_a_history_as_onnxruntime_has_it(name: str) -> None:
    """A prompt, steps, a draft that is refused; the caches stay where they are, and a step writes its own rows."""
    form, rng = FORMS[name], np.random.default_rng(6)
    session = lb.Session(lb.compile(form.model(), alias="auto"))
    state = session.bind_state(capacity=CAPACITY)
    assert (state.length, state.capacity, len(state.pairs)) == (0, CAPACITY, 2 * LAYERS)
    theirs, where = Theirs(form, state), set()
    for steps, length in ((5, 0), (1, 5), (1, 6), (3, 7), (1, 8), (1, 9)):
        state.rewind(length)
        theirs.rewind(length)
        feeds = {"input_ids": rng.integers(0, WORDS, (form.batch, steps)), **form.lengths(form.batch, length, steps)}
        with lb.ledger() as moves:
            found = session(feeds)
        expected = theirs.step(feeds)
        np.testing.assert_allclose(found["logits"].numpy(), expected, rtol=1e-4, atol=1e-5)
        assert state.length == length + steps
        for past, tensor in state.tensors.items():
            filled = tensor.numpy()[:, :, : state.length]
            np.testing.assert_allclose(filled, theirs.past[past][:, :, : state.length], rtol=1e-4, atol=1e-5)
        where.add(tuple(tensor.data_address for tensor in state.tensors.values()))
        assert moves.total_bytes == 0
    assert len(where) == 1
    full = {"input_ids": np.zeros((form.batch, CAPACITY), np.int64), **form.lengths(form.batch, 10, CAPACITY)}
    before = {past: np.array(tensor) for past, tensor in state.tensors.items()}
    with pytest.raises(lb.StateCapacityError, match=r"needs 26 steps"):
        session(full)
    for past, tensor in state.tensors.items():
        np.testing.assert_array_equal(tensor.numpy(), before[past])


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FORMS)
def test_beams_are_forks(name: str) -> None:
    """Two continuations of one prompt: each as onnxruntime continues it from its own copy."""
    form, rng = FORMS[name], np.random.default_rng(7)
    session = lb.Session(lb.compile(form.model(), alias="auto"))
    first = session.bind_state(capacity=CAPACITY)
    theirs = Theirs(form, first)
    prompt = rng.integers(0, WORDS, (form.batch, 4))
    session({"input_ids": prompt, **form.lengths(form.batch, 0, 4)})
    theirs.step({"input_ids": prompt, **form.lengths(form.batch, 0, 4)})
    after, beams = dict(theirs.past), {first: rng.integers(0, WORDS, (form.batch, 3))}
    beams[first.fork()] = rng.integers(0, WORDS, (form.batch, 3))
    pasts = dict.fromkeys(beams, after)
    for number in range(3):
        for state, words in beams.items():
            state.bind()
            theirs.past = pasts[state]
            feeds = {"input_ids": words[:, number : number + 1].copy(), **form.lengths(form.batch, 4 + number, 1)}
            np.testing.assert_allclose(session(feeds)["logits"].numpy(), theirs.step(feeds), rtol=1e-4, atol=1e-5)
            pasts[state] = theirs.past
            assert state.length == 5 + number


def test_auto_names_no_state_where_there_is_none() -> None:
    """A Concat whose names say nothing is none, and what is asked for is one of the forms of alias=."""
    concat = helper.make_node("Concat", ["a", "b"], ["c"], axis=0)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"N{name}", 2]) for name in "abc"]
    graph = helper.make_graph([concat], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    executable = lb.compile(model, alias="auto")
    assert executable.main.aliases == ()
    assert [spec.name for spec in executable.main.inputs] == ["a", "b"]
    with pytest.raises(lb.InputError, match="alias= takes names of inputs by output"):
        lb.compile(model, alias="all")  # type: ignore[call-overload]


def test_how_states_grow_is_in_the_file_and_in_printed_ir(tmp_path: Path) -> None:
    form = FORMS["torch, StaticCache"]
    executable = lb.compile(form.model(), dump=tmp_path / "ir")
    executable.save(tmp_path / "static.lbx")
    state = lb.Session(lb.load(tmp_path / "static.lbx")).bind_state()
    assert (state.length, state.capacity) == (0, CAPACITY)
    printed = next(iter(sorted((tmp_path / "ir").glob("*alias*.mlir")))).read_text()
    assert "lb.growth" in printed
    names = {growth.name: growth for growth in growths_of(executable)["main"]}
    assert set(names) == set(state.pairs.values())
    assert {(growth.axis, growth.after, growth.positions) for growth in names.values()} == {(2, 1, "cache_position")}


def test_commands_show_states_and_how_they_grow(tmp_path: Path) -> None:
    onnx.save(FORMS["onnxruntime-genai"].model(), tmp_path / "decoder.onnx")
    model, program = str(tmp_path / "decoder.onnx"), str(tmp_path / "decoder.lbx")
    assert invoke(["compile", model, "--alias", "auto", "-o", program]).exit_code == 0
    inspected = invoke(["inspect", program]).stdout
    assert "present.1.value  past_key_values.1.value" in inspected
    assert "T - sequence_length" in inspected
