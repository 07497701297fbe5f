"""Makes a class as it comes from Canvas, with what each submission must get, and checks a batch against it.

    python tests/batch/make_class.py make FOLDER [--size 240]
    grader batch FOLDER/submissions --out OUT --device sim
    python tests/batch/make_class.py check FOLDER OUT

It holds every mutant and variant of the tests, as far as the size reaches, right and untouched kernels,
damaged and escaping archives, files that do not compile or are missing, and some that reach out of their
runner or take it down; as zips, folders, loose files and whole homeworks, in time and late, once and again.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import io
import itertools
import json
import re
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

TESTS = Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from first_assignment import ASSIGNMENT, KERNELS, MUTANTS, VARIANTS  # noqa: E402

from grader.records import record as results  # noqa: E402
from grader.records.exit_codes import ExitCode  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REFERENCE = TESTS.parent / "reference"
FILES = ("softmax_kernel.cu", "layernorm_kernel.cu")
PROBLEMS = {name: problem for name, problem in KERNELS.items() if problem.file in FILES}
SYNTAX = "this is no C++;\n"
ATTACKS = {  # what the launcher of softmax forward does first, and what that problem gets
    "reaches for the system": ('system("touch /tmp/taken");', "UNTRUSTED"),
    "ends its process": ("exit(0);", "FAIL"),
    "crashes": ("*(volatile int*)8 = 1;", "FAIL"),
    "floods its output": ('for (int i = 0; i < 1 << 20; ++i) puts("a line that nobody reads");', "FAIL"),
    "opens a file": ('fopen("/etc/passwd", "r");', "UNTRUSTED"),
}
CLUTTER = {  # of a whole homework
    "llm_hw3/README.md": "# Homework 3",
    "llm_hw3/.git/config": "[core]",
    "llm_hw3/kernels/unused.cu": "not even C++",
    "__MACOSX/llm_hw3/src/._softmax_kernel.cu": "resource fork",
}
SURNAMES = ("doe", "müller", "obrien", "li", "garcía", "x2")
LAUNCHER = re.compile(r"void launch_attn_softmax\([^)]*\) \{")
GARBAGE = b"PK\x03\x04 and then the connection broke"


@dataclass(frozen=True)
class Homework:
    """What a student hands in, and what it must get.

    Attributes:
        id: what it is.
        files: by name; nothing of them if ``archive`` is handed in as it is.
        expected: verdicts by problem, as far as they are known.
        archive: the bytes of a damaged zip.
    """

    id: str
    files: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)
    archive: bytes = b""


def make(folder: Path, size: int) -> None:
    """Write ``size`` submissions, and to expected.json what they must get."""
    place = folder / "submissions"
    place.mkdir(parents=True)
    expected = {}
    for number, homework in enumerate(itertools.islice(homeworks(), size)):
        name, late = _hand_in(place, number, homework)
        expected[name] = {"id": homework.id, "verdicts": dict(homework.expected), "late": late}
        expected[name]["damaged"] = bool(homework.archive)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))


def mismatches(folder: Path, out: Path) -> list[str]:
    """Where the records in ``out`` are not what ``folder`` expects, a line each."""
    expected = json.loads((folder / "expected.json").read_text())
    found = {path.parent.name for path in out.glob("*/result.json")}
    wrong = [f"{name}: not handed in" for name in found - expected.keys()]
    for name, wanted in expected.items():
        path = out / name / "result.json"
        if not path.exists():
            wrong.append(f"{name}: no record")
            continue
        record = results.read(path)
        if record.exit_code not in {ExitCode.OK, ExitCode.POINTS_LOST}:
            wrong.append(f"{name} ({wanted['id']}): {record.error or 'a fault of the machine'}")
        if bool(record.submission.error) != wanted["damaged"]:
            wrong.append(f"{name} ({wanted['id']}): error is {record.submission.error}")
        if wanted["late"] != ("handed in late" in record.submission.notes):
            wrong.append(f"{name} ({wanted['id']}): late is {not wanted['late']}")
        got = {problem.id: problem.verdict for problem in record.problems}
        wrong += [
            f"{name} ({wanted['id']}): {problem} is {got[problem]}, not {verdict}"
            for problem, verdict in wanted["verdicts"].items()
            if got[problem] != verdict
        ]
    return wrong


def homeworks() -> Iterator[Homework]:
    """One of each kind first, then all mutants and variants, then the other kinds over and over."""
    mutants, variants, others = _mutants(), _variants(), itertools.cycle(_others())
    first = ((mutants, 2), (variants, 2), (others, 8))
    for source, count in first:
        yield from itertools.islice(source, count)
    yield from mutants
    yield from variants
    yield from others


def _mutants() -> Iterator[Homework]:
    for mutant in MUTANTS:
        files = {**right_files(), mutant.file: mutant.text(ASSIGNMENT)}
        verdicts = {name: "PASS" for name, one in PROBLEMS.items() if _apart(one.file, mutant.file)}
        yield Homework(mutant.id, files, {**verdicts, mutant.problem: "FAIL"})


def _apart(file: str, edited: str) -> bool:
    return edited in FILES and file != edited


def _variants() -> Iterator[Homework]:
    for path in sorted(VARIANTS.glob("*/*.cu"), key=lambda path: path.stem):
        problem, text = PROBLEMS[path.parent.name], path.read_text()
        verdicts = {
            name: "PASS" if one.file != problem.file or f"{one.entry_point}(" in text else "FAIL"
            for name, one in PROBLEMS.items()
        }
        yield Homework(f"{problem.id}-{path.stem}", {**right_files(), problem.file: text}, verdicts)


def _others() -> Iterator[Homework]:
    right = right_files()
    yield Homework("right", right, dict.fromkeys(PROBLEMS, "PASS"))
    yield Homework("damaged", archive=GARBAGE)
    yield Homework("escaping", archive=_zipped({"../../evil.cu": "int x;"}))
    unfit = {
        "does not compile": {"softmax_kernel.cu": SYNTAX + right["softmax_kernel.cu"]},
        "missing": {},
    }
    for kind, edited in unfit.items():
        files = {name: text for name, text in right.items() if name != "softmax_kernel.cu"} | edited
        yield Homework(kind, files, _verdicts("FAIL", "FAIL"))
    for kind, (attack, verdict) in ATTACKS.items():
        text, count = LAUNCHER.subn(
            lambda found, code=attack: f"{found[0]} {code}", right["softmax_kernel.cu"]
        )
        assert count == 1
        # What a library may do is asked of the whole file.
        backward = "UNTRUSTED" if verdict == "UNTRUSTED" else "PASS"
        files = right | {"softmax_kernel.cu": f"#include <cstdio>\n#include <cstdlib>\n{text}"}
        yield Homework(kind, files, _verdicts(verdict, backward))
    untouched = {name: (ASSIGNMENT.template / name).read_text() for name in FILES}
    yield Homework("untouched", untouched, dict.fromkeys(PROBLEMS, "FAIL"))


def _verdicts(forward: str, backward: str) -> dict[str, str]:
    softmax = {"softmax_forward": forward, "softmax_backward": backward}
    return {name: softmax.get(name, "PASS") for name in PROBLEMS}


def right_files() -> dict[str, str]:
    paths = (path for path in sorted(REFERENCE.iterdir()) if path.suffix in {".cu", ".cuh"})
    return {path.name: path.read_text() for path in paths}


def _hand_in(place: Path, number: int, homework: Homework) -> tuple[str, bool]:
    """Write it in one of the ways of students; returns its name in the batch, and whether it is late."""
    student = f"{SURNAMES[number % len(SURNAMES)]}{number:03}"
    user, attachment = 1000 + number, 70000 + 10 * number
    late = number % 7 == 3
    canvas = f"{student}_{'LATE_' if late else ''}{user}"
    way = ("canvas zip", "folder", "zip", "loose files", "again", "whole homework")[number % 6]
    if homework.archive:
        way = "canvas zip"
    if way == "canvas zip":
        (place / f"{canvas}_{attachment}_hw3.zip").write_bytes(homework.archive or _zipped(homework.files))
    elif way == "folder":
        (place / student).mkdir()
        for name, text in homework.files.items():
            (place / student / name).write_text(text)
    elif way == "whole homework":
        inside = {f"llm_hw3/src/{name}": text for name, text in homework.files.items()}
        (place / f"{canvas}_{attachment}_hw3.zip").write_bytes(_zipped(inside | CLUTTER))
    elif way == "zip":
        (place / f"{student}.zip").write_bytes(_zipped(homework.files, "hw3/"))
    elif way == "loose files":
        for more, (name, text) in enumerate(homework.files.items()):
            (place / f"{canvas}_{attachment + more}_{name}").write_text(text)
    else:
        (place / f"{canvas}_{attachment}_hw3.zip").write_bytes(_zipped({"softmax_kernel.cu": SYNTAX}))
        (place / f"{canvas}_{attachment + 1}_hw3-1.zip").write_bytes(_zipped(homework.files))
    if way in {"folder", "zip"}:
        return student, False
    return f"{student}_{user}", late


def _zipped(files: Mapping[str, str], folder: str = "") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(folder + name, text)
    return content.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a class, or check a batch against it.")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--size", type=int, default=240)
    checking = commands.add_parser("check")
    checking.add_argument("folder", type=Path)
    checking.add_argument("out", type=Path)
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder, options.size)
        return 0
    wrong = mismatches(options.folder, options.out)
    print("\n".join([*wrong, f"{len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
