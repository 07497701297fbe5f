import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.simulator.driver import LIBRARIES, SOCKET_VARIABLE, Simulator

PROGRAMS = Path(__file__).parent / "programs"
FLAGS = ("-gencode", "arch=compute_80,code=compute_80", "--no-compress", "-lineinfo", "-cudart", "shared")
CALL = "import ctypes, sys; print(getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])())"

Compile = Callable[..., Path]


def call(simulator: Simulator, library: Path, function: str) -> int:
    """What a function of the library returns in a fresh process; minus the signal if that kills it."""
    with simulator.client_socket() as channel:
        return call_through(channel, library, function)


def call_through(channel: socket.socket, library: Path, function: str) -> int:
    environment = {"LD_LIBRARY_PATH": str(LIBRARIES), SOCKET_VARIABLE: str(channel.fileno())}
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(library), function],
        check=False,
        env={**os.environ, **environment},
        pass_fds=[channel.fileno()],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return int(done.stdout) if done.returncode == 0 else done.returncode


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc on PATH")
    folder = tmp_path_factory.mktemp("built")

    def compile_(source: str | Path, name: str, *flags: str) -> Path:
        if isinstance(source, str):
            source, text = folder / f"{name}.cu", source
            source.write_text(text)
        built = folder / name
        subprocess.run(
            ["nvcc", "-O1", *flags, "-o", str(built), str(source)], check=True, stderr=subprocess.PIPE
        )
        return built

    return compile_


@pytest.fixture(scope="session")
def runtime_library(nvcc: Compile) -> Path:
    return nvcc(PROGRAMS / "runtime.cu", "runtime.so", *FLAGS, "--shared", "-Xcompiler", "-fPIC")
