"""The assignment ``first_kernels``: a case of some problems; ``nox -s assignments`` runs all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from grader.assignments.assignment import Assignment, load
from grader.assignments.mutants import table
from grader.judge.correctness.comparison import compare
from grader.judge.correctness.diagnosis import diagnose
from grader.problems.contents import NORMAL
from grader.problems.problem import MEMORY_GROUP, KernelProblem
from grader.records.diagnosis import in_words
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.problems.problem import Case

    Numbers = Mapping[str, torch.Tensor]

FIRST = load(str(Path(__file__).parents[2] / "assignments" / "first_kernels"))
NAMES = tuple(FIRST.problems)
GRADED = ("scan", "histogram", "matmul_half", "spmv", "sort")
"""Blocks that wait for each other, integers, tensor cores, segments, a launch for each pass."""
VARIANTS = sorted((FIRST.folder / "variants").glob("*/*"))
IN_TRITON = tuple(name for name in NAMES if "triton" in FIRST.rules.languages_of(name))


def kernel(name: str) -> KernelProblem:
    problem = FIRST.problems[name]
    assert isinstance(problem, KernelProblem)
    return problem


def middle(name: str) -> Case:
    """A case whose sizes divide no warp, block or tile."""
    cases = kernel(name).cases(1)
    return next(case for case in cases if max(case.sizes.values()) == 37 and case.distribution == NORMAL)


@pytest.mark.long
@pytest.mark.usefixtures("ptx_only")
def test_the_reference_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {name: (middle(name),) for name in GRADED}
    some = {name: replace(kernel(name), cases=lambda _, name=name: chosen[name]) for name in GRADED}
    monkeypatch.setattr(Assignment, "problems", property(lambda _: some))
    request = grading.GradingRequest(
        FIRST.reference, FIRST, GRADED, GradingOptions("sim", "process", "device"), seed=1
    )
    record = grading.grade(request, bench=Bench(remembers=True))
    assert {problem.id: problem.verdict for problem in record.problems} == dict.fromkeys(GRADED, Verdict.PASS)


LIBRARY: dict[str, Callable[[Numbers, Mapping[str, int]], torch.Tensor]] = {
    "vector_add": lambda given, _: torch.add(given["x"], given["y"]),
    "saxpy": lambda given, _: torch.add(given["y"], given["x"], alpha=2.5),
    "reduce_sum": lambda given, _: torch.tensor([np.sum(given["x"].numpy())]),
    "argmax": lambda given, _: torch.tensor([np.argmax(given["x"].numpy())]),
    "scan": lambda given, _: torch.tensor(np.cumsum(given["x"].numpy())),
    "histogram": lambda given, sizes: torch.bincount(given["values"], minlength=sizes["bins"]),
    "transpose": lambda given, _: torch.tensor(given["matrix"].numpy().T),
    "matmul": lambda given, _: torch.einsum("ij,jk->ik", given["a"], given["b"]),
    "matmul_half": lambda given, _: torch.einsum("ij,jk->ik", given["a"], given["b"]),
    "sort": lambda given, _: torch.tensor(np.sort(given["keys"].numpy())),
    "attention": lambda given, _: torch.nn.functional.scaled_dot_product_attention(
        given["q"], given["k"], given["v"], is_causal=True
    ),
}
"""The same from another function than that of the formula, where there is one."""


@pytest.mark.parametrize("name", LIBRARY)
def test_the_oracle_is_what_a_library_computes(name: str) -> None:
    problem, case = kernel(name), middle(name)
    given = problem.inputs(case)
    arrays = {
        one: torch.from_numpy(data.astype(np.int64 if data.dtype.kind == "i" else np.float64))
        for one, data in given.arrays.items()
        if data is not None
    }
    (output,) = problem.oracle(case, given).values()
    found = LIBRARY[name](arrays, case.sizes).double().numpy()
    np.testing.assert_allclose(output.candidates[0].expected, found, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_some_case_has_several_blocks_in_every_order(name: str) -> None:
    """What blocks do to each other is seen only where they change places."""
    problem = kernel(name)
    usual = [problem.minimal_bytes(case) for case in problem.cases(1) if case.orders is None]
    assert max(usual) >= 16 * 1024


@pytest.mark.parametrize(
    ("name", "sizes", "halo"),
    [
        ("stencil", {"rows": 90, "columns": 40, "steps": 5}, 5),
        ("convolution", {"rows": 90, "columns": 40, "radius": 2}, 2),
        ("spmv", {"rows": 90, "width": 50, "entries": 300}, 0),
        ("spmv", {"rows": 90, "width": 50, "entries": 1}, 0),
        ("attention", {"n": 90}, 0),
    ],
)
def test_some_rows_alone_are_expected_to_be_what_they_are_in_the_whole(
    name: str, sizes: Mapping[str, int], halo: int
) -> None:
    problem, case = kernel(name), replace(middle(name), sizes=sizes)
    given, (slices,) = problem.inputs(case), problem.slices
    (whole,) = problem.oracle(case, given).values()
    assert slices.halo(case) == halo
    for first in (0, 41, 88):
        part, kept = slices.window(case, given, first, 2)
        (alone,) = problem.oracle(case, part).values()
        got = alone.candidates[0].expected[kept if halo else slice(None)]
        wanted = whole.candidates[0].expected[first : first + 2]
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("language", "names"), [("cuda", NAMES), ("triton", IN_TRITON)])
def test_every_mutant_is_an_edit_of_the_reference(language: str, names: Sequence[str]) -> None:
    mutants = table(FIRST, language)
    assert {mutant.problem for mutant in mutants} == set(names)
    assert len({mutant.id for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        assert mutant.text(FIRST) != mutant.original(FIRST)
        assert mutant.group in {*kernel(mutant.problem).groups, MEMORY_GROUP}


@pytest.mark.parametrize("name", IN_TRITON)
def test_a_problem_has_enough_mutants_in_triton(name: str) -> None:
    assert len([mutant for mutant in table(FIRST, "triton") if mutant.problem == name]) >= 6


@pytest.mark.parametrize(
    ("name", "suffix", "defined", "comment"),
    [
        *((name, ".cu", f'extern "C" void {kernel(name).entry_point}(', "// ") for name in NAMES),
        *((name, ".py", f"\ndef {name}(", '"""') for name in IN_TRITON),
    ],
)
def test_three_variants_have_the_entry_point_and_say_how_they_differ(
    name: str, suffix: str, defined: str, comment: str
) -> None:
    paths = [path for path in VARIANTS if path.parent.name == name and path.suffix == suffix]
    texts = {path.stem: path.read_text() for path in paths}
    assert len(texts) >= 3
    assert "naive" in texts
    for text in texts.values():
        assert defined in text
        assert text.startswith(comment)
    assert len({text.partition("\n")[0] for text in texts.values()}) == len(texts)


@pytest.mark.parametrize(
    ("name", "sizes", "text"),
    [
        ("argmax", {"n": 37}, "the maximum starts at 0"),
        ("matmul", {"m": 5, "n": 7, "k": 60}, "behind the last multiple of 16 is left out"),
        ("matmul", {"m": 5, "n": 7, "k": 70}, "A is read with n"),
        ("reduce_sum", {"n": 1999}, "behind the last multiple of 512 is left out"),
        ("reduce_sum", {"n": 37}, "the first element counts twice"),
        ("scan", {"n": 1999}, "only the tile of 512 elements"),
    ],
)
def test_outputs_that_follow_a_typical_bug_are_named_after_it(
    name: str, sizes: Mapping[str, int], text: str
) -> None:
    problem = kernel(name)
    distribution = "negative numbers" if name == "argmax" else NORMAL
    like = next(case for case in problem.cases(1) if case.distribution == distribution)
    case = replace(like, sizes=sizes)
    given = problem.inputs(case)
    expected = problem.oracle(case, given)
    wrong = next(bug for said, bug in problem.bugs.items() if text in said)(given)
    outputs = {
        output: array.astype(np.int32 if name == "argmax" else np.float32) for output, array in wrong.items()
    }
    compared = {output: compare(output, expected[output], outputs[output]) for output in outputs}
    assert text in in_words(diagnose(problem, case, given, compared, outputs))
