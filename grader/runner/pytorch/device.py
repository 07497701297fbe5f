"""The CUDA device of a PyTorch for the CPU alone, whose memory is the simulator's.

Its library, which ``device.cpp`` is the source of, has to be there before PyTorch first looks for a device:
this module loads it, then PyTorch.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

_LIBRARY = ctypes.CDLL(os.environ.pop("GRADER_PYTORCH_DEVICE"))

if TYPE_CHECKING:
    import torch

_PACKAGE = Path(__file__).parents[2]


class _Position(ctypes.Structure):
    _fields_ = (("file", ctypes.c_char_p), ("line", ctypes.c_uint))


class Device:
    """The device of this process's tensors."""

    def __init__(self) -> None:
        _LIBRARY.grader_stream.restype = ctypes.c_uint64
        self._position = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Position))(_tell_position)
        _LIBRARY.grader_ask_position(self._position)

    @property
    def stream(self) -> int:
        """The stream that this thread's operators work on."""
        return int(_LIBRARY.grader_stream())

    @stream.setter
    def stream(self, stream: int) -> None:
        _LIBRARY.grader_set_stream(ctypes.c_uint64(stream))

    def close(self) -> None:
        """Give all memory back: whatever tensors remain may not be used any more."""
        _LIBRARY.grader_release_memory()

    def enter(self, tensor: torch.Tensor) -> int:
        """Address of a tensor's first element.

        Raises:
            ValueError: a kernel cannot access it.
        """
        if not (tensor.is_cuda or tensor.is_pinned()):
            raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
        return tensor.data_ptr()


def _tell_position(position: ctypes._Pointer[_Position]) -> None:
    """Where the script calls PyTorch, which has called this."""
    frame = sys._getframe(1) if hasattr(sys, "_getframe") else None  # noqa: SLF001
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_file() and "site-packages" not in path.parts and _PACKAGE not in path.parents:
            position.contents.file = str(path).encode()
            position.contents.line = frame.f_lineno
            return
        frame = frame.f_back
