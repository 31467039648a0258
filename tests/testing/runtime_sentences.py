"""The sentences of the contract that no device can break: the runtime keeps them, on every device.

For each the tests that check it, and a mutant: a line of the runtime, what stands there instead, and what that breaks.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """``text`` of the contract, the ``tests`` that fail when ``before`` in ``module`` is ``after``: ``breaks``."""

    text: str
    tests: tuple[str, ...]
    breaks: str
    module: str
    before: str
    after: str


def _s(text: str, tests: str, breaks: str, module: str, before: str, after: str) -> Sentence:
    return Sentence(text, tuple(tests.split()), breaks, module, before, after)


_REGISTRY, _LOSS = "tests/device/test_registry.py::", "tests/device/test_loss.py::"
_STREAM, _TARGET = "tests/device/test_stream.py::", "tests/target/test_target.py::"
_DLPACK, _TENSOR = "tests/test_dlpack.py::", "tests/test_tensor.py::"
_COHERENCE, _VIEW = "tests/memory/test_coherence.py::", "tests/memory/test_host_view.py::"
_SESSION, _DEVICES = "tests/test_session.py::", "tests/test_session_devices.py::"
_PARAMS = "tests/test_session_params.py::"

SENTENCES = (
    # DeviceAPI
    _s(
        "An unknown name: an error with the nearest known ones.",
        f"{_REGISTRY}test_unknown_name_gives_the_nearest",
        "The nearest names are left out.",
        "device/registry.py",
        "near = get_close_matches(name, names(), n=3, cutoff=0.5)",
        "near = []",
    ),
    _s(
        "An index that does not exist: an error of its own, with the legal ones.",
        f"{_REGISTRY}test_index_that_does_not_exist",
        "Any index up to 99 is taken.",
        "device/registry.py",
        "if parsed.index >= count:",
        "if parsed.index >= max(count, 100):",
    ),
    _s(
        "A name already taken: an error of its own.",
        f"{_REGISTRY}test_name_taken",
        "The later one replaces the earlier.",
        "device/registry.py",
        "if api.name in {*_apis, *_BUILT_IN, *_plugins()}:",
        "if False:",
    ),
    _s(
        "A code already taken: an error of its own.",
        f"{_REGISTRY}test_type_taken",
        "Two devices have one DLPack code.",
        "device/registry.py",
        "    if owner != api.name:",
        "    if False:",
    ),
    _s(
        "One broken plugin never breaks the rest.",
        f"{_REGISTRY}test_broken_plugins_break_only_themselves",
        "What a plugin raises when it starts is passed on as it is.",
        "device/registry.py",
        "        api = plugin()\n    except Exception as error:",
        "        api = plugin()\n    except ZeroDivisionError as error:",
    ),
    _s(
        "The current device and stream are thread-local.",
        f"{_STREAM}test_current_device_is_restored {_STREAM}test_current_stream_is_per_device",
        "One current device for all threads.",
        "device/stream.py",
        "class _Current(threading.local):",
        "class _Current:",
    ),
    _s(
        "set_device is restored on exit.",
        f"{_STREAM}test_current_device_is_restored",
        "The device stays the current one.",
        "device/stream.py",
        "        _current.device = previous",
        "        pass",
    ),
    _s(
        "Device loss is sticky: every call raises DeviceLostError.",
        f"{_LOSS}test_loss_is_sticky_and_reopen_makes_a_new_device",
        "Only the call that finds the loss raises.",
        "device/state.py",
        "        self.failure = lost\n",
        "",
    ),
    _s(
        "DeviceLostError has the last submitted work, that of a run too.",
        f"{_LOSS}test_loss_is_sticky_and_reopen_makes_a_new_device "
        f"{_DEVICES}test_a_loss_names_the_work_that_the_run_submitted_last",
        "Submitted work is not noted.",
        "device/state.py",
        "            self.last_work = work\n",
        "",
    ),
    _s(
        "Host-owned bytes stay readable after a loss.",
        f"{_LOSS}test_memory_of_the_host_stays_readable",
        "A loss takes borrowed memory too.",
        "memory/storage.py",
        "        if self.owner is None:\n            self.live_region.space.device.state.check()",
        "        self.live_region.space.device.state.check()",
    ),
    _s(
        "reopen() makes a new Device and old Tensors stay lost.",
        f"{_LOSS}test_loss_is_sticky_and_reopen_makes_a_new_device",
        "The lost life of the device goes on.",
        "device/device.py",
        "            begin_anew(self.api, self.index)\n",
        "            self.state.failure = None\n",
    ),
    _s(
        "After fork, the child's devices raise ForkedDeviceError.",
        f"{_LOSS}test_a_child_process_may_not_use_the_device",
        "A driver of the parent is used in the child.",
        "device/state.py",
        "        if not api.survives_fork:",
        "        if False:",
    ),
    _s(
        "Else the copy is staged through the host and the ledger says so.",
        "tests/memory/test_transfer.py::test_staged_between_devices_that_cannot_reach_each_other",
        "The second half of a staged copy is not said to be one.",
        "memory/transfer.py",
        'copy_tensor(dst, staging, cause=f"{cause}:staged", stream=stream)',
        "copy_tensor(dst, staging, cause=cause, stream=stream)",
    ),
    _s(
        "Strided copies are decomposed by the runtime.",
        "tests/memory/test_transfer.py::test_strided_copies_are_one_for_each_dense_run",
        "Every copy is one run.",
        "memory/transfer.py",
        "    run, outer = src.itemsize, src.ndim",
        "    run, outer = src.nbytes, 0",
    ),
    _s(
        "Methods may be called from any thread: what one queues meanwhile is not forgotten.",
        "tests/memory/test_accesses.py::test_what_another_thread_queues_meanwhile_is_not_forgotten",
        "The list of queued work is rebuilt from what it was before.",
        "memory/storage.py",
        "tuple(queued for queued in self._queued if queued not in done)",
        "tuple(queued for queued in before if queued not in done)",
    ),
    # Storage and Tensor
    _s(
        "Sizes are checked for sign before any device sees them.",
        f"{_TENSOR}TestEmpty::test_refusals",
        "Negative extents are passed on.",
        "shape.py",
        "    if any(extent < 0 for extent in extents):",
        "    if False:",
    ),
    _s(
        "Sizes are checked for overflow before any device sees them.",
        f"{_TENSOR}TestEmpty::test_refusals",
        "Any size is passed on.",
        "shape.py",
        "    if prod(max(extent, 1) for extent in extents) * itemsize > LARGEST_BYTES:",
        "    if False:",
    ),
    _s(
        "A borrowed Storage is read-only when the owner is.",
        f"{_TENSOR}TestFromNumpyView::test_readonly",
        "Every array is taken to be writable.",
        "tensor/tensor.py",
        "            self.readonly = not flags.writeable\n",
        "            self.readonly = False\n",
    ),
    _s(
        "A borrowed Storage holds its owner.",
        "tests/memory/test_storage.py::test_borrowed_bytes_hold_their_owner",
        "The owner is let go at once.",
        "memory/storage.py",
        "        self.owner = owner\n        #: Who wrote",
        "        self.owner = None if owner is None else True\n        #: Who wrote",
    ),
    # DLPack
    _s(
        "Unversioned capsules: read-only is refused.",
        f"{_DLPACK}TestProducerHere::test_read_only",
        "Read-only memory is exported as if it were not.",
        "dlpack/produce.py",
        "    if tensor.readonly and not versioned:",
        "    if False:",
    ),
    _s(
        "Flag READ_ONLY.",
        f"{_DLPACK}TestProducerHere::test_read_only",
        "The flag is not set.",
        "dlpack/produce.py",
        "(FLAG_READ_ONLY if tensor.readonly else 0)",
        "0",
    ),
    _s(
        "Flag IS_COPIED.",
        f"{_DLPACK}TestProducerHere::test_copied",
        "The flag is not set.",
        "dlpack/produce.py",
        "(FLAG_IS_COPIED if copy else 0)",
        "0",
    ),
    _s(
        "stream None on CPU.",
        f"{_DLPACK}TestProducerHere::test_streams",
        "Any stream is taken.",
        "dlpack/produce.py",
        "    elif stream is not None and not (",
        "    elif False and not (",
    ),
    _s(
        "Consumer: retries without max_version on TypeError.",
        f"{_DLPACK}TestConsumerHere::test_plain",
        "A producer from before DLPack 1.0 is refused.",
        "dlpack/consume.py",
        "        except TypeError:  # a producer from before",
        "        except ZeroDivisionError:  # a producer from before",
    ),
    _s(
        "Consumer: accepts NULL strides.",
        f"{_DLPACK}TestConsumerHere::test_plain",
        "NULL strides are refused.",
        "dlpack/consume.py",
        "    if described.strides and 0 not in shape:",
        '    if not described.strides:\n        raise InputError("no strides")\n    if 0 not in shape:',
    ),
    _s(
        "Consumer: accepts zero sizes.",
        f"{_DLPACK}TestConsumerHere::test_zero_size_with_strides_and_an_address_that_mean_nothing",
        "The address of no bytes is believed.",
        "dlpack/consume.py",
        "        address = base + offset if high else 0",
        "        address = base + offset",
    ),
    _s(
        "from_dlpack(copy=False) refuses a producer that copied.",
        f"{_DLPACK}TestConsumerHere::test_copied_by_the_producer",
        "The flag is not looked at.",
        "dlpack/consume.py",
        "    if copy is False and flags & FLAG_IS_COPIED:",
        "    if False:",
    ),
    _s(
        "Consumer: READ_ONLY memory is read-only here.",
        f"{_DLPACK}TestConsumerHere::test_read_only",
        "The flag is not looked at.",
        "dlpack/consume.py",
        "readonly=bool(flags & FLAG_READ_ONLY))",
        "readonly=False)",
    ),
    # Host views and coherence
    _s(
        "A strided w whose span has gaps is refused.",
        f"{_VIEW}test_refusals",
        "It is taken, and discards what is between.",
        "memory/host_view.py",
        '    if mode == "w" and stop - start != tensor.nbytes:',
        "    if False:",
    ),
    _s(
        "Outside a with, t.host_view() returns a lasting HostView whose barriers are the caller's.",
        f"{_VIEW}test_lasting_view",
        "flush() does nothing.",
        "memory/host_view.py",
        '        self._end("w")',
        "        pass",
    ),
    _s(
        "Barriers round outwards.",
        f"{_VIEW}test_barriers_are_rounded_outwards",
        "Barriers are for the bytes asked for.",
        "memory/coherence.py",
        "    return (offset + start) // granule * granule - offset, -(-(offset + stop) // granule) * granule - offset",
        "    return start, stop",
    ),
    _s(
        "A host-dirty range is flushed before any device access.",
        f"{_COHERENCE}test_host_writes_are_flushed_before_the_device_reads",
        "It is not.",
        "memory/coherence.py",
        "    if state.host_dirty:\n",
        "    if False:\n",
    ),
    _s(
        "Host-dirty and device-dirty at once is an error.",
        f"{_COHERENCE}test_both_sides_dirty_is_an_error",
        "The host's bytes win.",
        "memory/coherence.py",
        "    if lost := state.device_dirty.within(low, high):",
        "    if lost := ():",
    ),
    _s(
        "Of two conflicting views only one opens, whichever thread asks.",
        "tests/memory/test_accesses.py::test_of_two_conflicting_views_one_opens",
        "Views are compared and entered in two steps.",
        "memory/storage.py",
        "        with changing:\n            self.check_access(",
        "        if True:\n            self.check_access(",
    ),
    # Processes and threads
    _s(
        "After fork, the child's Sessions raise ForkedDeviceError.",
        f"{_SESSION}test_fork_leaves_the_parents_session_and_allows_a_new_one",
        "The child uses the parent's Session.",
        "vm/entry.py",
        "        self._forked = True\n        self.lock.acquire(blocking=False)",
        "        pass",
    ),
    _s(
        "Workers are joined by an atexit hook before any code or device goes away.",
        "tests/test_session_processes.py::test_exit_hooks_run_before_the_end_and_are_told_after_it",
        "No hook.",
        "vm/thread_pool.py",
        "atexit.register(_stop)\n",
        "",
    ),
    _s(
        "Later finalizers are no-ops.",
        "tests/test_session_processes.py::test_memory_that_outlives_our_modules",
        "They look for names that are gone.",
        "memory/storage.py",
        "    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:",
        "    def __del__(self) -> None:",
    ),
    _s(
        "One Session is used by one thread at a time; a second raises.",
        "tests/test_session_async.py::test_everything_else_is_refused_until_it_is_over",
        "Everybody is let in.",
        "session.py",
        "entry.lock.acquire, entry.lock.release, entry.refuse",
        "(lambda *_: True), (lambda: None), entry.refuse",
    ),
    # Executable and Session
    _s(
        "set_input: by value.",
        f"{_SESSION}test_set_input_is_by_value",
        "The array is lent.",
        "session.py",
        '            self._program.copy_in(slot, value, "set_input")',
        "            slot.bind(self._words, *self._program.borrow(slot, value))",
    ),
    _s(
        "set_input_zero_copy: the bound memory is read where it is.",
        f"{_SESSION}test_zero_copy_input_is_read_where_it_is",
        "A copy is bound.",
        "session.py",
        "                address = address_of_known(value)",
        "                owner = value.copy()\n                address = address_of_known(owner)",
    ),
    _s(
        "get_input(name): the bound input, writable through its host view.",
        f"{_SESSION}test_get_input_is_writable_memory_of_the_session",
        "It is read-only.",
        "session.py",
        "return self._program.bind_own(slot) if slot.owner is None else slot_tensor(slot)",
        "return read_only(self._program.bind_own(slot) if slot.owner is None else slot_tensor(slot))",
    ),
    _s(
        "set_params: all or none.",
        f"{_PARAMS}test_what_does_not_fit_changes_nothing",
        "Values before the one that does not fit are set.",
        "vm/bound_program.py",
        "            as_tensor(slot, value)  # raises before anything is copied",
        "            pass",
    ),
    _s(
        "set_params for weights declared mutable: runs use the new values, packed once.",
        f"{_PARAMS}test_weights_are_packed_when_they_are_set_and_not_by_each_run",
        "What was packed of the old values is used.",
        "vm/bound_program.py",
        "            self._point_call_at(slot)\n        self._prepare()",
        "            self._point_call_at(slot)",
    ),
    _s(
        "get_output(i, out): a copy there; without out it aliases Session memory until the next run.",
        f"{_SESSION}test_get_output_aliases_or_copies",
        "out is left as it was.",
        "session.py",
        "                self._program.copy_out(slot, result, out)",
        "                pass",
    ),
    _s(
        "s(x): returns tensors never overwritten later.",
        f"{_SESSION}test_call_results_are_never_overwritten",
        "The same memory each time.",
        "vm/bound_program.py",
        "_empty, _over_new = np.empty, Tensor._over_new",
        '_empty, _over_new = __import__("functools").cache(np.empty), Tensor._over_new',
    ),
    _s(
        "bind_state(output, input): recurrent state swaps without a copy.",
        f"{_SESSION}test_state_swaps_without_a_copy",
        "The two stay where they are.",
        "vm/bound_program.py",
        "            source.own, target.own = target.own, source.own\n",
        "",
    ),
    _s(
        "Input and output overlap raises at bind unless declared in place.",
        f"{_SESSION}test_overlap_of_input_and_output",
        "It is taken.",
        "vm/slot.py",
        "        if shared > 0:",
        "        if False:",
    ),
    _s(
        "Names bind devices, never positions.",
        f"{_DEVICES}test_names_bind_devices_and_never_their_order",
        "Devices are taken in the order they are given.",
        "vm/home.py",
        "find_device(asked.get(vdevice.name, ",
        "find_device(dict(enumerate(asked.values())).get(number, ",
    ),
    _s(
        "One copy of constants at bind: ledger cause constants:bind.",
        f"{_DEVICES}test_constants_of_a_device_are_copied_once_at_bind",
        "Another cause.",
        "vm/program_memory.py",
        'cause="constants:bind"',
        'cause="copy"',
    ),
    _s(
        "Binding rechecks; a difference raises BindError naming the tensor or crossing.",
        f"{_DEVICES}test_memory_that_is_not_what_the_target_said",
        "The Target is believed.",
        "vm/home.py",
        "            if wrong:\n",
        "            if False:\n",
    ),
    _s(
        "The ledger also lists every compiled kernel that only moves data (kernel:reorder, static bytes).",
        f"{_SESSION}test_kernels_that_only_move_are_listed",
        "Runs never list them.",
        "vm/bind.py",
        "        elif isinstance(instruction, ins.Call) and instruction.moves_bytes:\n            return True",
        "        elif False:\n            return True",
    ),
    _s(
        "no_copies() covers the process, worker threads included, and raises before any byte moves.",
        "tests/memory/test_ledger.py::test_no_copies_raises_before_any_byte_moves",
        "Only the main thread is watched.",
        "memory/ledger.py",
        "    if _forbidding:\n",
        '    import threading\n    if _forbidding and threading.current_thread().name == "MainThread":\n',
    ),
    # Targets, code generators, Modules
    _s(
        "An unknown option of a target: an error that names the nearest.",
        f"{_TARGET}test_errors_name_what_is_legal",
        "It does not.",
        "target/kind.py",
        "has no option {name!r}{did_you_mean(name, self._by_name)}; ",
        "has no option {name!r}; ",
    ),
    _s(
        "Bad CPU names are refused when the Target is built.",
        f"{_TARGET}test_errors_name_what_is_legal",
        "LLVM's complaint is not read.",
        "target/llvm_cpu.py",
        '        if "is not a recognized" in line:',
        "        if False:",
    ),
    _s(
        "String, dict and JSON forms of a target round-trip.",
        f"{_TARGET}test_a_target_with_memory_and_host_is_written_as_json_and_read_back",
        "Text states options alone.",
        "target/target.py",
        "text.format_options(self.kind, self.options) if self._is_plain else self._json",
        "text.format_options(self.kind, self.options)",
    ),
    _s(
        "Code generators never ask a device.",
        "tests/codegen/test_no_device.py",
        "compile() looks for cpu:0.",
        "compiler.py",
        '    if on_mismatch not in ("error", "copy"):\n',
        '    __import__("landbridge.device.registry").device.registry.device("cpu")\n'
        '    if on_mismatch not in ("error", "copy"):\n',
    ),
    _s(
        "PackedFuncs: errors arrive as Python exceptions.",
        "tests/test_module.py::test_what_does_not_fit_is_refused",
        "What is no tensor is refused with another kind of error.",
        "executable/packed.py",
        '("TypeError", "kernel \'%s\': operand %lld is no tensor; it takes %s")',
        '("RuntimeError", "kernel \'%s\': operand %lld is no tensor; it takes %s")',
    ),
)
