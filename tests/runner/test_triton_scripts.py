"""``grader simulate script.py``: scripts with kernels in Triton, on the simulator."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from grader.languages.cache import Cache
from grader.languages.pytorch import device_library
from grader.simulator import simulate as module
from grader.simulator.simulate import EXIT_FINDINGS

pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")

SCRIPTS = Path(__file__).parent / "triton_scripts"
BUGS = {  # programs run on two threads: which of them is told of is left to chance
    "missing_mask": ("global_oob", r"program \(3,0,0\) reads 8 bytes.*; the mask of this access is missing"),
    "unlocked": ("race_global", r"program \(.,0,0\) (reads|writes) byte 0.* nothing orders the two"),
    "uninitialised": ("uninit_global", r"program \(.,0,0\) reads 4 bytes .* that nothing has written"),
    "missing_barrier": (
        "race_global",
        r"another of its threads has written.*: a tl.debug_barrier\(\) between",
    ),
    "overlap": ("race_global", r"that program \(.,0,0\) has written.*: programs run in any order"),
    "unmasked_store": ("global_oob", r"program \(3,0,0\) writes .*; the mask of this access is missing"),
    "whole_chunks": ("global_oob", r"program \(3,0,0\) writes .*, or it is a store by a descriptor, which"),
    "added_chunks": ("global_oob", r"program \(3,0,0\) updates .*, or it is a store by a descriptor, which"),
    "ignored_target": ("global_oob", r"program \(2,0,0\) reads 4 bytes .* before an allocation"),
    "half_written": ("uninit_global", r"program \(0,0,0\) reads .* that nothing has written"),
    "backwards": ("race_global", r"another of its threads has written.*: a tl.debug_barrier\(\) between"),
    "shared_number": ("race_global", r"another of its threads has read.*: a tl.debug_barrier\(\) between"),
    "neighbours": ("race_global", r"program \(.,0,0\) (reads|writes) .* programs run in any order"),
    "same_bins": ("race_global", r"another of its threads writes another value in the same instruction"),
}


simulate = partial(module.simulate, pytorch_device=partial(device_library, Cache()))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "triton"))


def test_a_right_script_runs_as_on_a_gpu(capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate([str(SCRIPTS / "host.py")], json_path=None, leak_check=True) == 0
    out, err = capfd.readouterr()
    assert out == "well done\n"
    assert "finding" not in err


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found_in_its_line(bug: str, tmp_path: Path) -> None:
    script, record = SCRIPTS / "bugs.py", tmp_path / "findings.json"
    assert simulate([str(script), bug], json_path=record, leak_check=False) == EXIT_FINDINGS
    lines = {n for n, text in enumerate(script.read_text().splitlines(), 1) if text.endswith(f"# {bug}")}
    findings = json.loads(record.read_text())["findings"]
    assert {finding["kind"] for finding in findings} == {BUGS[bug][0]}
    assert {(finding["file"], finding["kernel"]) for finding in findings} == {(str(script), bug)}
    messages = [finding["message"] for finding in findings if finding["line"] in lines]
    assert re.search(BUGS[bug][1], "\n".join(messages))


@pytest.mark.parametrize(
    ("script", "kernels"),
    [("kernels.py", 21), ("training.py", 10), ("inference.py", 17), ("large_tiles.py", 1)],
)
def test_right_kernels_compute_what_pytorch_does_and_are_not_accused(
    script: str, kernels: int, capfd: pytest.CaptureFixture[str]
) -> None:
    code = simulate([str(SCRIPTS / script)], json_path=None, leak_check=False)
    out, err = capfd.readouterr()
    assert code == 0, err
    assert "grader:" not in err
    assert len(out.splitlines()) == kernels


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("clusters", "num_ctas > 1 requires NVIDIA SM90+"),
        ("float8_e4m3", "fp8e4nv not supported in this architecture"),
    ],
)
def test_what_does_not_run_says_why(name: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate([str(SCRIPTS / "beyond.py"), name], json_path=None, leak_check=False) == 1
    assert said in capfd.readouterr().err


@pytest.mark.parametrize("all_configs", [False, True])
def test_every_configuration_is_looked_at_if_so_asked(
    all_configs: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script, record = SCRIPTS / "tuned.py", tmp_path / "findings.json"
    code = simulate([str(script)], json_path=record, leak_check=False, all_configs=all_configs)
    assert code == (EXIT_FINDINGS if all_configs else 0)
    assert capfd.readouterr().out == "right\n"
    lines = script.read_text().splitlines()
    found = {
        (one["kind"], lines[one["line"] - 1].strip()) for one in json.loads(record.read_text())["findings"]
    }
    load = "value = tl.load(x + at, mask=at < size + more, other=0.0)"
    assert found == ({("global_oob", load)} if all_configs else set())


@pytest.mark.parametrize(("all_configs", "times"), [(False, 2), (True, 4)])
def test_tuning_in_place_without_restoring_changes_the_result(
    all_configs: bool, times: int, capfd: pytest.CaptureFixture[str]
) -> None:
    script = [str(SCRIPTS / "tuned_in_place.py")]
    assert simulate(script, json_path=None, leak_check=False, all_configs=all_configs) == 0
    assert capfd.readouterr().out == f"applied {times} times, then 1\n"


def test_scripts_see_the_properties_of_an_a100(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "properties.py"
    script.write_text(
        "import torch\n"
        "gpu = torch.cuda.get_device_properties(0)\n"
        "print(torch.cuda.get_device_name(), gpu.multi_processor_count, gpu.L2_cache_size)\n"
    )
    assert simulate([str(script)], json_path=None, leak_check=False) == 0
    assert capfd.readouterr().out == "NVIDIA A100-SXM4-80GB 108 41943040\n"


def test_without_triton_the_command_that_installs_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _name: None)
    assert simulate([str(SCRIPTS / "host.py")], json_path=None, leak_check=False) == 2
    assert "pip install 'kernel-grader[triton]'" in capfd.readouterr().err
