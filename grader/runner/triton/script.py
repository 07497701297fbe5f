"""A script whose kernels in Triton run on the simulator: ``python -m grader.runner.triton.script FILE``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import triton
from triton import knobs

from grader.runner.triton.answers import answer_for
from grader.runner.triton.driver import Driver
from grader.runner.triton.memory import Memory, OnTheSimulator
from grader.runner.triton.ptx import end_with_ptx
from grader.runner.triton.runtime import Runtime


def main() -> None:
    """Run the script of the command line as Python would."""
    runtime = Runtime()
    memory = Memory(runtime)
    knobs.runtime.add_stages_inspection_hook = end_with_ptx
    triton.runtime.driver.set_active(Driver(runtime, memory))
    answer_for(runtime)
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    with OnTheSimulator(memory):
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
