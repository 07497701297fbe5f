"""Runs programs of the baseline with the shared CUDA runtime, for ``grader simulate``.

    python run_programs.py LIBRARIES PROGRAMS ARRAYS RESULTS

PROGRAMS is a JSON list of programs: the names of their arrays in order, and their steps as runners get them.
ARRAYS and RESULTS hold the bytes of these arrays before and after, by program and name.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import numpy as np

from grader.runner.library import argument

libraries, programs, arrays, results = sys.argv[1:]
code = [ctypes.CDLL(path) for path in libraries.split(":")]
runtime = ctypes.CDLL("libcudart.so.13")


def checked(status: int) -> None:
    assert status == 0, status


held, left = np.load(arrays), {}
for number, (names, steps) in enumerate(json.loads(Path(programs).read_text())):
    pointers = {}
    for name in names:
        data, pointer = held[f"{number} {name}"], ctypes.c_void_p()
        checked(runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(data.nbytes)))
        checked(
            runtime.cudaMemcpy(pointer, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes), 1)
        )
        pointers[name] = pointer
    for step in steps:
        function = next(getattr(one, step["function"]) for one in code if hasattr(one, step["function"]))
        addresses = [pointer.value for pointer in pointers.values()]
        function(*(argument(kind, value, addresses, [0]) for kind, value in step["arguments"]))
        checked(runtime.cudaDeviceSynchronize())
    for name, pointer in pointers.items():
        data = np.empty_like(held[f"{number} {name}"])
        checked(
            runtime.cudaMemcpy(data.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(data.nbytes), 2)
        )
        left[f"{number} {name}"] = data
        checked(runtime.cudaFree(pointer))
np.savez(results, **left)
