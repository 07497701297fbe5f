"""Writes a stack trace of the runner when its keeper sends SIGPROF; it explains a time-out, but is no proof.

The trace goes to a file in memory: the first ``HALF`` bytes are the Python frames of the main thread, then
come the native frames as ``path+0xoffset symbol``, both innermost first, and ``END``. The handler runs at
once, even if the main thread is inside the student's native code. A system call that it interrupts may return
early, so the keeper sends the signal only before it ends the process.

Layer: standard library only.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal

VARIABLE = "GRADER_WITNESS_FD"
HALF = 4096
END = b"end\n"
_FRAMES = 64
_RETURNS = (
    bytes.fromhex("48c7c00f0000000f05"),  # x86-64: the code to which a signal handler returns
    bytes.fromhex("681180d2010000d4"),  # AArch64
)


class _Symbol(ctypes.Structure):
    """What the dynamic linker knows about an address (``Dl_info``)."""

    _fields_ = (
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class Witness:
    """Writes the trace on SIGPROF, as long as this object lives."""

    def __init__(self, file: int) -> None:
        os.set_inheritable(file, False)
        self._file = file
        self._libc = ctypes.CDLL(None)
        self._libc.signal.restype = ctypes.c_void_p
        self._addresses = (ctypes.c_void_p * _FRAMES)()
        self._libc.backtrace(self._addresses, _FRAMES)  # loads its library now, not within the handler
        self._handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(self._answer)
        self._libc.signal(signal.SIGPROF, self._handler)
        # faulthandler's handler runs first, does not need the interpreter, and then calls the one above.
        faulthandler.register(signal.SIGPROF, file=file, all_threads=False, chain=True)

    def _answer(self, _number: int) -> None:
        count = self._libc.backtrace(self._addresses, _FRAMES)
        frames = [address for address in self._addresses[:count] if address]
        handlers = [index for index, address in enumerate(frames) if _returns(address)]
        lines = b"".join(map(self._line, frames[handlers[-1] + 1 if handlers else 0 :]))
        os.pwrite(self._file, lines[: HALF - len(END)] + END, HALF)

    def _line(self, address: int) -> bytes:
        symbol = _Symbol()
        if not self._libc.dladdr(ctypes.c_void_p(address), ctypes.byref(symbol)):
            return b"?\n"
        return b"%b+%#x %b\n" % (symbol.path or b"", address - (symbol.base or 0), symbol.symbol or b"")


def _returns(address: int) -> bool:
    return any(ctypes.string_at(address, len(code)) == code for code in _RETURNS)
