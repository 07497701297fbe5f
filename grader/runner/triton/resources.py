"""Registers and spilled bytes of a compiled kernel, as Triton's own ptxas counts them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from triton import knobs
from triton.compiler import CompiledKernel

from grader.runner.triton.ptx import CAPABILITY

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


def tell_resources() -> None:
    """Let ``n_regs`` and ``n_spills`` of each kernel be what ptxas says, which runs when they are read."""
    CompiledKernel.n_regs = _Counted(0)
    CompiledKernel.n_spills = _Counted(1)


class _Counted:
    """An attribute of a compiled kernel; what its loader writes to it is not kept."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, kernel: Any, _owner: object = None) -> int:  # noqa: ANN401 (Triton's)
        return _resources(kernel.asm["ptx"])[self._index]

    def __set__(self, _kernel: object, _value: int) -> None:
        pass


@cache
def _resources(ptx: str) -> tuple[int, int]:
    """Registers of a thread, and 4-byte words that it spills.

    Raises:
        subprocess.CalledProcessError: ptxas refuses the kernel.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx)
        command = [knobs.nvidia.ptxas.path, "-v", f"--gpu-name=sm_{CAPABILITY}", source]
        told = subprocess.run(
            [*command, "-o", Path(folder, "cubin")], check=True, capture_output=True, text=True
        ).stderr
    registers, spills = _REGISTERS.search(told), _SPILLS.search(told)
    words = (int(spills[1]) + int(spills[2])) // 4 if spills else 0
    return int(registers[1]) if registers else 0, words
