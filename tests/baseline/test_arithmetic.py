"""The arithmetic limit on the simulator: its kernels multiply as often as asked, and write nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from grader.simulator.simulate import EXIT_FINDINGS, simulate

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = """
#include SOURCE
#include <cstdio>
#include <cstdlib>
int main(int, char** given) {
  float *target, got = 0.0f;
  cudaMalloc(&target, sizeof(float));
  const float before = 3.0f;
  cudaMemcpy(target, &before, sizeof(float), cudaMemcpyHostToDevice);
  launch_multiply_adds(target, atoll(given[1]), atoi(given[2]), nullptr);
  cudaMemcpy(&got, target, sizeof(float), cudaMemcpyDeviceToHost);
  puts(got == before ? "unwritten" : "written");
}
"""


@pytest.fixture(scope="module")
def arithmetic(program: Callable[[str, str], str]) -> str:
    return program("arithmetic.cu", PROGRAM)


@pytest.mark.parametrize(("halves", "of_a_warp"), [(0, 32), (1, 16**3)], ids=("float32", "halves"))
def test_it_makes_as_many_multiplications_as_asked_for(
    arithmetic: str,
    halves: int,
    of_a_warp: int,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One worker: several know of each other's instructions only every 65536.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    asked = 1 << 14  # of all warps
    command = [arithmetic, str(asked * of_a_warp), str(halves)]
    assert simulate(command, json_path=None, leak_check=False, budget=asked) == EXIT_FINDINGS
    assert "hang: budget" in capfd.readouterr().err
    assert simulate(command, json_path=None, leak_check=False, budget=32 * asked) == 0
    assert "unwritten" in capfd.readouterr().out


@pytest.mark.parametrize("halves", [0, 1], ids=("float32", "halves"))
def test_few_are_made_by_one_block_and_none_by_no_block(
    arithmetic: str, halves: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for count in (0, 1):
        command = [arithmetic, str(count), str(halves)]
        assert simulate(command, json_path=None, leak_check=False, budget=20_000 * count) == 0
        assert capfd.readouterr().out == "unwritten\n"
