"""How the tests build programs with nvcc, and call functions of them on a simulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.simulator.driver import LIBRARIES, SOCKET_VARIABLE, Options, Order, Simulator

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection, Mapping

FLAGS = ("-gencode", "arch=compute_80,code=compute_80", "--no-compress", "-lineinfo", "-cudart", "shared")
LIBRARY = (*FLAGS, "--shared", "-Xcompiler", "-fPIC")
CALL = "import ctypes, sys; print(getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])())"
EVERY_WAY = [
    pytest.param(Options(order=order, threads=threads), id=f"{order.name.lower()}, {threads} threads")
    for order in (Order.PROGRAM, Order.REVERSED)
    for threads in (1, 2)
]

Compile = Callable[..., Path]


def call(simulator: Simulator, library: Path, function: str) -> int:
    """What a function of the library returns in a fresh process; minus the signal if that kills it."""
    with simulator.client_socket() as channel:
        return call_through(channel, library, function)


def call_through(channel: socket.socket, library: Path, function: str) -> int:
    environment = {"LD_LIBRARY_PATH": str(LIBRARIES), SOCKET_VARIABLE: str(channel.fileno())}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", CALL, str(library), function],
        check=False,
        env={**os.environ, **environment},
        pass_fds=[channel.fileno()],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return int(done.stdout) if done.returncode == 0 else done.returncode


def marked_lines(source: str) -> Mapping[str, set[int]]:
    """The lines that end with a comment of one word, by that word."""
    lines: dict[str, set[int]] = {}
    for number, line in enumerate(source.splitlines(), 1):
        if mark := re.search(r"// (\w+)$", line):
            lines.setdefault(mark[1], set()).add(number)
    return lines


def races(library: Path, function: str, options: Options, kinds: Collection[str]) -> list[set[int]]:
    """The lines of each race that a function's kernels have; all findings must be of ``kinds``."""
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        findings = simulator.take_findings()
    assert {finding.kind for finding in findings} <= set(kinds)
    return [{place.line for place in finding.places if place.line} for finding in findings]
