"""Which outputs are the next values of which inputs, by the names that exporters write."""

from __future__ import annotations

import pytest

from landbridge.executable.state_names import named_states


@pytest.mark.parametrize(
    ("input", "output"),
    [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.11.decoder.value", "present.11.decoder.value"),
        ("past_key_values_0_key", "present_key_values_0_key"),
        ("past_0", "present_0"),
        ("past_key_self_3", "present_key_self_3"),
        ("past_conv.2", "present_conv.2"),
        ("past", "present"),
        ("state", "stateN"),
        ("h", "hn"),
        ("c0", "cN"),
        ("initial_h", "Y_h"),
        ("cache_in", "cache_out"),
        ("k_cache_0", "k_cache_0_out"),
        ("v_cache", "new_v_cache"),
        ("prev_state", "next_state"),
        ("hidden", "updated_hidden"),
        ("in_cache", "out_cache"),
    ],
)
def test_names_of_exporters(input: str, output: str) -> None:
    assert named_states(["x", input, "sr"], ["y", output]) == {output: input}


def test_names_that_say_nothing() -> None:
    inputs = ["input", "x", "before", "pk", "w", "input_ids", "attention_mask"]
    assert named_states(inputs, ["output", "y", "after", "nk", "w1", "logits", "last_hidden_state"]) == {}


def test_what_fits_several_is_left_out() -> None:
    assert named_states(["past_0", "prev_0", "past_1"], ["present_0", "present_1"]) == {"present_1": "past_1"}
    assert named_states(["h"], ["hn", "h_out"]) == {}
