"""A Session against a model in plain numpy: any sequence of bindings, writes and runs gives the model's values."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import landbridge as lb
from tests.vm import programs

N = 16
EXECUTABLE = programs.two_stages(N)
INPUTS = st.sampled_from(["a", "b"])
NUMBERS = st.integers(-100, 100)


class SessionModel(RuleBasedStateMachine):
    @initialize(threads=st.integers(1, 2))
    def start(self, threads):
        self.session = lb.Session(EXECUTABLE, num_threads=threads)
        self.bound: dict[str, np.ndarray] = {}  # what the model thinks each input reads
        self.out: np.ndarray | None = None
        self.result: np.ndarray | None = None
        self.kept: list[tuple[lb.Tensor, np.ndarray]] = []  # results of calls, and what they must stay

    @rule(name=INPUTS, value=NUMBERS)
    def give_by_value(self, name, value):
        array = np.full(N, value, np.float32)
        self.session.set_input(name, array)
        array[:] = 12345
        self.bound[name] = np.full(N, value, np.float32)

    @rule(name=INPUTS, value=NUMBERS)
    def lend(self, name, value):
        array = np.full(N, value, np.float32)
        self.session.set_input_zero_copy(name, array)
        self.bound[name] = array

    @rule(name=INPUTS, value=NUMBERS)
    def write_bound_input(self, name, value):
        view = np.asarray(self.session.get_input(name))
        view[3] = value
        self.bound.setdefault(name, np.zeros(N, np.float32))[3] = value
        assert np.array_equal(view, self.bound[name])

    @rule()
    def lend_output(self):
        self.out = np.zeros(N, np.float32)
        self.result = None
        self.session.set_output_zero_copy(0, self.out)

    @precondition(lambda self: len(self.bound) == 2)
    @rule()
    def run(self):
        self.session.run()
        self.result = 2 * (self.bound["a"] + self.bound["b"])
        if self.out is not None:
            assert np.array_equal(self.out, self.result)

    @rule(a=NUMBERS, b=NUMBERS, lend=st.booleans())
    def call(self, a, b, lend):
        arrays = [np.full(N, value, np.float32) for value in (a, b)]
        (y,) = self.session(*arrays, out=[lb.empty((N,), dtype="float32")] if lend else None)
        self.kept.append((y, np.full(N, 2.0 * (a + b), np.float32)))

    @invariant()
    def last_result_stays(self):
        if getattr(self, "result", None) is not None:
            assert np.array_equal(np.asarray(self.session.get_output(0)), self.result)

    @invariant()
    def call_results_stay(self):
        for tensor, values in getattr(self, "kept", []):
            assert np.array_equal(np.asarray(tensor), values)


SessionModel.TestCase.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestSession = SessionModel.TestCase
