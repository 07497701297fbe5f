from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.runner.protocol import (
    CHUNK,
    HEADER_CAP,
    MAGIC,
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

    def __init__(self) -> None:
        reading, self.write_end = os.pipe()
        self.read_end, writing = os.pipe()
        self.channel = Channel(reading, writing)
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
        frame(b"[]"),
        frame(b"{"),
        frame(b'{"t": NaN}'),
        frame(b"\xff\xfe"),
        frame(b"[" * 60_000),
        frame(b'{"t": ' + b"1" * 5000 + b"}"),
    ],
    ids=["text", "header", "payload", "list", "cut", "nan", "binary", "deep", "number"],
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
