"""Builds a whole program of one ``.cu`` file for the sim, as ``grader simulate program.cu`` wants it.

It is the user's own program, run as the user, so it is built without a sandbox.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from grader.languages.cuda.compile import FOR_THE_SIM, PTX_ARCHITECTURE

if TYPE_CHECKING:
    from pathlib import Path

    from grader.languages.cuda.toolchain import Toolchain

_FLAGS = (
    "-std=c++17",
    *FOR_THE_SIM,
    *("-gencode", f"arch={PTX_ARCHITECTURE},code={PTX_ARCHITECTURE}"),
    *("-cudart", "shared"),
)


def build_program(source: Path, program: Path, toolchain: Toolchain, runtime: Path) -> bool:
    """Build ``source`` into ``program``; nvcc's messages go where ours go.

    Args:
        source: the file, by the path that findings shall show.
        program: where the program goes.
        toolchain: the compilers.
        runtime: the folder of the CUDA runtime library to link with.

    Returns:
        Whether nvcc accepted it.
    """
    folders = (f"-L{runtime}", f"-L{toolchain.libraries}")
    command: list[str | Path] = [toolchain.nvcc, *_FLAGS, *folders, "-o", program, source]
    environment = {**os.environ, "PATH": f"{toolchain.environment['PATH']}:{os.environ.get('PATH', '')}"}
    return subprocess.run(command, env=environment, check=False).returncode == 0
