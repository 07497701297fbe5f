"""What becomes of tiers: cases in the interval find one, or an input in it shows that they should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from soundness.examples import example

from grader.cli.main import commands
from grader.soundness import mutate as module
from grader.soundness import mutation_report
from grader.soundness.intervals import Interval, Limit
from grader.soundness.kernels import right_kernels
from grader.soundness.killers import Status
from grader.soundness.mutants import AutomaticMutant, sample, tier_mutants
from grader.soundness.mutate import Plan, mutate
from grader.soundness.tiers import FAMILY, Tier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.assignments.assignment import Assignment
    from grader.soundness.kernels import RightKernel
    from grader.soundness.mutate import Judgement

GPU_SIZES = 1 << 23  # three arrays of so many elements are beyond the simulator's budget
TIERS = {
    "a case is within": ("(n) - ({})", 1024, 1500),
    "no case is within": ("(n) - ({})", 1100, 1200),
    "right": ("(n) - (blockIdx.x > 1 << 20 && {})", 1100, 1200),
    "the same": ("(n) + 0", 1024, 1500),
    "large": ("(n) - ({})", GPU_SIZES, None),
    "no code": ("(n) - no_such_name * ({})", 1024, 1500),
}


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    return example(tmp_path_factory.mktemp("tiers") / "own")


@pytest.fixture(scope="module")
def kernel(assignment: Assignment) -> RightKernel:
    return next(one for one in right_kernels(assignment) if one.name == "reference")


def mutant(kernel: RightKernel, key: str) -> AutomaticMutant:
    """The bound of the reference's kernel, changed in an interval."""
    form, low, high = TIERS[key]
    text = kernel.files["vector_add.cu"]
    begin = text.index("i < n") + len("i < ")
    new = form.format(f"n >= {low}" if high is None else f"n >= {low} && n < {high}")
    interval = Interval((Limit("n", ("n",), low, high),))
    tier = Tier(f"{FAMILY}bound", begin, begin + 1, "n", new, interval=interval, change="the last is missed")
    return AutomaticMutant(key, "reference/vector_add.cu", "vector_add.cu", tier, (1, 1), True, (kernel,))


@pytest.fixture(scope="module")
def judgements(assignment: Assignment, kernel: RightKernel) -> Mapping[str, Judgement]:
    mine = tuple(mutant(kernel, key) for key in TIERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "tier_mutants", lambda _kernels, _seed: mine)
        return {one.mutant.key: one for one in mutate(assignment, Plan(tiers=True))}


def test_what_becomes_of_tiers(judgements: Mapping[str, Judgement]) -> None:
    assert {key: one.status for key, one in judgements.items()} == {
        "a case is within": Status.KILLED,
        "no case is within": Status.SURVIVED,
        "right": Status.UNSEEN,
        "the same": Status.EQUIVALENT,
        "large": Status.GPU_ALONE,
        "no code": Status.NOT_COMPILED,
    }


def test_only_cases_within_are_run(judgements: Mapping[str, Judgement]) -> None:
    (killed,) = judgements["a case is within"].findings.values()
    assert killed.launched < 10
    assert 1024 <= int(killed.case.partition(",")[0]) < 1500


def test_a_survivor_has_an_input_that_would_find_it(judgements: Mapping[str, Judgement]) -> None:
    (survived,) = judgements["no case is within"].findings.values()
    assert 1100 <= int(survived.case.partition(",")[0]) < 1200
    assert "were never written" in survived.text


def test_the_report_has_the_share_that_survives(judgements: Mapping[str, Judgement]) -> None:
    found = list(judgements.values())
    page = mutation_report.report(found, {})
    assert (
        "| problem | mutants | do not compile | same PTX | no input shows it | for a GPU alone | killed |"
        in page
    )
    assert "| vector_add | 6 | 1 | 1 | 1 | 1 | 1 | 0 | 1 | 50.0% |" in page
    assert "| tier: bound | 6 | 1 | 1 | 1 | 1 | 1 | 0 | 1 | 50.0% |" in page
    assert "needed: a case of vector_add where 1,100 <= n < 1,200, such as 11" in page
    assert "[[survivor]]" not in page


@pytest.mark.parametrize(("killed", "sound"), [(98, False), (99, True)])
def test_one_in_a_hundred_may_survive(
    judgements: Mapping[str, Judgement], killed: int, *, sound: bool
) -> None:
    found = [judgements["no case is within"], *[judgements["a case is within"]] * killed]
    assert mutation_report.sound(found, {}) is sound


def test_a_sample_takes_of_each_right_kernel(assignment: Assignment) -> None:
    kernels = right_kernels(assignment)
    chosen = sample(tier_mutants(kernels, 0), 3, 0)
    assert {one.kernels[0].id: 0 for one in chosen}.keys() == {kernel.id for kernel in kernels}
    for kernel in kernels:
        mine = [one.edit.operator for one in chosen if one.kernels == (kernel,)]
        assert len(mine) == len(set(mine)) == 3
    assert len({one.key for one in tier_mutants(kernels, 0)}) == len(tier_mutants(kernels, 0))


def test_the_command_judges_tiers(assignment: Assignment, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["assignment", "mutate", str(assignment.folder), "--tiers", "--sample", "1", "--seconds", "0"]
    assert commands.main(command, standalone_mode=False) == 1
    assert "| problem | mutants | do not compile | same PTX | no input shows it |" in capsys.readouterr().out
