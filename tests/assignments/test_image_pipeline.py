"""The assignment ``image_pipeline``: ``nox -s assignments`` runs its mutants and variants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.assignments.assignment import Assignment, load
from grader.assignments.mutants import table
from grader.problems.formats import read_pnm, write_pnm
from grader.problems.problem import MEMORY_GROUP, Case
from grader.problems.program import FRESH, Numbers, ProgramProblem
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

IMAGES = load(str(Path(__file__).parents[2] / "assignments" / "image_pipeline"))
NAMES = tuple(IMAGES.problems)


def problem(name: str) -> ProgramProblem:
    found = IMAGES.problems[name]
    assert isinstance(found, ProgramProblem)
    return found


@pytest.mark.usefixtures("ptx_only")
def test_the_reference_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {
        name: replace(
            one, cases=lambda _, one=one: tuple({case.group: case for case in one.cases(1)}.values())
        )
        for name, one in IMAGES.problems.items()
    }
    monkeypatch.setattr(Assignment, "problems", property(lambda _: some))
    request = grading.GradingRequest(IMAGES.reference, IMAGES, NAMES, GradingOptions("sim"), seed=1)
    record = grading.grade(request)
    assert [one.verdict for one in record.problems] == [Verdict.PASS] * 3
    assert (record.score.earned, record.score.decided) == (30, 30)


def test_every_mutant_edits_the_reference_and_names_a_group() -> None:
    mutants = table(IMAGES)
    assert len({mutant.id for mutant in mutants}) == len(mutants) == 20
    for mutant in mutants:
        assert mutant.text(IMAGES) != mutant.original(IMAGES)
        assert mutant.group in {*problem(mutant.problem).groups, MEMORY_GROUP}


def expected(name: str, sizes: Mapping[str, int]) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """The image of a case and what has to come of it."""
    run = problem(name).run(Case("", "", {"levels": 256, **sizes}, FRESH, 7))
    (content,), (output,) = run.files.values(), run.expected.values()
    assert isinstance(output, Numbers)
    return read_pnm(content).astype(int), output.values


def at(image: NDArray[np.generic], y: int, x: int) -> NDArray[np.generic]:
    height, width = image.shape[:2]
    nearest: NDArray[np.generic] = image[min(max(y, 0), height - 1), min(max(x, 0), width - 1)]
    return nearest


def test_blur_is_the_rounded_mean_of_the_window() -> None:
    image, blurred = expected("blur", {"width": 5, "height": 4, "radius": 2})
    for y in range(4):
        for x in range(5):
            window = [at(image, y + dy, x + dx) for dy in range(-2, 3) for dx in range(-2, 3)]
            assert blurred[y, x].tolist() == ((np.sum(window, axis=0) + 12) // 25).tolist()


def test_sobel_is_the_sum_of_both_differences() -> None:
    image, edges = expected("sobel", {"width": 4, "height": 3})
    kernel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    for y in range(3):
        for x in range(4):
            around = np.array([[at(image, y + dy, x + dx) for dx in (-1, 0, 1)] for dy in (-1, 0, 1)])
            assert edges[y, x] == min(255, abs((around * kernel).sum()) + abs((around * kernel.T).sum()))


def test_equalisation_spreads_the_values() -> None:
    image, spread = expected("equalize", {"width": 9, "height": 7, "levels": 4})
    values, counts = np.unique(image, return_counts=True)
    below, least = np.cumsum(counts), counts[0]
    table_ = dict(zip(values, np.floor((below - least) * 255 / (63 - least) + 0.5), strict=True))
    assert spread.tolist() == [[table_[value] for value in row] for row in image]
    _, black = expected("equalize", {"width": 3, "height": 2, "levels": 1})
    assert not black.any()


def test_the_courses_header_reads_what_the_judge_writes() -> None:
    assert list(problem("blur").given) == ["pnm.h"]
    image = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    assert write_pnm(image) == b"P6\n2 1\n255\n\x00\x01\x02\x03\x04\x05"
