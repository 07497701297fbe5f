"""The frames between judge and runner, the same module on both sides.

A frame is the magic, the length of its header (u32), the length of its payload (u64), a JSON header and raw
bytes. Every request carries a fresh nonce, and its answer repeats it. Nothing is unpickled or evaluated;
whatever is not exactly a frame within its caps is ``MalformedError``, and the peer is not read any further.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAGIC = b"KGR1"
PREFIX = struct.Struct(">4sIQ")
HEADER_CAP = 8 << 20
CHUNK = 1 << 20

Header = dict[str, Any]
Bytes = bytes | bytearray | memoryview


class MalformedError(Exception):
    """What came is no frame, or not the answer to what was asked."""


class ClosedError(Exception):
    """The other side is gone."""


class ExpiredError(Exception):
    """The other side did not answer in time."""


@dataclass(frozen=True)
class Frame:
    """One message: ``header`` is a JSON object, ``payload`` raw bytes."""

    header: Header
    payload: bytearray


class Channel:
    """Frames over two descriptors; deadlines are in seconds of ``time.monotonic``, None for never."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)

    def send(
        self, header: Mapping[str, Any], payload: Sequence[Bytes] = (), deadline: float | None = None
    ) -> None:
        """Write one frame; the pieces of ``payload`` follow each other.

        Raises:
            ClosedError: the other side is gone.
            ExpiredError: it did not read until ``deadline``.
        """
        pieces = [memoryview(piece).cast("B") for piece in payload if len(piece)]
        text = json.dumps(header, separators=(",", ":")).encode()
        self._write(memoryview(PREFIX.pack(MAGIC, len(text), sum(map(len, pieces))) + text), deadline)
        for piece in pieces:
            self._write(piece, deadline)

    def receive(self, payload_cap: int, deadline: float | None = None) -> Frame:
        """Read one frame whose payload holds at most ``payload_cap`` bytes.

        Raises:
            MalformedError: what came is no such frame.
            ClosedError: the other side ended before the frame did.
            ExpiredError: the frame was not complete at ``deadline``.
        """
        magic, header_bytes, payload_bytes = PREFIX.unpack(self._read(PREFIX.size, deadline))
        if magic != MAGIC or header_bytes > HEADER_CAP or payload_bytes > payload_cap:
            raise MalformedError("not a frame, or one beyond its caps")
        header = parse(bytes(self._read(header_bytes, deadline)))
        return Frame(header, self._read(payload_bytes, deadline))

    def exchange(
        self, header: Mapping[str, Any], payload: Sequence[Bytes], payload_cap: int, deadline: float
    ) -> Frame:
        """Ask and take the answer, which must repeat a fresh nonce.

        Raises:
            MalformedError: something was said unasked, or the answer is not one to this question.
            ClosedError: the other side is gone.
            ExpiredError: there was no whole answer at ``deadline``.
        """
        if self._ready(self._reading, 0.0):
            self._read(1, deadline)
            raise MalformedError("the runner spoke unasked")
        nonce = os.urandom(16).hex()
        self.send({**header, "nonce": nonce}, payload, deadline)
        frame = self.receive(payload_cap, deadline)
        if frame.header.pop("nonce", None) != nonce:
            raise MalformedError("the answer belongs to no question")
        return frame

    def _write(self, data: memoryview, deadline: float | None) -> None:
        while data:
            self._wait(self._writing, deadline, writing=True)
            try:
                data = data[os.write(self._writing, data[:CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClosedError("the other side closed the channel") from error

    def _read(self, size: int, deadline: float | None) -> bytearray:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            self._wait(self._reading, deadline, writing=False)
            try:
                got = os.readv(self._reading, [view[filled : filled + CHUNK]])
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClosedError("the other side closed the channel") from error
            if not got:
                raise ClosedError("the other side closed the channel")
            filled += got
        return data

    def _wait(self, descriptor: int, deadline: float | None, *, writing: bool) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if (left is not None and left <= 0) or not self._ready(descriptor, left, writing=writing):
            raise ExpiredError("no answer in time")

    @staticmethod
    def _ready(descriptor: int, seconds: float | None, *, writing: bool = False) -> bool:
        poll = select.poll()  # unlike select(), good for any descriptor number
        poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)
        return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))


def parse(text: bytes) -> Header:
    """The header in ``text``.

    Raises:
        MalformedError: it is no JSON object, or holds NaN, infinity or absurd nesting.
    """
    try:
        header = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise MalformedError("the header is no JSON object") from error
    if not isinstance(header, dict):
        raise MalformedError("the header is no JSON object")
    return header


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
