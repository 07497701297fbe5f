"""Every build of the instructions that this processor can run computes the same bits."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from instructions import Probe, run

from grader.records.errors import DeviceError
from grader.simulator.driver import _EXECUTABLE, Simulator

if TYPE_CHECKING:
    from numpy.typing import NDArray

VARIABLE = "GRADER_SIM_SIMD"
# From every family of instructions: what vectors of different width do in different ways.
PROBES = (
    Probe("add.s32 {d}, {a}, {b}", "u32", ("u32", "u32")),
    Probe("mad.wide.u32 {d}, {a}, {b}, {c}", "u64", ("u32", "u32", "u64")),
    Probe("div.s32 {d}, {a}, {b}", "u32", ("u32", "u32")),
    Probe("popc.b32 {d}, {a}", "u32", ("u32",)),
    Probe("bfe.s32 {d}, {a}, {b}, 7", "u32", ("u32", "u32")),
    Probe("fma.rn.f32 {d}, {a}, {b}, {c}", "f32", ("f32", "f32", "f32")),
    Probe("add.rz.ftz.f32 {d}, {a}, {b}", "f32", ("f32", "f32")),
    Probe("max.f32 {d}, {a}, {b}", "f32", ("f32", "f32")),
    Probe("min.NaN.f32 {d}, {a}, {b}", "f32", ("f32", "f32")),
    Probe("div.full.f32 {d}, {a}, {b}", "f32", ("f32", "f32")),
    Probe("ex2.approx.ftz.f32 {d}, {a}", "f32", ("f32",)),
    Probe("lg2.approx.f32 {d}, {a}", "f32", ("f32",)),
    Probe("sin.approx.f32 {d}, {a}", "f32", ("f32",)),
    Probe("tanh.approx.f32 {d}, {a}", "f32", ("f32",)),
    Probe("rsqrt.approx.f64 {d}, {a}", "f64", ("f64",)),
    Probe("fma.rn.f16x2 {d}, {a}, {b}, {c}", "f16x2", ("f16x2", "f16x2", "f16x2")),
    Probe("fma.rn.bf16x2 {d}, {a}, {b}, {c}", "bf16x2", ("bf16x2", "bf16x2", "bf16x2")),
    Probe("cvt.rzi.s32.f32 {d}, {a}", "s32", ("f32",)),
    Probe("cvt.rn.f16.f32 {d}, {a}", "f16", ("f32",)),
    Probe("setp.geu.f32 {d}, {a}, {b}", "pred", ("f32", "f32")),
    Probe("shfl.sync.bfly.b32 {d}, {a}, 5, 31, -1", "u32", ("u32",)),
    Probe("vote.sync.ballot.b32 {d}, 1, -1", "u32", ("u32",)),
    Probe("redux.sync.add.s32 {d}, {a}, -1", "u32", ("u32",)),
)


def levels() -> list[str]:
    said = subprocess.run([str(_EXECUTABLE), "--simd"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return said.split(", of:")[1].split()


def used(level: str) -> str:
    environment = {**os.environ, VARIABLE: level}
    command = [str(_EXECUTABLE), "--simd"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def operands() -> list[tuple[NDArray[np.generic], ...]]:
    """Random bits for each probe, a quarter of the floats around one."""
    random = np.random.default_rng(5)
    made = []
    for probe in PROBES:
        columns: list[NDArray[np.generic]] = []
        for kind in probe.operands:
            bits = {"u64": 64, "f64": 64}.get(kind, 32)
            words = random.integers(0, 1 << bits, 512, f"u{bits // 8}")
            floats = {"f32": np.float32, "f64": np.float64}.get(kind)
            if floats is not None:
                words[::4] = random.uniform(-4, 4, 128).astype(floats).view(words.dtype)
            columns.append(words)
        made.append(tuple(columns))
    return made


@pytest.mark.parametrize("level", ["plain", "avx2", "avx512"])
def test_builds_agree(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if level not in levels():
        pytest.skip(f"this processor has no {level}")
    assert used(level).startswith(f"{level}, of:")
    best = run(list(PROBES), operands())
    monkeypatch.setenv(VARIABLE, level)
    for probe, expected, got in zip(PROBES, best, run(list(PROBES), operands()), strict=True):
        assert expected.tobytes() == got.tobytes(), probe.text


def test_a_level_that_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "sse9")
    with pytest.raises(DeviceError, match="GRADER_SIM_SIMD is sse9; this processor can run: plain"):
        Simulator(device_bytes=1 << 24, shared_bytes=1 << 20)
