"""Cases of a program from a folder of files, as courses have them: inputs and the outputs that are expected.

cases/01/                one case; cases/GROUP/01/ puts it into a group
    args                 arguments, separated and quoted as in a shell; none without the file
    stdin                what the program reads from its standard input; nothing without the file
    exit                 the exit code that it has to end with; 0 without the file
    expected.txt         what the output has to be, in the format that the suffix says
    expected/            or a file for each output, by its name; ``stdout`` is what the program prints
    ...                  every other file lies in the program's working folder under its name
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.problems.formats import FORMATS, FormatError
from grader.problems.program import STDOUT, Numbers, Run, Text, Words

if TYPE_CHECKING:
    from pathlib import Path

    from grader.problems.program import Expected

GROUP = "cases"
"""The group of cases that lie in no folder of a group."""

_FORMATS = {".npy": "npy", ".pgm": "pnm", ".ppm": "pnm", ".pnm": "pnm"}
_RAW = {".raw", ".bin", ".dat"}
_NAME = re.compile(r"[\w.+-]{1,100}")
_SPECIAL = {"args", "stdin", "exit"}


class FolderError(Exception):
    """A folder of cases that cannot be read; the message says which file and what to do."""


@dataclass(frozen=True)
class Rule:
    """How the expected outputs of a folder of cases are compared.

    Attributes:
        output: the file that ``expected.*`` is the content of, or ``STDOUT``.
        exact: whether text has to be met exactly, instead of word by word.
        rtol: relative tolerance of numbers.
        atol: absolute tolerance.
        raw: element type of files with a suffix such as .raw; "" where there are none.
        checked: whether a checker says what is right, so that nothing need be expected.
    """

    output: str = STDOUT
    exact: bool = False
    rtol: float = 0.0
    atol: float = 0.0
    raw: str = ""
    checked: bool = False


def fixed_cases(folder: Path, rule: Rule) -> dict[str, dict[str, Run]]:
    """The runs of all cases in a folder, by group and name, in the order of names.

    Raises:
        FolderError: there are none, or one is not as it must be.
    """
    if not folder.is_dir():
        raise FolderError(f"{folder} is missing: put a folder there for each case, with its expected output.")
    groups: dict[str, dict[str, Run]] = {}
    for path in _folders(folder):
        inner = _folders(path)
        if _expectations(path) or (rule.checked and not inner):
            groups.setdefault(GROUP, {})[path.name] = _run(path, rule)
            continue
        if not inner:
            raise FolderError(f"{path} has no expected output: add {path / 'expected.txt'}.")
        for case in inner:
            groups.setdefault(path.name, {})[f"{path.name}/{case.name}"] = _run(case, rule)
    if not groups:
        raise FolderError(f"{folder} holds no cases: put a folder there for each, with its expected output.")
    return groups


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _expectations(folder: Path) -> list[Path]:
    """The file ``expected.*``, or those in the folder ``expected``."""
    files = [path for path in folder.iterdir() if path.is_file() and path.stem == "expected"]
    inner = folder / "expected"
    return sorted(files) + (sorted(inner.iterdir()) if inner.is_dir() else [])


def _run(folder: Path, rule: Rule) -> Run:
    expectations = _expectations(folder)
    if not expectations and not rule.checked:
        raise FolderError(f"{folder} has no expected output: add {folder / 'expected.txt'}.")
    expected: dict[str, Expected] = {}
    for path in expectations:
        name = rule.output if path.parent == folder else path.name
        if name in expected:
            raise FolderError(f"{path}: {name} is expected twice.")
        expected[name] = _expected(path, rule)
    files = {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in _SPECIAL and path.stem != "expected"
    }
    for name in (*files, *expected):
        if not _NAME.fullmatch(name):
            raise FolderError(
                f"{folder}: {name!r} cannot be used as a name: letters, digits and . _ + - alone."
            )
    return Run(
        expected=expected,
        arguments=_arguments(folder / "args"),
        files=files,
        stdin=(folder / "stdin").read_bytes() if (folder / "stdin").is_file() else b"",
        exit_code=_exit_code(folder / "exit"),
        outputs=(rule.output,) if rule.checked and rule.output not in {STDOUT, *expected} else (),
    )


def _arguments(file: Path) -> tuple[str, ...]:
    if not file.is_file():
        return ()
    try:
        return tuple(shlex.split(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise FolderError(f"{file}: {error}") from error


def _exit_code(file: Path) -> int:
    if not file.is_file():
        return 0
    text = file.read_text(encoding="utf-8").strip()
    if not text.isdecimal() or int(text) > 255:
        raise FolderError(f"{file}: {text[:20]!r} is no exit code, which is a number from 0 to 255.")
    return int(text)


def _expected(path: Path, rule: Rule) -> Expected:
    content = path.read_bytes()
    name = _FORMATS.get(path.suffix.lower(), rule.raw if path.suffix.lower() in _RAW else "")
    if not name and path.suffix.lower() in _RAW:
        raise FolderError(f'{path}: say what it holds, such as raw = "float32".')
    if name:
        try:
            return Numbers(FORMATS[name].read(content), name, rule.rtol, rule.atol)
        except FormatError as error:
            raise FolderError(f"{path} holds {error}.") from error
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FolderError(f"{path} is no text: give it the suffix .npy, .pgm, .ppm or .raw.") from error
    return Text(text) if rule.exact else Words(text, rule.rtol, rule.atol)
