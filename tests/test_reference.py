"""The reference where it takes a path that no case of the corpus reaches."""

from __future__ import annotations

from dataclasses import replace

import judged
import pytest

from grader.problems import load_all
from grader.problems.distributions import build_cases

FORWARD = load_all()["layernorm_forward"]
(REFERENCE,) = (one for one in judged.entries() if one.id == "reference-layernorm_forward")


def result(text: str, rows: int) -> judged.Result:
    """Of LayerNorm forward with the source ``text``, on ``rows`` rows of 256 columns."""
    table = [("many rows", {"batch_size": rows, "hidden_dim": 256}, "normal")]
    problem = replace(FORWARD, cases=lambda seed: build_cases(seed, table))
    bench = replace(judged.bench("sim"), problems={FORWARD.id: judged.remembered(problem)})
    return bench.result(replace(REFERENCE, files={**REFERENCE.files, FORWARD.file: text}))


@pytest.mark.parametrize("rows", [4096, 4097])
def test_layernorm_of_pairs_of_rows_is_right(rows: int) -> None:
    assert result(REFERENCE.files[FORWARD.file], rows).verdict == "PASS"


@pytest.mark.parametrize(
    ("right", "wrong", "seen"),
    [
        ("min(first + r, rows - 1)", "(first + r)", "memcheck"),
        ("lane == r && first + r < rows", "lane == r", "memcheck"),
        ("mean[r] *= 1.0f / PAIR_COLUMNS", "mean[r] *= 1.0f / 255", "many rows"),
    ],
)
def test_a_mistake_in_it_is_found(right: str, wrong: str, seen: str) -> None:
    text = REFERENCE.files[FORWARD.file]
    assert text.count(right) == 1
    found = result(text.replace(right, wrong), 4097)
    assert found.verdict == "FAIL"
    assert seen in f"{found.findings} {found.groups}"
