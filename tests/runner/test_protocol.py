from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.runner import shared
from grader.runner.protocol import (
    CHUNK,
    HEADER_CAP,
    LEAST_SHARED,
    MAGIC,
    MAGIC_SHARED,
    PREFIX,
    Channel,
    ClosedError,
    ExpiredError,
    Frame,
    MalformedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Pair:
    """A channel and the bare descriptors of its peer."""

    def __init__(self, shared: memoryview | None = None) -> None:
        reading, self.write_end = os.pipe()
        self.read_end, writing = os.pipe()
        self.channel = Channel(reading, writing, shared)
        self._open = [reading, self.write_end, self.read_end, writing]

    def says(self, data: bytes) -> None:
        os.write(self.write_end, data)

    def leaves(self) -> None:
        os.close(self.write_end)
        self._open.remove(self.write_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open:
            os.close(descriptor)


def after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def frame(header: bytes, payload: bytes = b"") -> bytes:
    return PREFIX.pack(MAGIC, len(header), len(payload)) + header + payload


def receive(data: bytes, cap: int = 16) -> Frame:
    with Pair() as pair:
        pair.says(data)
        pair.leaves()
        return pair.channel.receive(cap, after(5))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n" + bytes(20),
        PREFIX.pack(MAGIC, HEADER_CAP + 1, 0),
        PREFIX.pack(MAGIC, 2, 17) + b"{}" + bytes(17),
        PREFIX.pack(MAGIC_SHARED, 2, 1) + b"{}",
        frame(b"[]"),
        frame(b"{"),
        frame(b'{"t": NaN}'),
        frame(b"\xff\xfe"),
        frame(b"[" * 60_000),
        frame(b'{"t": ' + b"1" * 5000 + b"}"),
    ],
    ids=["text", "header", "payload", "not shared", "list", "cut", "nan", "binary", "deep", "number"],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        receive(data)


@given(st.binary(max_size=64))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    with pytest.raises((MalformedError, ClosedError)):
        receive(data)


@given(
    st.dictionaries(
        st.text(),
        st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    ),
    st.lists(st.binary(max_size=300), max_size=3),
)
def test_frames_arrive_as_sent(header: dict[str, object], payload: list[bytes]) -> None:
    with Pair() as there, Pair() as here:
        there.channel.send(header, payload)
        data = os.read(there.read_end, 1 << 16)
        here.says(data)
        got = here.channel.receive(1 << 16, after(5))
    assert got.header == header
    assert got.payload == b"".join(payload)


def test_frames_longer_than_a_pipe_arrive() -> None:
    reading, writing = os.pipe()
    back, forth = os.pipe()
    sender, receiver = Channel(back, writing), Channel(reading, forth)
    big = os.urandom(3 << 20)
    thread = threading.Thread(target=sender.send, args=({"a": 1}, [big]))
    thread.start()
    assert receiver.receive(len(big), after(10)).payload == big
    thread.join()
    for descriptor in (reading, writing, back, forth):
        os.close(descriptor)


@pytest.fixture
def memory() -> memoryview:
    return memoryview(bytearray(4 * LEAST_SHARED))


@pytest.mark.parametrize("size", [LEAST_SHARED, 4 * LEAST_SHARED])
def test_large_payloads_lie_in_shared_memory(memory: memoryview, size: int) -> None:
    with Pair(memory) as there, Pair(memory) as here:
        there.channel.send({"a": 1}, [b"", b"\1" * (size - 1), b"\2"])
        here.says(os.read(there.read_end, 1 << 16))
        got = here.channel.receive(size, after(5))
    assert bytes(got.payload) == b"\1" * (size - 1) + b"\2"
    assert bytes(memory[:size]) == bytes(got.payload)


def test_what_fills_its_room_is_sent_as_it_lies_there(memory: memoryview) -> None:
    with Pair(memory) as there, Pair(memory) as here:
        room = there.channel.room(LEAST_SHARED)
        room[-1] = 7
        there.channel.send({}, [room])
        here.says(os.read(there.read_end, 1 << 16))
        assert here.channel.receive(LEAST_SHARED, after(5)).payload[-1] == memory[LEAST_SHARED - 1] == 7


@pytest.mark.parametrize("size", [LEAST_SHARED - 1, 4 * LEAST_SHARED + 1])
def test_payloads_that_are_small_or_have_no_room_go_through_the_pipe(memory: memoryview, size: int) -> None:
    with Pair(memory) as there, Pair(memory) as here:
        for pair in (there, here):
            pair.channel.widen()
        there.channel.send({}, [bytes(size)])
        here.says(os.read(there.read_end, 1 << 20))
        got = here.channel.receive(size, after(5))
    assert isinstance(got.payload, bytearray)
    assert len(got.payload) == size


@pytest.mark.parametrize("size", [4 * LEAST_SHARED + 1, 1 << 63])
def test_a_payload_beyond_shared_memory_is_refused(memory: memoryview, size: int) -> None:
    with Pair(memory) as pair:
        pair.says(PREFIX.pack(MAGIC_SHARED, 2, size) + b"{}")
        with pytest.raises(MalformedError):
            pair.channel.receive(1 << 62, after(5))


def test_nobody_can_change_the_size_of_shared_memory() -> None:
    descriptor = shared.make()
    for size in (0, shared.SHARED_BYTES + 1):
        with pytest.raises(PermissionError):
            os.truncate(descriptor, size)
    one, other = shared.mapped(descriptor), shared.mapped(descriptor)
    os.close(descriptor)
    one[-1] = 5
    assert other[-1] == 5


def test_a_wide_channel_takes_half_a_chunk_that_nobody_reads_yet() -> None:
    with Pair() as pair, pytest.raises(ExpiredError):
        pair.channel.send({}, [bytes(CHUNK // 2)], after(0.1))
    with Pair() as pair:
        pair.channel.widen()
        pair.channel.send({}, [bytes(CHUNK // 2)], after(10))


def test_an_answer_must_repeat_the_nonce() -> None:
    with Pair() as pair:
        thread = threading.Timer(0.1, pair.says, [frame(json.dumps({"nonce": "0" * 32}).encode())])
        thread.start()
        with pytest.raises(MalformedError, match="not belong to the request"):
            pair.channel.exchange({}, (), 0, after(5))
        thread.join()


def test_an_answer_before_its_question_is_refused() -> None:
    with Pair() as pair:
        pair.says(frame(b"{}"))
        with pytest.raises(MalformedError, match="before it was asked"):
            pair.channel.exchange({}, (), 0, after(5))


def test_a_peer_that_never_stops_speaking_expires() -> None:
    with Pair() as pair:
        pair.says(PREFIX.pack(MAGIC, 8, 1 << 16) + b"{      }")
        asked = 0

        def expired() -> bool:
            nonlocal asked
            asked += 1
            pair.says(b"x")
            return asked > 50

        with pytest.raises(ExpiredError):
            pair.channel.receive(1 << 16, expired)


def test_silence_and_a_peer_that_does_not_read_expire() -> None:
    with Pair() as pair:
        with pytest.raises(ExpiredError):
            pair.channel.receive(0, after(0.05))
        with pytest.raises(ExpiredError):
            pair.channel.send({}, [bytes(1 << 20)], after(0.05))
