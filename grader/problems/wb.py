"""Labs that are written with libwb: a header with its calls, and its datasets as cases.

A dataset is a folder with ``input0.raw``, ``input1.ppm`` and the like, and ``output.raw`` or ``output.ppm``.
The program is run as libwb's labs are, but does not see the expected output: ``wbSolution`` writes the
result, and the judge compares it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from grader.problems.folder import FolderError
from grader.problems.formats import FORMATS, FormatError
from grader.problems.program import Numbers, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP = "datasets"
HEADER = "wb.h"
HEADER_FILE = Path(__file__).with_name(HEADER)

_RESULT = "result"  # the name of what the program writes, before the suffix
_EXPECTED = "expected"  # what it is told that the expected output is called: there is no such file
_IMAGES = {".ppm", ".pgm", ".pbm"}
_INPUT = re.compile(r"input(\d*)\.\w+")


def datasets(folder: Path, type_: str, rtol: float, atol: float) -> dict[str, dict[str, Run]]:
    """The runs of all datasets in a folder, in the order of their numbers.

    Args:
        folder: that has a folder for each.
        type_: of the output, as libwb's option ``-t`` names it.
        rtol: relative tolerance of numbers.
        atol: absolute tolerance; of images in steps of a byte.

    Raises:
        FolderError: there are none, or one lacks its output or is not in its format.
    """
    if not folder.is_dir():
        raise FolderError(f"{folder} is missing: put a folder there for each dataset, with its output.")
    folders = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    if not folders:
        raise FolderError(f"{folder} holds no datasets: put a folder there for each, with its output.")
    ordered = sorted(folders, key=lambda path: (len(path.name), path.name))
    return {GROUP: {path.name: _run(path, type_, rtol, atol) for path in ordered}}


def _run(folder: Path, type_: str, rtol: float, atol: float) -> Run:
    outputs = sorted(folder.glob("output.*"))
    if len(outputs) != 1:
        raise FolderError(f"{folder} has {len(outputs)} files output.*; a dataset has one.")
    (output,) = outputs
    suffix = output.suffix.lower()
    name = "pnm" if suffix in _IMAGES else "wb"
    try:
        values = FORMATS[name].read(output.read_bytes())
    except FormatError as error:
        raise FolderError(f"{output} holds {error}.") from error
    result = f"{_RESULT}{suffix}"
    inputs = _inputs(folder)
    return Run(
        expected={result: Numbers(values, name, rtol, atol)},
        arguments=(
            *("-e", f"{_EXPECTED}{suffix}", "-i", ",".join(path.name for path in inputs)),
            *("-o", result, "-t", type_),
        ),
        files={path.name: path.read_bytes() for path in inputs},
    )


def _inputs(folder: Path) -> Sequence[Path]:
    """The inputs in the order of their numbers."""
    numbered = [(match, path) for path in folder.iterdir() if (match := _INPUT.fullmatch(path.name))]
    return [path for _, path in sorted(numbered, key=lambda pair: int(pair[0][1] or 0))]
