"""A script whose kernels in Triton run on the simulator: ``python -m grader.runner.triton.script FILE``."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from grader.runner.pytorch.device import Device  # isort: skip (it has to come before PyTorch)

import triton
from triton import knobs
from triton.runtime.jit import JITFunction

from grader.runner.pytorch.answers import answer_for
from grader.runner.pytorch.cuda import complete
from grader.runner.triton.driver import Driver
from grader.runner.triton.ptx import end_with_ptx
from grader.runner.triton.resources import tell_resources
from grader.runner.triton.runtime import Runtime
from grader.runner.triton.stopwatch import without_clock

if TYPE_CHECKING:
    from types import TracebackType

_PACKAGE = str(Path(__file__).parents[2])


def main() -> None:
    """Run the script of the command line as Python would."""
    runtime = Runtime()
    device = Device()
    knobs.runtime.add_stages_inspection_hook = end_with_ptx
    triton.runtime.driver.set_active(Driver(runtime, device))
    answer_for(runtime)
    complete(runtime, device)
    _keep_files_apart()
    tell_resources()
    without_clock()
    sys.excepthook = _traceback_of_script
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        device.close()


def _keep_files_apart() -> None:
    """Let a build belong to the file of its kernel: Triton would use it for a copy, and name the first."""
    plain = JITFunction.cache_key.fget
    JITFunction.cache_key = property(lambda kernel: f"{plain(kernel)}-{kernel.fn.__code__.co_filename}")


def _traceback_of_script(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an exception as Python would if it had started the script itself."""
    report = traceback.TracebackException(kind, error, trace)
    part: traceback.TracebackException | None = report
    while part is not None:
        part.stack = traceback.StackSummary.from_list(
            [frame for frame in part.stack if not frame.filename.startswith((_PACKAGE, "<frozen runpy>"))]
        )
        part = part.__cause__ or part.__context__
    sys.stderr.write("".join(report.format()))


if __name__ == "__main__":
    main()
