"""Packed results and messages in pipes."""

from __future__ import annotations

import io
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gainful.experiments.wire_format import FrameDecoder, pack, read_frame, unpack, write_frame


def test_what_is_packed_is_unpacked() -> None:
    arrays = {
        "a": np.arange(6, dtype=np.int64).reshape(2, 3),
        "b": np.array([1.5, -0.0, np.nan]),
        "empty": np.empty((0, 4)),
        "flag": np.array([True, False]),
        "big": np.arange(3, dtype=">i4"),
    }
    values, found = unpack(pack({"x": 1, "y": None, "z": "é"}, arrays))
    assert values == {"x": 1, "y": None, "z": "é"}
    for name, array in arrays.items():
        assert found[name].shape == array.shape
        assert np.array_equal(found[name], array, equal_nan=name == "b")
    assert np.signbit(found["b"][1])


def test_the_same_content_gives_the_same_bytes() -> None:
    assert pack({"a": 1, "b": 2}, {"x": np.ones(3)}) == pack({"b": 2, "a": 1}, {"x": np.ones(3)})


@pytest.mark.parametrize("data", [b"", b"xyz", zlib.compress(b"\x05\x00\x00\x00{}"), zlib.compress(b"ab")])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        unpack(data)


def test_objects_are_never_unpacked() -> None:
    header = b'{"arrays": [["x", "|O", [1]]], "values": {}}'
    with pytest.raises(ValueError):
        unpack(zlib.compress(len(header).to_bytes(4, "little") + header + bytes(8)))


def test_a_flipped_bit_of_a_packed_result_is_noticed() -> None:
    data = bytearray(pack({"x": 1}, {"a": np.arange(3)}))
    for at in range(len(data)):
        for bit in range(8):
            data[at] ^= 1 << bit
            with pytest.raises(ValueError, match="not a packed result"):
                unpack(bytes(data))
            data[at] ^= 1 << bit


def test_a_packed_result_of_the_first_version_is_unpacked() -> None:
    values, arrays = unpack(pack({"x": 1}, {"a": np.arange(3)})[8:])
    assert values == {"x": 1}
    assert arrays["a"].tolist() == [0, 1, 2]


@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(1, 17))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes], piece: int) -> None:
    pipe = io.BytesIO()
    for message in messages:
        write_frame(pipe, message)
    data = pipe.getvalue()
    frames = FrameDecoder()
    found = [m for i in range(0, len(data), piece) for m in frames.feed(data[i : i + piece])]
    assert found == messages
    pipe.seek(0)
    for message in messages:
        assert read_frame(pipe) == message
    assert read_frame(pipe) is None
    cut = io.BytesIO(data[:-1])
    assert list(iter(lambda: read_frame(cut), None)) == messages[:-1]
