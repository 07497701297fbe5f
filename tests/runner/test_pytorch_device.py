"""PyTorch's CUDA device on the simulator: what tensors of scripts are, refuse and hold."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from grader.languages.cache import Cache
from grader.languages.pytorch import device_library
from grader.simulator import simulate as module
from grader.simulator.simulate import EXIT_FINDINGS

pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")

SCRIPTS = Path(__file__).parent / "triton_scripts"
HEAD = "import torch, triton, triton.language as tl\n"
COPY = HEAD + (
    "@triton.jit\n"
    "def copied(x, y, n, size: tl.constexpr):\n"
    "    at = tl.program_id(0) * size + tl.arange(0, size)\n"
    "    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)\n"
    "x = torch.ones(1000, device='cuda'); y = torch.empty_like(x)\n"
)
simulate = partial(module.simulate, pytorch_device=partial(device_library, Cache()))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "triton"))


def told(folder: Path, text: str) -> tuple[int, list[dict[str, object]]]:
    """The exit code of a script, and its findings."""
    script, record = folder / "script.py", folder / "findings.json"
    script.write_text(text)
    code = simulate([str(script)], json_path=record, leak_check=False)
    return code, json.loads(record.read_text())["findings"]


def test_what_drivers_write_runs_as_on_a_gpu(capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate([str(SCRIPTS / "idioms.py")], json_path=None, leak_check=False) == 0
    assert capfd.readouterr().out == "82 idioms\n"


def test_what_no_program_has_written_is_told_where_pytorch_reads_it(tmp_path: Path) -> None:
    text = COPY + "copied[(1000 // 256,)](x, y, 1000, 256)\nprint(y[0].item())\nprint(y.sum().item())\n"
    code, (finding,) = told(tmp_path, text)
    assert (code, finding["kind"], finding["severity"]) == (0, "uninit_global", "warning")
    assert (finding["file"], finding["line"]) == (str(tmp_path / "script.py"), 9)
    assert "PyTorch (sum) reads 4000 bytes" in str(finding["message"])
    assert "nothing has written 928 of them, from byte 3072" in str(finding["message"])
    assert "copied with 3 x 1 x 1 programs" in str(finding["message"])


@pytest.mark.parametrize(
    "reading",
    [
        "y[:768].sum()",
        "y.fill_(0); y.sum()",
        "y[768:] = 0; y.sum()",
        "torch.empty_like(y)",
        "y.clone()",
        "y.view(10, 100)[:, ::2].fill_(0)",
    ],
)
def test_what_reads_nothing_unwritten_is_silent(reading: str, tmp_path: Path) -> None:
    assert told(tmp_path, COPY + f"copied[(3,)](x, y, 1000, 256)\n{reading}\n") == (0, [])


def test_a_view_in_steps_is_written_where_it_is(tmp_path: Path) -> None:
    text = (
        COPY
        + "z = torch.empty(10, 10, device='cuda'); z[:, ::2] = 1; z[:, 1::2] = 2; assert z.sum() == 150\n"
    )
    assert told(tmp_path, text) == (0, [])


def test_work_on_two_streams_that_nothing_orders_is_a_race(tmp_path: Path) -> None:
    waits = "stream.wait_stream(torch.cuda.current_stream())\n"
    text = (
        COPY
        + "stream = torch.cuda.Stream()\ncopied[(4,)](x, y, 1000, 256)\n{}with torch.cuda.stream(stream):\n"
        "    copied[(4,)](y, x, 1000, 256)\nstream.synchronize()\n"
    )
    code, findings = told(tmp_path, text.format(""))
    assert (code, {finding["kind"] for finding in findings}) == (EXIT_FINDINGS, {"race_stream"})
    assert told(tmp_path, text.format(waits)) == (0, [])


def test_a_race_of_programs_is_told_although_threads_of_one_race_too(tmp_path: Path) -> None:
    text = HEAD + (
        "@triton.jit\n"
        "def norm(x, parts, y, programs: tl.constexpr, size: tl.constexpr):\n"
        "    at = tl.program_id(0) * size + tl.arange(0, size)\n"
        "    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + at), 0))\n"
        "    tl.store(y + at, tl.load(x + at) / tl.sum(tl.load(parts + tl.arange(0, programs)), 0))\n"
        "x = torch.rand(1024, device='cuda'); y = torch.empty_like(x)\n"
        "parts = torch.zeros(4, device='cuda')\n"
        "norm[(4,)](x, parts, y, 4, 256)\n"
    )
    code, findings = told(tmp_path, text)
    assert code == EXIT_FINDINGS
    assert {finding["line"] for finding in findings} == {5, 6}
    for finding in findings:
        assert "programs run in any order" in str(finding["message"])
        assert "debug_barrier" not in str(finding["message"])


def test_a_copied_script_is_named_by_its_own_path(tmp_path: Path) -> None:
    text = COPY + "copied[(4,)](x[:999], y[:999], 1001, 256)\n"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        code, findings = told(tmp_path / name, text)
        assert code == EXIT_FINDINGS
        assert {finding["file"] for finding in findings} == {str(tmp_path / name / "script.py")}
        assert not any("descriptor" in str(finding["message"]) for finding in findings)


def test_an_error_is_shown_as_the_scripts_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _ = told(tmp_path, COPY + "copied[(4,)](x.cpu(), y, 1000, 256)\n")
    shown = capfd.readouterr().err
    assert code == 1
    assert "ValueError: Pointer argument cannot be accessed from Triton (cpu tensor?)" in shown
    assert f'File "{tmp_path}/script.py", line 7' in shown
    assert str(Path(module.__file__).parents[1]) not in shown
    assert "runpy" not in shown


def test_a_signal_for_the_whole_group_loses_no_finding(tmp_path: Path) -> None:
    script, record = tmp_path / "script.py", tmp_path / "findings.json"
    script.write_text(
        COPY + "copied[(5,)](x, y, 1100, 256); print('launched', flush=True)\nimport time; time.sleep(100)\n"
    )
    command = [sys.executable, "-m", "grader", "simulate", "--json", str(record), str(script)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "launched\n"
        os.killpg(process.pid, signal.SIGTERM)
        _, said = process.communicate()
    assert process.returncode == 130
    assert "global_oob" in said
    assert "the program was interrupted" in said
    assert {finding["kind"] for finding in json.loads(record.read_text())["findings"]} == {"global_oob"}
