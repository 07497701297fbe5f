"""Every mutant is one edit that applies, in a group that exists."""

import pytest
from first_assignment import ASSIGNMENT, KERNELS, MUTANTS

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_an_edit_applies_exactly_once_and_changes_the_file(mutant: Mutant) -> None:
    assert mutant.text(ASSIGNMENT) != mutant.original(ASSIGNMENT)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_its_group_is_one_of_the_problem(mutant: Mutant) -> None:
    problem = KERNELS[mutant.problem]
    assert mutant.group in {*problem.groups, MEMORY_GROUP}


def test_no_two_mutants_are_the_same() -> None:
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.problem, mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


def test_an_edit_that_does_not_apply_names_itself() -> None:
    lost = Mutant(
        id="lost",
        problem="softmax_forward",
        file="row.cuh",
        old="not there",
        new="",
        why="",
        group=MEMORY_GROUP,
    )
    with pytest.raises(ValueError, match=r"lost: 'not there' occurs 0 times in row\.cuh"):
        lost.text(ASSIGNMENT)


def test_most_causes_are_named() -> None:
    """``test_matrix.py`` sees that the judge keeps what the table promises."""
    wrong = [mutant for mutant in MUTANTS if mutant.numbers]
    assert sum(bool(mutant.diagnosis) for mutant in wrong) >= 0.6 * len(wrong)
