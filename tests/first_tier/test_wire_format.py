"""Fields of messages as protobuf writes them."""

from __future__ import annotations

import pytest
from onnx import AttributeProto, StringStringEntryProto, TensorProto

from landbridge.first_tier.wire_format import WireFormatError, fields, integers, message, text, varint


def test_fields_of_every_wire_type() -> None:
    attribute = AttributeProto(name="ä" * 200, i=-5, f=1.5, ints=[1, -1, 1 << 40])
    found: dict[int, list[object]] = {}
    for number, content in fields(memoryview(attribute.SerializeToString())):
        found.setdefault(number, []).append(content)
    assert text(found[1][0]) == attribute.name  # type: ignore[arg-type]
    assert found[2] == [0x3FC00000] and integers(found[3][0]) == [-5]  # type: ignore[arg-type]
    assert [n for part in found[8] for n in integers(part)] == [1, -1, 1 << 40]  # type: ignore[arg-type]
    (double,) = (content for number, content in fields(memoryview(b"\x09\0\0\0\0\0\0\xf0\x3f")))
    assert double == 0x3FF0000000000000
    packed = TensorProto(int64_data=[3, -(1 << 62)]).SerializeToString()
    assert [integers(content) for _, content in fields(memoryview(packed))] == [[3, -(1 << 62)]]


@pytest.mark.parametrize("length", range(1, 40))
def test_a_message_that_is_cut_is_refused_or_shorter(length: int) -> None:
    whole = StringStringEntryProto(key="a" * 20, value="b" * 20).SerializeToString()
    try:
        found = list(fields(memoryview(whole[:length])))
    except WireFormatError as error:
        assert "the file is cut" in str(error)
    else:
        assert length in (22,) and len(found) == 1


@pytest.mark.parametrize("content", [b"\x0b", b"\x0c", b"\x07\0", b"\xff" * 12, b"\x08" + b"\xff" * 10 + b"\1"])
def test_no_message(content: bytes) -> None:
    with pytest.raises(WireFormatError):
        list(fields(memoryview(content)))


def test_contents_of_another_kind() -> None:
    for read in (text, message):
        with pytest.raises(WireFormatError, match="a number stands where"):
            read(7)
    with pytest.raises(WireFormatError, match="UTF-8"):
        text(memoryview(b"\xff"))
    assert varint(memoryview(b"\xac\x02"), 0) == (300, 2)
