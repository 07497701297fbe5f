"""The sim answers what an H100 answered: the golden set, and that it would be noticed if it did not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import golden
import numpy as np
import pytest
from corpus import build, run_on_sim
from golden_cases import TUPLES, Bound, cases

if TYPE_CHECKING:
    from pathlib import Path


def test_sim_answers_like_the_gpu_instruction_by_instruction() -> None:
    _, expected = golden.read(golden.STORE)
    single = {name: values for name, values in expected.items() if name.startswith("instruction ")}
    assert len(single) > 600
    _, taken = golden.take("sim", kernels=False)
    assert golden.differences(taken.results, single) == []


def test_sim_answers_like_the_gpu_on_whole_kernels() -> None:
    _, expected = golden.read(golden.STORE)
    whole = {name: values for name, values in expected.items() if name.startswith("kernel ")}
    assert len({name.split()[1] for name in whole}) >= 45
    _, taken = golden.take("sim", instructions=False)
    assert golden.differences(taken.results, whole) == []


def test_a_set_is_written_read_and_compared(tmp_path: Path) -> None:
    device, taken = golden.take("sim", ["add.s32", "ex2.approx.f32", "add.rn.f32"], kernels=False)
    assert (device, taken.missing) == ("sim", {})
    golden.write(tmp_path / "set.npz", device, taken.results)
    origin, results = golden.read(tmp_path / "set.npz")
    assert origin == "sim"
    assert golden.differences(taken.results, results) == []
    for name, values in results.items():
        worse = {**results, name: values.copy()}
        worse[name].view(np.uint32)[100] ^= 64  # 64 units in the last place
        (line,) = golden.differences(taken.results, worse)
        assert line.startswith(name)
    assert golden.differences({}, results)[0].endswith("no result")


def test_bounds_are_of_two_implementations() -> None:
    def apart(got: float, expected: float, bound: Bound) -> bool:
        return bool(golden.apart(np.float32([got]), np.float32([expected]), "f32", bound)[0])

    step = 2.0**-23
    assert not apart(1 + 4 * step, 1, Bound(ulps=2))
    assert apart(1 + 5 * step, 1, Bound(ulps=2))
    assert apart(1e-45, -1e-45, Bound(ulps=2))
    assert not apart(np.nan, np.nan, Bound())
    assert apart(0.0, -0.0, Bound())
    assert not apart(100.2, 100.0, Bound(relative=1e-3))
    assert apart(100.2, 100.0, Bound(absolute=1e-3))
    pair = np.array([0x7E003C00], np.uint32)
    assert not golden.apart(pair, np.array([0x7FFF3C00], np.uint32), "f16x2").any()
    assert golden.apart(pair, np.array([0x7FFF3C01], np.uint32), "f16x2").tolist() == [True, False]


def test_outputs_of_kernels_are_compared_by_scale() -> None:
    expected = np.float32([1000, 1e-3, np.inf])
    assert golden.kernel_difference("k", np.float32([1000, 1.5e-3, np.inf]), expected) == []
    assert golden.kernel_difference("k", np.float32([1000, 0.1, np.inf]), expected) != []
    assert golden.kernel_difference("k", np.float32([1000, 1e-3, 5]), expected) != []
    assert golden.kernel_difference("k", np.uint8([1, 2]), np.uint8([1, 3])) != []


def test_programs_write_down_what_they_read_back() -> None:
    program = next(program for program in golden.checked_kernels() if program.name == "integer_instructions")
    (words,) = golden.outputs_of(program, lambda p, e, dump: run_on_sim(p, e, outputs=dump), "sim")
    assert words.dtype == np.uint8
    assert words.size == 4 * golden.SAMPLE
    assert build(program.source, "sim").exists()


def test_what_does_not_compile_is_missing_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, device: str) -> Path:
        raise RuntimeError(f"nvcc does not like {source.name} for the {device}")

    monkeypatch.setattr(golden, "build", refuse)
    taken = golden.Taken()
    golden.take_kernels("gpu", golden.checked_kernels()[:3], taken)
    assert taken.results == {}
    assert len(taken.missing) == 3
    assert all("nvcc does not like" in reason for reason in taken.missing.values())


def test_gpu_runs_a_probe_with_results_first_and_count_last(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in cases() if case.probe.text.startswith("sub.s32"))
    launched = []

    class Module:
        def load(self, ptx: bytes) -> None:
            assert b".entry k(" in ptx

        def get_function(self, name: str) -> object:
            def launch(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple) -> None:
                launched.append((name, grid[0] * block[0]))
                out, a, b, count = arguments
                assert count == TUPLES
                with np.errstate(over="ignore"):
                    out.content[:] = a.content - b.content

            return launch

    def array(content: np.ndarray) -> SimpleNamespace:
        return SimpleNamespace(content=content, get=lambda: content)

    runtime = SimpleNamespace(getDeviceProperties=lambda _: {"name": b"NVIDIA H100"})
    cupy = SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime, function=SimpleNamespace(Module=Module)),
        zeros=lambda count, dtype: array(np.zeros(count, dtype)),
        asarray=array,
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    device = golden.Gpu()
    assert device.name == "NVIDIA H100"
    np.testing.assert_array_equal(golden.instruction(device, case), golden.instruction(golden.Sim(), case))
    assert launched == [("k", TUPLES)]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
def test_every_probe_is_ptx_that_a_gpu_takes(tmp_path: Path) -> None:
    everything = cases()
    assert len({case.name for case in everything}) == len(everything)
    source = tmp_path / "probes.ptx"
    kernels = [case.probe.kernel(f"k{n}") for n, case in enumerate(everything)]
    source.write_text(golden.HEADER + "\n".join(kernels))
    command = ["ptxas", "-arch=sm_90", "-O0", "-o", str(tmp_path / "probes.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
