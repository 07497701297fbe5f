"""Every mutant fails in the group of its theme, every variant passes, on the sim.

Mutants are judged on the cases that tell, variants on all, and the reference in ``run/test_reference.py``.

The whole matrix takes minutes: ``-m "not matrix"`` leaves out all but ``QUICK``, the only ones that also meet
the handout's checks. ``nox -s matrix`` judges all on all cases and by all checks, and prints it.
"""

from __future__ import annotations

import handout
import pytest
from judged import Bench, Entry, bench, entries

ENTRIES = tuple(entries())
QUICK = {
    *("fw-no-maximum", "fw-future-one-more", "fw-bucket-64", "fw-mask-of-head"),
    *("bw-no-sum", "bw-half-group", "bw-twice"),
    *("ln-unbiased", "ln-eps-1e-5", "ln-shared-between-reductions"),
    *("lb-no-mean-gx", "lb-bucket-1024", "lb-one-buffer"),
    *("softmax_forward-online", "softmax_backward-workspace"),
    *("layernorm_forward-squares", "layernorm_backward-two_streams"),
}


def marked(entry: Entry) -> object:
    marks = [] if entry.id in QUICK else [pytest.mark.matrix]
    return pytest.param(entry, marks=marks, id=entry.id)


@pytest.fixture(scope="module")
def on_the_sim() -> Bench:
    return bench("sim")


@pytest.mark.parametrize("entry", [marked(entry) for entry in ENTRIES if entry.mutant is not None])
def test_a_mutant_fails_where_its_theme_is_and_is_named(on_the_sim: Bench, entry: Entry) -> None:
    result = on_the_sim.brief(entry, ENTRIES)
    assert not result.error
    assert result.verdict == "FAIL"
    assert result.group in result.groups
    assert result.diagnosis in result.said


@pytest.mark.parametrize("entry", [marked(entry) for entry in ENTRIES if entry.kind == "variant"])
def test_a_right_kernel_passes(on_the_sim: Bench, entry: Entry) -> None:
    result = on_the_sim.result(entry, handouts=entry.id in QUICK)
    assert not result.error
    assert [case.name for case in result.wrong] == []
    assert result.findings == ()
    assert result.verdict == "PASS"
    assert result.handout == (handout.CASES if entry.id in QUICK else 0)


def test_the_quick_ones_exist() -> None:
    assert {entry.id for entry in ENTRIES} >= QUICK
