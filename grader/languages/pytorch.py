"""Builds the library that gives an installed PyTorch without CUDA a CUDA device, the simulator's.

It depends on the version of PyTorch, so it is built where that is known, once, and kept in the cache.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from grader.languages.cache import key
from grader.records.errors import MachineError

if TYPE_CHECKING:
    from grader.languages.cache import Cache

_SOURCE = Path(__file__).parents[1] / "runner" / "pytorch" / "device.cpp"
_LIBRARY = "libgrader_pytorch.so"
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-shared")


def device_library(cache: Cache) -> Path:
    """The library of ``device.cpp`` for the PyTorch that is installed here.

    Raises:
        MachineError: PyTorch or g++ is missing, PyTorch has a CUDA of its own, or g++ refuses the source.
    """
    spec, compiler = importlib.util.find_spec("torch"), shutil.which("g++")
    if spec is None or spec.origin is None:
        raise MachineError("PyTorch is not installed: python -m pip install torch")
    if compiler is None:
        raise MachineError("g++ is not installed, which builds PyTorch's device: apt install g++")
    package = Path(spec.origin).parent
    if (package / "lib" / "libtorch_cuda.so").exists():
        raise MachineError(
            f"PyTorch {version('torch')} here is built for CUDA, and its tensors belong to a GPU: "
            "install its build for the CPU, in a virtual environment of its own"
        )
    entry = key("PyTorch's device", _SOURCE.read_bytes(), version("torch"), str(package), compiler, *_FLAGS)
    if (kept := cache.find(entry)) is not None:
        return kept / _LIBRARY
    sys.stderr.write("grader: PyTorch's device on the simulator is built, once: about 15 s.\n")
    headers = package / "include"
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, _LIBRARY)
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(library)]
        command += ["-isystem", str(headers), "-isystem", str(headers / "torch/csrc/api/include")]
        command += [f"-L{package / 'lib'}", f"-Wl,-rpath,{package / 'lib'}", "-ltorch_cpu", "-lc10"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MachineError(f"g++ refuses {_SOURCE.name} with PyTorch {version('torch')}: {done.stderr}")
        return cache.store(entry, {_LIBRARY: library.read_bytes()}) / _LIBRARY
