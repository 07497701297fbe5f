"""Programs around one of the baseline's sources, built for the simulator."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grader

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(grader.__file__).parent / "baseline"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """The path of a program, from a source's name and a text that includes it as SOURCE."""

    def built(source: str, text: str) -> str:
        target = tmp_path_factory.mktemp("baseline") / "program"
        target.with_suffix(".cu").write_text(text.replace("SOURCE", f'"{FOLDER / source}"'))
        options = ["-cudart", "shared", "--no-compress", "-gencode", "arch=compute_80,code=compute_80"]
        subprocess.run(["nvcc", *options, "-o", target, target.with_suffix(".cu")], check=True)
        return str(target)

    return built
