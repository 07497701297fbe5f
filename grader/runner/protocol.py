"""The frames that judge and runner exchange; both sides use this module.

A frame is the magic, the length of its header (u32), the length of its payload (u64), a JSON header and raw
bytes. With another magic these bytes are not in the pipe, but at the start of memory that both sides map
(``shared``). Every request carries a fresh nonce, and its answer repeats it. Nothing is unpickled or
evaluated. Anything but a valid frame within the size limits raises ``MalformedError``, and nothing more is
read then.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAGIC = b"KGR1"
MAGIC_SHARED = b"KGS1"
PREFIX = struct.Struct(">4sIQ")
HEADER_CAP = 8 << 20
CHUNK = 1 << 20
LEAST_SHARED = 1 << 16  # bytes of a payload: smaller ones fit into a pipe
TICK_SECONDS = 0.05  # time between two checks of the time-out

Header = dict[str, Any]
Bytes = bytes | bytearray | memoryview


class MalformedError(Exception):
    """The received bytes are not a frame, or not the answer to the request."""


class ClosedError(Exception):
    """The other side has closed the channel."""


class ExpiredError(Exception):
    """The other side did not answer before the caller's time-out."""


@dataclass(frozen=True)
class Frame:
    """One message: ``header`` is a JSON object, ``payload`` raw bytes.

    In shared memory the payload is a view, which the other side may still change, until the next frame.
    """

    header: Header
    payload: bytearray | memoryview


class Channel:
    """Frames over two file descriptors and, if both sides have it, ``shared`` memory.

    A caller may pass ``expired``, which is called at least every ``TICK_SECONDS`` and returns whether to give
    up. With None, the channel waits for ever.
    """

    def __init__(self, reading: int, writing: int, shared: memoryview | None = None) -> None:
        self._reading = reading
        self._writing = writing
        self._shared = shared or memoryview(b"")
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)

    def widen(self) -> None:
        """Let each pipe hold a chunk, where the system allows that: for channels with large payloads."""
        for descriptor in (self._reading, self._writing):
            with suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, CHUNK)

    def room(self, size: int) -> memoryview:
        """Where to write a payload of ``size`` bytes that is sent next."""
        shared = self.room_shared(size)
        return memoryview(bytearray(size)) if shared is None else shared

    def room_shared(self, size: int) -> memoryview | None:
        """The shared memory for a payload of ``size`` bytes that is sent next; None if pipes take it."""
        return self._shared[:size] if LEAST_SHARED <= size <= len(self._shared) else None

    def forget_shared(self) -> None:
        """Keep shared memory no longer; frames then have no room there."""
        self._shared = memoryview(b"")

    def send(
        self,
        header: Mapping[str, Any],
        payload: Sequence[Bytes] = (),
        expired: Callable[[], bool] | None = None,
    ) -> None:
        """Write one frame; the pieces of ``payload`` follow each other, or are one that fills its ``room``.

        Raises:
            ClosedError: the other side has closed the channel.
            ExpiredError: the other side did not read the frame before ``expired``.
        """
        pieces = [memoryview(piece).cast("B") for piece in payload if len(piece)]
        text = json.dumps(header, separators=(",", ":")).encode()
        size = sum(map(len, pieces))
        magic = MAGIC
        if (room := self.room_shared(size)) is not None:
            magic = MAGIC_SHARED
            if pieces[0].obj is not room.obj:
                _fill(room, pieces)
            pieces = []
        self._write(memoryview(PREFIX.pack(magic, len(text), size) + text), expired)
        for piece in pieces:
            self._write(piece, expired)

    def receive(self, payload_cap: int, expired: Callable[[], bool] | None = None) -> Frame:
        """Read one frame whose payload has at most ``payload_cap`` bytes.

        Raises:
            MalformedError: the received bytes are not such a frame.
            ClosedError: the other side closed the channel before the frame was complete.
            ExpiredError: the frame was not complete before ``expired``.
        """
        magic, header_bytes, payload_bytes = PREFIX.unpack(self._read(PREFIX.size, expired))
        shared = self._shared if magic == MAGIC_SHARED else None
        room = payload_cap if shared is None else min(payload_cap, len(shared))
        if magic not in {MAGIC, MAGIC_SHARED} or header_bytes > HEADER_CAP or payload_bytes > room:
            raise MalformedError("not a frame, or larger than allowed")
        header = parse(bytes(self._read(header_bytes, expired)))
        if shared is not None:
            return Frame(header, shared[:payload_bytes])
        return Frame(header, self._read(payload_bytes, expired))

    def exchange(
        self,
        header: Mapping[str, Any],
        payload: Sequence[Bytes],
        payload_cap: int,
        expired: Callable[[], bool],
    ) -> Frame:
        """Send a request with a fresh nonce and return the answer, which must repeat the nonce.

        Raises:
            MalformedError: the runner wrote before it was asked, or its answer belongs to another request.
            ClosedError: the other side has closed the channel.
            ExpiredError: there was no complete answer before ``expired``.
        """
        if self._ready(self._reading, 0.0):
            self._read(1, expired)
            raise MalformedError("the runner wrote before it was asked")
        nonce = os.urandom(16).hex()
        self.send({**header, "nonce": nonce}, payload, expired)
        frame = self.receive(payload_cap, expired)
        if frame.header.pop("nonce", None) != nonce:
            raise MalformedError("the answer does not belong to the request")
        return frame

    def _write(self, data: memoryview, expired: Callable[[], bool] | None) -> None:
        while data:
            self._wait(self._writing, expired, writing=True)
            try:
                data = data[os.write(self._writing, data[:CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClosedError("the other side closed the channel") from error

    def _read(self, size: int, expired: Callable[[], bool] | None) -> bytearray:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            self._wait(self._reading, expired, writing=False)
            try:
                count = os.readv(self._reading, [view[filled : filled + CHUNK]])
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClosedError("the other side closed the channel") from error
            if not count:
                raise ClosedError("the other side closed the channel")
            filled += count
        return data

    def _wait(self, descriptor: int, expired: Callable[[], bool] | None, *, writing: bool) -> None:
        seconds = None if expired is None else TICK_SECONDS
        while True:
            if (
                expired is not None and expired()
            ):  # checked first, because there may always be something to read
                raise ExpiredError("no answer in time")
            if self._ready(descriptor, seconds, writing=writing):
                return

    @staticmethod
    def _ready(descriptor: int, seconds: float | None, *, writing: bool = False) -> bool:
        poll = select.poll()  # unlike select(), it works with any descriptor number
        poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)
        return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))


def _fill(memory: memoryview, pieces: Sequence[memoryview]) -> None:
    """Copy the pieces to the start of memory, one behind the other."""
    offset = 0
    for piece in pieces:
        memory[offset : offset + len(piece)] = piece
        offset += len(piece)


def parse(text: bytes) -> Header:
    """The header in ``text``.

    Raises:
        MalformedError: it is not a JSON object, or has NaN, infinity or too deep nesting.
    """
    try:
        header = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise MalformedError("the header is not a JSON object") from error
    if not isinstance(header, dict):
        raise MalformedError("the header is not a JSON object")
    return header


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
