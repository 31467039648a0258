"""Layers of streams, and histories of their states: runs, forks, resets, values that are given, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

import landbridge as lb
from tests.session.state_histories import read

Array = np.ndarray[Any, Any]

#: Channels, samples of the state and of a run, dilation, groups.
LAYERS = {
    "dense": (16, 4, 3, 1, 1),
    "one sample": (4, 6, 1, 3, 1),
    "more new than kept": (4, 3, 10, 1, 1),
    "each channel": (16, 6, 5, 2, 16),
    "far apart": (32, 64, 2, 32, 1),
}


def stream(
    channels: int, before: int, new: int | str, dilation: int, groups: int, batch: int | str = 1
) -> onnx.ModelProto:
    """A convolution over the last samples of a stream and ``new`` ones."""
    taps = before // dilation + 1
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        stream (float[{batch},{channels},{new}] x, float[{batch},{channels},{before}] cache_in,
                float[{channels},{channels // groups},{taps}] w)
            => (float[{batch},{channels},{new}] y, float[{batch},{channels},{before}] cache_out)
        <int64[1] first = {{{-before}}}, int64[1] last = {{9223372036854775807}}, int64[1] axis = {{2}}>
        {{
            all = Concat<axis = 2>(cache_in, x)
            y = Conv<dilations = [{dilation}], group = {groups}>(all, w)
            cache_out = Slice(all, first, last, axis)
        }}""")


def convolved(joined: Array, weights: Array, dilation: int, groups: int) -> Array:
    outputs, channels, taps = weights.shape
    new = joined.shape[2] - (taps - 1) * dilation
    parts = joined.reshape(joined.shape[0], groups, channels, -1)
    by_group = weights.reshape(groups, outputs // groups, channels, taps)
    found = sum(
        np.einsum("bgcn,goc->bgon", parts[..., t * dilation :][..., :new], by_group[..., t]) for t in range(taps)
    )
    return np.asarray(found).reshape(joined.shape[0], outputs, new)


def of_any_number(layer: str) -> dict[str, Any]:
    """Arguments of ``compile``: ``layer`` with any number of new samples, up to that of its runs."""
    channels, before, new, dilation, groups = LAYERS[layer]
    return {"model": stream(channels, before, "S", dilation, groups), "dims": {"S": lb.Dim(1, new)}}


#: Shapes before the axis of samples, the samples of the state, shape behind it, and a reader of all samples.
FORMS = {
    "rows": ((), 5, (8,), "y = Relu(all)"),
    "a signal by time": ((2,), 5, (8,), "y = Relu(all)"),
    "a product": ((1,), 5, (8,), "y = MatMul(all, v)"),
    "a convolution of images": ((1, 4), 2, (9,), "y = Conv<pads = [0, 1, 0, 1]>(all, w)"),
    "channels of a batch": ((3, 4), 6, (), "y = Tanh(all)"),
    "half precision": ((1, 4), 6, (), "y = Relu(all)"),
}


def joined_by(form: str, new: str) -> onnx.ModelProto:
    """A stream of ``new`` samples in ``form``, whose axis may be any."""
    first, before, last, reader = FORMS[form]
    shape = ",".join(map(str, (*first, "{}", *last)))
    dtype = "float16" if form == "half precision" else "float"
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        stream ({dtype}[{shape.format(new)}] x, {dtype}[{shape.format(before)}] cache_in,
                float[8,3] v, float[4,4,3,3] w)
            => ({dtype}[{",".join("abcd"[: len(first) + 1 + len(last)])}] y, {dtype}[{shape.format(before)}] cache_out)
        <int64[1] first = {{{-before}}}, int64[1] last = {{9223372036854775807}}, int64[1] axis = {{{len(first)}}}> {{
            all = Concat<axis = {len(first)}>(cache_in, x)
            {reader}
            cache_out = Slice(all, first, last, axis)
        }}""")


class History:
    """A Session of a layer, and the last samples that numpy has of each of its states.

    ``is_open``: runs have any number of new samples. ``moves``: whether a run may move what a state has; the bytes of
    such moves are counted in ``moved``.
    """

    def __init__(
        self, session: lb.Session, layer: str, seed: int, *, is_open: bool = False, moves: bool = False
    ) -> None:
        self.channels, self.before, self.new, self.dilation, self.groups = LAYERS[layer]
        self.session, self.rng = session, np.random.default_rng(seed)
        self.is_open, self.moves, self.moved = is_open, moves, [0]
        taps = self.before // self.dilation + 1
        shape = (self.channels, self.channels // self.groups, taps)
        self.weights = self.rng.standard_normal(shape).astype(np.float32)
        session.set_input("w", self.weights)
        self.samples: dict[lb.State, Array] = {}

    def begin(self, state: lb.State, samples: Array | None = None) -> lb.State:
        self.samples[state] = np.zeros((1, self.channels, self.before), np.float32) if samples is None else samples
        return state

    def step(self, state: lb.State, *, by_call: bool = False, new: int | None = None) -> None:
        new = new or (int(self.rng.integers(1, self.new + 1)) if self.is_open else self.new)
        x = self.rng.standard_normal((1, self.channels, new)).astype(np.float32)
        joined = np.concatenate([self.samples[state], x], axis=2)
        if not by_call:
            self.session.set_input("x", x)
            self.session.set_input("w", self.weights)
        with lb.ledger() as moves:
            if by_call:
                y = self.session(x, self.weights)[0]
            else:
                self.session.run()
                y = self.session.get_output("y")
        of_arguments = {"set_input", "to_vdevice"}
        assert {move.cause for move in moves} <= of_arguments | ({"slide"} if self.moves else set()), list(moves)
        self.moved.append(sum(move.nbytes for move in moves if move.cause == "slide"))
        expected = convolved(joined, self.weights, self.dilation, self.groups)
        np.testing.assert_allclose(read(y), expected, rtol=1e-4, atol=1e-4)
        self.samples[state] = joined[:, :, -self.before :]
        self.check(state)

    def check(self, state: lb.State) -> None:
        np.testing.assert_array_equal(read(state.tensors["cache_in"]), self.samples[state])

    def walk(self, steps: int, folder: Path) -> None:
        """Go on at random for so many steps."""
        states = [self.begin(self.session.bind_state())]
        assert states[0].length is None
        current, rng = states[0], np.random.default_rng(6)
        for number in range(steps):
            what = rng.choice(["step", "call", "fork", "bind", "reset", "assign", "file"], p=[0.5, 0.3, *[0.04] * 5])
            if what in ("step", "call"):
                self.step(current, by_call=what == "call")
            elif what == "fork" and len(states) < 4:
                states.append(self.begin(current.fork(), self.samples[current].copy()))
            elif what == "bind":
                current = states[int(rng.integers(len(states)))]
                current.bind()
            elif what == "reset":
                current.reset()
                self.begin(current)
            elif what == "assign":
                samples = rng.standard_normal((1, self.channels, self.before)).astype(np.float32)
                current.assign({"cache_in": samples})
                self.begin(current, samples)
            elif what == "file":
                current.save(folder / "a.state")
                other = states[number % len(states)]
                other.load(folder / "a.state")
                self.begin(other, self.samples[current].copy())
            for state in states:
                self.check(state)
