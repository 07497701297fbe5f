"""The language model on the simulator: the reference passes, every mutant fails where it must."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from judging import judged
from wrong_models import CHEATS, KERNELS, MODULES, MUTANTS, NORM, REFERENCE, SOFTMAX, VARIANTS, Edit

from grader.records.verdict import Verdict
from grader.simulator.driver import RUNTIME

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda edit: edit.id)
def test_a_right_model_passes(variant: Edit, tmp_path: Path) -> None:
    groups = {SOFTMAX, NORM, MODULES, KERNELS} if variant.group else ()
    cases = judged(variant.text(), tmp_path, groups).cases
    wrong = [case for case in cases if case.verdict is not Verdict.PASS]
    assert not wrong


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda edit: edit.id)
def test_a_mutant_fails_in_its_group(mutant: Edit, tmp_path: Path) -> None:
    cases = judged(mutant.text(), tmp_path, {mutant.group}).cases
    wrong = [case for case in cases if case.verdict is Verdict.FAIL]
    assert wrong
    assert any(mutant.said in f"{case.message} {case.diagnosis}" for case in wrong)


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda edit: edit.id)
def test_a_model_whose_work_pytorch_does_fails_where_its_results_are_marked(
    cheat: Edit, tmp_path: Path
) -> None:
    cases = judged(cheat.text(), tmp_path, {MODULES, KERNELS}).cases
    marked = [case for case in cases if case.group == KERNELS]
    assert {case.verdict for case in marked} == {Verdict.FAIL}
    assert any(cheat.said in f"{case.message} {case.diagnosis}" for case in cases)


def test_a_forged_count_of_launches_is_not_believed(tmp_path: Path) -> None:
    text = (REFERENCE / "transformer.py").read_text()
    text = text.replace(
        "softmax = attn_softmax if self.use_fused_kernel else unfused_softmax", "softmax = forged"
    )
    text += """

def forged(scores, mask, mask_future):
    launch.calls["launch_attn_softmax"] += 1000
    launch.calls["launch_attn_softmax_bw"] += 1000
    return unfused_softmax(scores, mask, mask_future)
"""
    cases = judged(text, tmp_path, {"attention and layer"}).cases
    assert cases[0].verdict is Verdict.FAIL
    assert "launch_attn_softmax was called 0 times" in cases[0].message


def test_what_one_function_raises_leaves_the_others_their_points(tmp_path: Path) -> None:
    text = (REFERENCE / "transformer.py").read_text()
    raised = "        raise ValueError('weights\\ud800')\n"
    text = text.replace("        (weights,) = ctx.saved_tensors\n", raised)
    judgement = judged(text, tmp_path, {"attn_softmax", "layer_norm"})
    verdicts = {
        group: {case.verdict for case in judgement.cases if case.group == group}
        for group in ("attn_softmax", "layer_norm")
    }
    assert verdicts == {"attn_softmax": {Verdict.FAIL}, "layer_norm": {Verdict.PASS}}
    assert "transformer.py:" in judgement.cases[0].message
    assert "ValueError: weights?" in judgement.cases[0].message
    assert judgement.cases[0].model_dump_json()  # a lone surrogate would be no UTF-8


def test_pytorch_is_told_of_no_device_beside_the_simulator(tmp_path: Path) -> None:
    """Built for CUDA, it would find the simulated one and look for its driver."""
    text = (REFERENCE / "transformer.py").read_text()
    text += "\nassert torch.cuda._nvml_based_avail() and torch.cuda._parse_visible_devices() == []\n"
    (case, *_) = judged(text, tmp_path, {"attn_softmax"}).cases
    assert case.verdict is Verdict.PASS, case.message
