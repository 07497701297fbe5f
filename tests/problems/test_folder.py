"""Cases from a folder of files, and a message for each folder that is not as it must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.problems.folder import FolderError, Rule, fixed_cases
from grader.problems.formats import FORMATS
from grader.problems.program import STDOUT, Numbers, Run, Text, Words, program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def written(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_case_has_arguments_input_and_expected_output(tmp_path: Path) -> None:
    files = {
        "01/args": "-n 3 'two words' input.txt\n",
        "01/stdin": "yes\n",
        "01/exit": "3\n",
        "01/input.txt": "1 2 3",
        "01/expected.txt": "6\n",
        "01/.hidden/x": "",
        "edges/empty/expected.txt": "0\n",
    }
    groups = fixed_cases(written(tmp_path, files), Rule(rtol=0.5))
    assert groups == {
        "cases": {
            "01": Run(
                expected={STDOUT: Words("6\n", 0.5)},
                arguments=("-n", "3", "two words", "input.txt"),
                files={"input.txt": b"1 2 3"},
                stdin=b"yes\n",
                exit_code=3,
            )
        },
        "edges": {"edges/empty": Run(expected={STDOUT: Words("0\n", 0.5)})},
    }


def test_an_output_may_be_a_file_and_there_may_be_several(tmp_path: Path) -> None:
    image, reals = np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([1.5, 2.5], np.float32)
    files = {
        "one/expected.pgm": FORMATS["pnm"].write(image),
        "two/expected/stdout": "done\n",
        "two/expected/c.raw": FORMATS["float32"].write(reals),
    }
    cases = fixed_cases(written(tmp_path, files), Rule("out.pgm", exact=True, atol=1.0, raw="float32"))[
        "cases"
    ]
    one, two = cases["one"].expected["out.pgm"], cases["two"].expected["c.raw"]
    assert isinstance(one, Numbers)
    assert isinstance(two, Numbers)
    assert (one.format, one.atol, one.values.tolist()) == ("pnm", 1.0, image.tolist())
    assert (two.format, two.values.tolist()) == ("float32", [1.5, 2.5])
    assert cases["two"].expected["stdout"] == Text("done\n")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no cases"),
        ({"01/input.txt": "1"}, "has no expected output: add"),
        ({"group/01/input.txt": "1"}, "has no expected output: add"),
        ({"01/expected.txt": "1", "01/args": "'open"}, "No closing quotation"),
        ({"01/expected.txt": "1", "01/exit": "-1"}, "'-1' is no exit code"),
        ({"01/expected.txt": b"\xff\xfe\x00"}, "is no text: give it the suffix"),
        ({"01/expected.raw": b"1234"}, 'say what it holds, such as raw = "float32"'),
        ({"01/expected.npy": "1 2 3"}, "holds no .npy file"),
        ({"01/expected.txt": "1", "01/expected/stdout": "1"}, "stdout is expected twice"),
        ({"01/expected.txt": "1", "01/my input.txt": "1"}, "'my input.txt' cannot be used as a name"),
    ],
)
def test_what_is_wrong_with_a_folder_is_told(
    tmp_path: Path, files: Mapping[str, str | bytes], message: str
) -> None:
    with pytest.raises(FolderError) as caught:
        fixed_cases(written(tmp_path, files), Rule())
    assert message in str(caught.value)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"cases is missing: put a folder there"):
        fixed_cases(tmp_path / "cases", Rule())


def test_a_program_has_cases_of_both_kinds_with_seeds_of_their_own() -> None:
    always = Run(expected={STDOUT: Words("1")})
    problem = program(
        id="p",
        file="p.cu",
        fixed={"cases": {"01": always}},
        run=lambda case: Run(expected={STDOUT: Words(str(case.seed))}),
        sizes={"small": [{"n": 1}], "large": [{"n": 1000}]},
    )
    first, second = problem.cases(1), problem.cases(2)
    assert problem.groups == ("cases", "small", "large")
    assert [case.name for case in first] == ["01", "n = 1", "n = 1,000"]
    assert problem.run(first[0]) is always
    assert len({case.seed for case in (*first[1:], *second[1:])}) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "p has no cases"),
        ({"sizes": {"a": [{"n": 1}]}}, "sizes of cases need the function run"),
        ({"sizes": {"a": [{"n": 1}], "b": [{"n": 1}]}}, "p has two cases 'n = 1'"),
    ],
)
def test_a_program_without_cases_is_refused(arguments: Mapping[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        program(id="p", file="p.cu", **arguments)  # type: ignore[arg-type]
