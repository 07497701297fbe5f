"""Contents and the verification of timed calls, against slots that a test spoils."""

from __future__ import annotations

from dataclasses import replace
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from first_assignment import KERNELS as PROBLEMS
from problems.formulas import FORMULAS

from grader.devices.timed import Content
from grader.judge.timing import verification
from grader.judge.timing.verification import CONTENTS, Bases, Extent, Threads, Verifier, draw, extents
from grader.problems import contents, formula
from grader.problems.distributions import build_cases
from grader.problems.dtypes import DTYPES
from grader.problems.problem import (
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Role,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from grader.devices.timed import Piece
    from grader.problems.problem import Problem

    Outputs = list[dict[str, NDArray[Any]]]


SIZES: Mapping[str, Mapping[str, int]] = {
    "softmax_forward": {"batch_size": 3, "nhead": 2, "from_len": 33, "to_len": 40, "mask_future": 1},
    "softmax_backward": {"rows": 500, "softmax_len": 40},
    "layernorm_forward": {"batch_size": 500, "hidden_dim": 64},
    "layernorm_backward": {"batch_size": 500, "hidden_dim": 64},
}
SLOTS = 6


class Session:
    """Slots that hold right answers, computed from the bases by the oracle, until a test spoils them."""

    def __init__(self, problem: Problem, case: Case, bases: Bases, contents: Sequence[Content]) -> None:
        self.outputs: Outputs = []
        self.kept: Outputs = []
        for content in contents:
            right = problem.oracle(case, bases.inputs[content.base])
            self.outputs.append({})
            for name, expectation in right.items():
                output = expectation.candidates[0].expected.astype(np.float32)
                turn = content.turn if name in problem.turning else 0
                self.outputs[-1][name] = np.roll(output, turn, axis=0)

    def keep(self, pieces: Sequence[Piece]) -> None:
        self.kept.append(
            {
                name: np.concatenate(
                    [
                        self.outputs[piece.slot][name].reshape(-1)[piece.first : piece.first + piece.elements]
                        for piece in pieces
                        if piece.array == name
                    ]
                )
                for name in {piece.array for piece in pieces}
            }
        )

    def fetch(self, _using: object) -> Outputs:
        kept, self.kept = self.kept, []
        return kept


def verify(
    problem: KernelProblem,
    *,
    sweeps: int = 1,
    whole: bool = False,
    spoil: Sequence[tuple[int, str, int]] = (),
    sizes: Mapping[str, int] | None = None,
    seconds: float = 0.0,
) -> Verifier:
    """``spoil`` names slot, output and element of what is wrong after every sweep.

    With ``seconds``, the oracle is said to take as long for four slices.
    """
    (case,) = build_cases(5, [("any", sizes or SIZES[problem.id], "normal")])
    seeds, random = iter(range(1000)), SystemRandom()
    bases = draw(problem, case, seeds, SLOTS)
    judged = (
        [Extent(slices, 4, seconds) for slices in problem.slices]
        if seconds
        else extents(problem, case, bases.inputs[0])
    )
    with Threads() as pool:
        verifier = Verifier(problem, case, judged, pool, SLOTS, random)
        for _ in range(sweeps):
            contents = bases.contents(SLOTS, random)
            session = Session(problem, case, bases, contents)
            for slot, name, element in spoil:
                flat = session.outputs[slot][name].reshape(-1)
                flat[element] += 1e-3 + abs(flat[element])
            verifier.sample(session, bases, contents, whole=whole)  # type: ignore[arg-type]
            verifier.fetch(session)  # type: ignore[arg-type]
        verifier.settle()
    return verifier


@pytest.mark.parametrize("problem_id", SIZES)
def test_right_outputs_are_right_wherever_the_rows_went(problem_id: str) -> None:
    verifier = verify(PROBLEMS[problem_id], sweeps=3, whole=True)
    assert (verifier.verified, verifier.wrong) == (3 * SLOTS, 0)


@pytest.mark.parametrize("problem_id", SIZES)
def test_one_wrong_element_of_a_call_is_seen_when_the_whole_call_is_looked_at(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    for slices in problem.slices:
        for name in slices.outputs:
            spoil = [(slot, name, 11) for slot in range(SLOTS)]
            assert verify(problem, whole=True, spoil=spoil).wrong >= 1, name


def test_a_call_that_did_nothing_is_seen_in_every_sweep() -> None:
    problem = PROBLEMS["layernorm_forward"]
    everything = [(4, "ln_res", element) for element in range(500 * 64)]
    assert verify(problem, sweeps=5, spoil=everything).wrong == 5


def test_a_tenth_of_wrong_rows_is_seen_within_some_sweeps() -> None:
    problem = PROBLEMS["softmax_backward"]
    rows = [(0, "out_grad", row * 40) for row in range(50)]
    assert verify(problem, sweeps=20, spoil=rows).wrong > 0


def test_outputs_that_the_oracle_needs_long_for_are_verified_in_some_places() -> None:
    problem, rows = PROBLEMS["softmax_backward"], []

    def oracle(case: Case, given: Inputs) -> Mapping[str, Expectation]:
        rows.append(len(given.wide("soft_inp")))
        return problem.oracle(case, given)

    slow = replace(problem, oracle=oracle)
    half = [(slot, "out_grad", row * 40) for slot in range(SLOTS) for row in range(250)]
    assert verify(slow, whole=True, spoil=half, seconds=0.1).wrong > 0
    assert rows.count(4) == 20  # in two seconds of processor time
    assert sum(rows) <= SLOTS * 500 + 81


def test_how_much_is_judged_at_a_time_is_what_the_oracle_takes_a_moment_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, clock = PROBLEMS["layernorm_backward"], [0.0]

    def oracle(case: Case, given: Inputs) -> Mapping[str, Expectation]:
        clock[0] += given.wide("inp").size * 1e-6
        return problem.oracle(case, given)

    (case,) = build_cases(5, [("any", SIZES[problem.id], "normal")])
    monkeypatch.setattr(verification, "thread_time", lambda: clock[0])
    rows, columns = extents(replace(problem, oracle=oracle), case, problem.inputs(case))
    assert (rows.length, columns.length) == (128, 16)
    assert (rows.seconds, columns.seconds) == pytest.approx((128 * 64e-6, 16 * 500e-6))


def test_results_that_need_those_near_them_are_verified() -> None:
    problem, sizes = FORMULAS["stencil"], {"rows": 90, "n": 30}
    verifier = verify(problem, sizes=sizes, sweeps=3, whole=True)
    assert (verifier.verified, verifier.wrong) == (3 * SLOTS, 0)
    spoil = [(slot, "x", 40 * 30 + 7) for slot in range(SLOTS)]
    assert verify(problem, sizes=sizes, whole=True, spoil=spoil).wrong >= 1


def test_outputs_of_another_content_are_wrong() -> None:
    problem = PROBLEMS["layernorm_backward"]
    (case,) = build_cases(5, [("any", SIZES[problem.id], "normal")])
    first, second = (draw(problem, case, iter((seed,)), SLOTS) for seed in (1, 2))
    with Threads() as pool:
        judged = extents(problem, case, first.inputs[0])
        verifier = Verifier(problem, case, judged, pool, SLOTS, SystemRandom())
        contents = first.contents(SLOTS, SystemRandom())
        session = Session(problem, case, first, contents)
        verifier.sample(session, second, contents, whole=False)  # type: ignore[arg-type]
        verifier.fetch(session)  # type: ignore[arg-type]
        verifier.settle()
    assert verifier.wrong == SLOTS


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("problem_id", SIZES)
def test_only_a_call_that_was_made_may_have_written(problem_id: str, *, merged: bool) -> None:
    problem, random, made = PROBLEMS[problem_id], SystemRandom(), 2
    (case,) = build_cases(5, [("any", SIZES[problem.id], "normal")])
    bases = draw(problem, case, iter(range(100)), SLOTS)
    contents = bases.contents(SLOTS, random)
    session = Session(problem, case, bases, contents)
    for content, outputs in [] if merged else zip(contents[made:], session.outputs[made:], strict=True):
        for name, output in outputs.items():
            given = bases.inputs[content.base].arrays.get(name)
            poison = np.frombuffer(b"\xff" * output.nbytes, np.float32).reshape(output.shape)
            turn = content.turn if name in problem.turning else 0
            outputs[name] = poison if given is None else np.roll(given, turn, axis=0)
    judged = extents(problem, case, bases.inputs[0])
    with Threads() as pool:
        verifier = Verifier(problem, case, judged, pool, SLOTS, random)
        verifier.sample(session, bases, contents, made=made)  # type: ignore[arg-type]
        verifier.fetch(session)  # type: ignore[arg-type]
        verifier.settle()
    assert (verifier.verified, verifier.wrong) == (made, 0)
    assert (verifier.early >= SLOTS - made) == merged
    assert merged or verifier.early == 0


def test_problems_without_slices_are_verified_whole_now_and_then() -> None:
    problem = replace(PROBLEMS["softmax_backward"], slices=(), turning=())
    assert verify(problem, whole=True, spoil=[(slot, "out_grad", 3) for slot in range(SLOTS)]).wrong > 0


def test_what_was_worked_out_to_see_how_long_it_takes_is_not_worked_out_again() -> None:
    asked: list[Inputs] = []

    def oracle(case: Case, given: Inputs) -> Mapping[str, Expectation]:
        asked.append(given)
        return problem.oracle(case, given)

    problem = replace(PROBLEMS["softmax_backward"], slices=(), turning=())
    (case,) = build_cases(5, [("any", SIZES[problem.id], "normal")])
    bases = draw(problem, case, iter(range(100)), 2)
    counted = replace(problem, oracle=oracle)
    judged = extents(counted, case, bases.inputs[0], share=2)
    contents = [Content(0, 0), Content(1, 0)]
    session = Session(problem, case, bases, contents)
    session.outputs[0]["out_grad"][3] += 1
    with Threads() as pool:
        verifier = Verifier(counted, case, judged, pool, 2, SystemRandom())
        for _ in range(20):
            verifier.sample(session, bases, contents, whole=True)  # type: ignore[arg-type]
        verifier.fetch(session)  # type: ignore[arg-type]
        verifier.settle()
    assert sum(given is bases.inputs[0] for given in asked) == 1
    assert verifier.wrong > 0


def test_novel_contents_have_a_base_each() -> None:
    problem = PROBLEMS["layernorm_backward"]
    (case,) = build_cases(5, [("any", SIZES[problem.id], "normal")])
    bases = draw(problem, case, iter(range(100)), SLOTS, novel=SLOTS)
    assert {content.base for content in bases.contents(SLOTS, SystemRandom())} == set(range(SLOTS))
    few = draw(problem, case, iter(range(100)), SLOTS, novel=3)
    assert len({content.base for content in few.contents(3, SystemRandom())}) == len(few.inputs) == 3
    assert len({inputs.arrays["inp"].tobytes() for inputs in bases.inputs}) == SLOTS


def test_a_case_whose_rows_do_not_turn_far_gets_more_bases() -> None:
    problem = PROBLEMS["softmax_forward"]
    (case,) = build_cases(5, [("any", SIZES[problem.id], "normal")])
    source = Random(1)
    bases = draw(problem, case, iter(lambda: source.getrandbits(48), None), 100)
    assert (bases.turns, len(bases.inputs)) == (3, 3)
    assert bases.turns * len(bases.inputs) >= CONTENTS
    assert len(set(bases.contents(200, SystemRandom()))) > CONTENTS


def reverse(dtype: str) -> KernelProblem:
    """y = x from the last element to the first."""

    def inputs(case: Case) -> Inputs:
        bits = np.random.default_rng(case.seed).integers(1, 100, 60)
        return Inputs({"x": bits.astype(DTYPES[dtype].storage)}, {"y": (60,)}, {"n": 60})

    def oracle(_: Case, given: Inputs) -> dict[str, Expectation]:
        array = given.arrays["x"]
        assert array is not None
        exact = array[::-1] if DTYPES[dtype].exact else array[::-1].astype(np.float64)
        return {"y": Expectation((Candidate(exact, np.zeros(60)),))}

    return KernelProblem(
        id="reverse",
        file="reverse.cu",
        entry_point="launch_reverse",
        parameters=(ArrayParameter("y", Role.OUTPUT, dtype), ArrayParameter("x", Role.INPUT, dtype)),
        groups=("all",),
        cases=lambda _: (),
        timing_cases=lambda _: (),
        inputs=inputs,
        oracle=oracle,
        minimal_bytes=lambda _: 120 * DTYPES[dtype].itemsize,
    )


class Restored:
    """Slots of the outputs ``y``: right where a call was made, and as they were restored elsewhere."""

    def __init__(self, bases: Bases, contents: Sequence[Content], made: int, dtype: str) -> None:
        self.outputs = [
            bases.inputs[content.base].arrays["x"][::-1]  # type: ignore[index]
            if slot < made
            else bases.arrays[content.base].get(
                "y", np.full(60 * 8, 0xFF, np.uint8).view(storage(dtype))[:60]
            )
            for slot, content in enumerate(contents)
        ]

        self.kept: Outputs = []

    def keep(self, pieces: Sequence[Piece]) -> None:
        ranges = [self.outputs[piece.slot][piece.first : piece.first + piece.elements] for piece in pieces]
        self.kept.append({"y": np.concatenate(ranges)})

    def fetch(self, _using: object) -> Outputs:
        kept, self.kept = self.kept, []
        return kept


def storage(dtype: str) -> np.dtype[Any]:
    return DTYPES[dtype].storage


@pytest.mark.parametrize("dtype", DTYPES)
def test_calls_of_every_type_are_verified_and_those_that_were_not_made_are_told(dtype: str) -> None:
    problem, random, made = reverse(dtype), SystemRandom(), 2
    case = Case("60", "all", {"n": 60}, "counted", 1)
    bases = draw(problem, case, iter(range(100)), SLOTS)
    contents = bases.contents(SLOTS, random)
    judged = extents(problem, case, bases.inputs[0])
    with Threads() as pool:
        verifier = Verifier(problem, case, judged, pool, SLOTS, random)
        session = Restored(bases, contents, made, dtype)
        verifier.sample(session, bases, contents, made=made)  # type: ignore[arg-type]
        verifier.fetch(session)  # type: ignore[arg-type]
        verifier.settle()
        assert (verifier.verified, verifier.wrong, verifier.early) == (made, 0, 0)
        session = Restored(bases, contents, 0, dtype)
        verifier.sample(session, bases, contents)  # type: ignore[arg-type]
        verifier.fetch(session)  # type: ignore[arg-type]
        verifier.settle()
    assert verifier.wrong == SLOTS  # nothing was written in any call


def test_what_outputs_of_integers_hold_before_a_call_differs_from_base_to_base() -> None:
    problem = reverse("uint8")
    bases = draw(problem, Case("60", "all", {"n": 60}, "counted", 1), iter(range(100)), SLOTS)
    held = np.stack([base["y"] for base in bases.arrays])
    assert held.shape == (SLOTS, 60)
    assert not (held == held[0]).all(axis=0).any()


@pytest.mark.parametrize(("place", "wrong"), [(0, 0), (1, 1)])
def test_a_checker_looks_at_timed_calls_as_well(place: int, wrong: int) -> None:
    """The first of equal numbers, and the last one, are the largest; those between them are smaller."""
    problem = formula.problem(
        id="argmax",
        file="argmax.cu",
        launcher="launch_argmax(int* largest, int* place, const int* x, int n, cudaStream_t stream)",
        formula=lambda x: {"largest": x.max().view(1)},
        check=lambda _, inputs, outputs: (
            "" if inputs.arrays["x"][outputs["place"][0]] == outputs["largest"][0] else "it is smaller"
        ),
        inputs=lambda n: {"x": contents.integers(7, 7, n)},
        outputs=lambda: {"place": (1,)},
        sizes={"n": formula.Range(1, 100)},
    )
    (case,) = build_cases(5, [("any", {"n": 40}, "normal")])
    random = SystemRandom()
    bases = draw(problem, case, iter(range(1000)), SLOTS)
    for inputs in bases.inputs:
        inputs.arrays["x"][1] = 0
    judged = extents(problem, case, bases.inputs[0])
    with Threads() as pool:
        verifier = Verifier(problem, case, judged, pool, SLOTS, random)
        contents_of_slots = bases.contents(SLOTS, random)
        session = Session(problem, case, bases, contents_of_slots)
        for outputs in session.outputs:
            outputs["largest"], outputs["place"] = np.array([7], np.int32), np.array([place], np.int32)
        verifier.sample(session, bases, contents_of_slots, whole=True)  # type: ignore[arg-type]
        verifier.fetch(session)  # type: ignore[arg-type]
        verifier.settle()
    assert (verifier.verified > 0, verifier.wrong > 0) == (True, bool(wrong))
