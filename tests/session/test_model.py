"""A Session against a model in plain numpy: any sequence of bindings, writes and runs gives the model's values.

On memory of the host, and on memory that the host shares with sim:lazy, where copies into what is bound are queued too.
"""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import landbridge as lb
from landbridge.tensor.copy import copy_tensor
from tests.session.place import On, session
from tests.vm import programs

N = 16
EXECUTABLE = programs.two_stages(N)
INPUTS = st.sampled_from(["a", "b"])
VALUES = st.integers(-100, 100)


class SessionModel(RuleBasedStateMachine):
    def new_session(self, threads):
        return session(EXECUTABLE, num_threads=threads)

    @initialize(threads=st.integers(1, 2))
    def start(self, threads):
        self.session = self.new_session(threads)
        self.bound: dict[str, np.ndarray] = {}  # what the model thinks each input reads
        self.out: np.ndarray | None = None
        self.result: np.ndarray | None = None
        self.retained: list[tuple[lb.Tensor, np.ndarray]] = []  # results of calls, and what they must stay

    @rule(name=INPUTS, value=VALUES)
    def give_by_value(self, name, value):
        array = np.full(N, value, np.float32)
        self.session.set_input(name, array)
        array[:] = 12345
        self.bound[name] = np.full(N, value, np.float32)

    @rule(name=INPUTS, value=VALUES)
    def lend(self, name, value):
        array = np.full(N, value, np.float32)
        self.session.set_input_zero_copy(name, array)
        self.bound[name] = array

    @rule(name=INPUTS, value=VALUES)
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

    @rule(a=VALUES, b=VALUES, lend=st.booleans())
    def call(self, a, b, lend):
        arrays = [np.full(N, value, np.float32) for value in (a, b)]
        (y,) = self.session(*arrays, out=[lb.empty((N,), dtype="float32")] if lend else None)
        self.retained.append((y, np.full(N, 2.0 * (a + b), np.float32)))

    @invariant()
    def last_result_stays(self):
        if getattr(self, "result", None) is not None:
            assert np.array_equal(np.asarray(self.session.get_output(0)), self.result)

    @invariant()
    def call_results_stay(self):
        for tensor, values in getattr(self, "retained", []):
            assert np.array_equal(np.asarray(tensor), values)


class SessionModelOnSimLazy(SessionModel):
    def new_session(self, threads):
        self.device = lb.device("sim:lazy")
        self.borrowed: dict[str, lb.Tensor] = {}
        On.device, On.scope = self.device, "shared"
        try:
            return session(EXECUTABLE, num_threads=threads)
        finally:
            On.device, On.scope = "cpu", "global"

    def hidden(self, value):
        return lb.asarray(np.full(N, value, np.float32), device=self.device)

    @rule(name=INPUTS, value=VALUES)
    def lend_with_a_copy_pending(self, name, value):
        self.borrowed[name] = lb.empty((N,), dtype="float32", device=self.device, scope="shared")
        copy_tensor(self.borrowed[name], self.hidden(value), cause="test")
        self.session.set_input_zero_copy(name, self.borrowed[name])
        self.bound[name] = np.full(N, value, np.float32)

    @precondition(lambda self: self.borrowed)
    @rule(name=INPUTS, value=VALUES)
    def queue_a_copy_into_what_was_borrowed(self, name, value):
        if name in self.borrowed:
            copy_tensor(self.borrowed[name], self.hidden(value), cause="test")
            if self.session.get_input(name) is self.borrowed[name]:
                self.bound[name][:] = value

    def teardown(self):
        if hasattr(self, "device"):
            assert not self.device.api.violations


for model in (SessionModel, SessionModelOnSimLazy):
    model.TestCase.settings = settings(max_examples=100, stateful_step_count=20)
TestSession = SessionModel.TestCase
TestSessionOnSimLazy = SessionModelOnSimLazy.TestCase
