"""What a module says of itself, read before a driver sees it; whatever the words, they are facts or a ValueError."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.devices.vulkan.spirv_facts import EntryPoint, ModuleFacts, facts_of
from landbridge.executable.spirv import HEADER_WORDS, Capability, ImageFormat, disassemble, words_of
from tests.devices.vulkan.shaders import PIXEL, SAXPY, assembled, assembled_unchecked


def test_an_entry_point() -> None:
    facts = facts_of(words_of(assembled(SAXPY)))
    assert facts.capabilities == {Capability.Shader}
    assert facts.entry_points == {
        "saxpy": EntryPoint("saxpy", (64, 1, 1), (0, 1), (4, 4), frozenset({1}), ((0, "<f"),)),
    }
    assert facts.entry_points["saxpy"].push_bytes == 4
    assert not facts.entry_points["saxpy"].can_take_starts


def test_images() -> None:
    entry = facts_of(words_of(assembled(PIXEL))).entry_points["pixel"]
    assert entry.images == {0: ImageFormat.Unknown, 1: ImageFormat.Rgba32ui}
    assert entry.bindings == (0, 1) and entry.buffers == 0
    assert entry.written == {1}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%uint 2D 0 0 0 2 Rgba32ui", "%uint 3D 0 0 0 2 Rgba32ui"),
        ("%uint 2D 0 0 0 2 Rgba32ui", "%uint 2D 0 1 0 2 Rgba32ui"),
        ("%uint 2D 0 0 0 2 Rgba32ui", "%uint 2D 0 0 1 2 Rgba32ui"),
        ("%uint 2D 0 0 0 2 Rgba32ui", "%uint 2D 0 0 0 2 Unknown"),
        ("%uint 2D 0 0 0 2 Rgba32ui", "%void 2D 0 0 0 2 Rgba32ui"),
        ("%uint 2D 0 0 0 1 Unknown", "%uint 2D 0 0 0 0 Unknown"),
        ("%uint 2D 0 0 0 1 Unknown", "%uint 2D 0 0 0 1 Rgba32ui"),
    ],
)
def test_images_that_no_memory_is(old: str, new: str) -> None:
    words = words_of(assembled_unchecked(PIXEL.replace(f"OpTypeImage {old}", f"OpTypeImage {new}")))
    with pytest.raises(ValueError, match="legal: 2-D images of unsigned integers"):
        facts_of(words)


def test_push_constants_of_other_types() -> None:
    text = SAXPY.replace("%numbers = OpTypeStruct %float", "%numbers = OpTypeStruct %float %uint")
    text = text.replace("OpMemberDecorate %numbers 0 Offset 0", "OpMemberDecorate %numbers 0 Offset 0\n"
                        "OpMemberDecorate %numbers 1 Offset 12")  # fmt: skip
    entry = facts_of(words_of(assembled(text))).entry_points["saxpy"]
    assert entry.push == ((0, "<f"), (12, "<I"))
    assert entry.push_bytes == 16


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("OpDecorate %x DescriptorSet 0", "OpDecorate %x DescriptorSet 1", "not bound in descriptor set 0"),
        ("OpExecutionMode %main LocalSize 64 1 1", "", "states no workgroup size"),
    ],
)
def test_what_is_not_taken(old: str, new: str, message: str) -> None:
    words = words_of(assembled_unchecked(SAXPY.replace(old, new)))
    with pytest.raises(ValueError, match=message):
        facts_of(words)


@settings(max_examples=300)
@given(
    st.sampled_from((SAXPY, PIXEL)),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, (1 << 32) - 1) | st.integers(0, 80)), max_size=6),
    st.data(),
)
def test_any_words_are_facts_or_a_value_error(shader: str, changes: list[tuple[int, int]], data: st.DataObject) -> None:
    words = list(words_of(assembled(shader)))
    for place, word in changes:
        words[place % len(words)] = word
    words = words[: data.draw(st.integers(HEADER_WORDS, len(words)))]
    with suppress(ValueError):
        assert isinstance(facts_of(words), ModuleFacts)
    with suppress(ValueError):
        assert disassemble(words) or len(words) == HEADER_WORDS
