"""Arrays of every element type through compiler, launcher, simulator and comparison."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.devices.device import Memory, Schedule
from grader.devices.layout import poison
from grader.devices.sim import Sim
from grader.judge.correctness.cases import judge
from grader.languages.cache import Cache
from grader.languages.cuda.compile import build
from grader.languages.cuda.launchers import launcher
from grader.languages.cuda.toolchain import find
from grader.languages.jobs import compile_limits
from grader.languages.language import LauncherError
from grader.problems.dtypes import DTYPES, poisoned
from grader.problems.problem import (
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Role,
    ScalarParameter,
    StreamParameter,
)
from grader.records.verdict import Verdict
from grader.sandbox.backends import select
from grader.simulator.driver import RUNTIME

if TYPE_CHECKING:
    from pathlib import Path

    from grader.judge.correctness.cases import Judged
    from grader.sandbox.sandbox import Sandbox

N = 300
ORDERS = (Schedule.PROGRAM, Schedule.REVERSED)
HEADERS = "".join(f"#include <{name}>\n" for name in ("cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h", "cstdint"))
SOURCE = """
__global__ void ker_NAME(TYPE* y, const TYPE* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[n - 1 - i];
}
extern "C" void launch_NAME(TYPE* y, const TYPE* x, int n, cudaStream_t stream) {
  ker_NAME<<<(n + 127) / 128, 128, 0, stream>>>(y, x, n);
}
"""
WAYS = {
    "right": SOURCE,
    "unwritten": SOURCE.replace("if (i < n)", "if (i < n && i != 42)"),
    "past_the_end": SOURCE.replace("if (i < n)", "if (i < n + 1)").replace("x[n - 1 - i]", "x[i % n]"),
    "wrong": SOURCE.replace("x[n - 1 - i]", "i == 7 ? x[9] : x[n - 1 - i]"),
}
ON_THE_SIMULATOR = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")


def inputs(dtype: str) -> Inputs:
    """Numbers from 1 on, which every type holds; large ones where they must be exact."""
    values = np.arange(N) % 3 % 2 if dtype == "bool" else np.arange(N) % 100 + 1
    if dtype == "int64":
        values = values + (1 << 53)
    return Inputs({"x": values.astype(DTYPES[dtype].storage)}, {"y": (N,)}, {"n": N})


def written(source: str, name: str, spelling: str) -> str:
    return source.replace("NAME", name).replace("TYPE", spelling)


def problem(dtype: str, way: str = "right") -> KernelProblem:
    def oracle(_: Case, given: Inputs) -> dict[str, Expectation]:
        array = given.arrays["x"]
        assert array is not None
        expected = array[::-1] if DTYPES[dtype].exact else array[::-1].astype(np.float64)
        return {"y": Expectation((Candidate(expected, np.zeros(N)),))}

    return KernelProblem(
        id="reverse",
        file="reverse.cu",
        entry_point=f"launch_{way}_{dtype}",
        parameters=(
            ArrayParameter("y", Role.OUTPUT, dtype),
            ArrayParameter("x", Role.INPUT, dtype),
            ScalarParameter("n", "int"),
            StreamParameter("stream"),
        ),
        groups=("all",),
        cases=lambda _: (Case("300", "all", {"n": N}, "counted", 1),),
        timing_cases=lambda _: (),
        inputs=lambda _: inputs(dtype),
        oracle=oracle,
        minimal_bytes=lambda _: 2 * N * DTYPES[dtype].storage.itemsize,
    )


@cache
def sandbox() -> Sandbox:
    return select("process")


@cache
def built() -> tuple[bytes, Path]:
    """A source with every way of every type, and its library: most of a build goes into CUDA's headers."""
    texts = [
        written(source, f"{way}_{one.name}", one.spellings[0])
        for way, source in WAYS.items()
        for one in DTYPES.values()
    ]
    text = (HEADERS + "".join(texts)).encode()
    found = build("reverse.cu", {"reverse.cu": text}, find(), sandbox(), compile_limits(), Cache())
    assert found.artefact is not None, found.log
    return text, found.artefact


def judged(asked: KernelProblem, orders: tuple[Schedule, ...] = (Schedule.PROGRAM,)) -> Judged:
    text, library = built()
    launcher(asked, {asked.file: text}, Memory.DEVICE)
    return judge(
        asked,
        asked.cases(1),
        lambda: Sim(sandbox()).open(library, (asked.entry_point,)),
        orders,
        memory=Memory.DEVICE,
        seconds=60,
    )


@ON_THE_SIMULATOR
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_kernel_passes(dtype: str) -> None:
    (case,) = judged(problem(dtype, "right")).cases
    assert (case.verdict, case.message, case.diagnosis) == (Verdict.PASS, "", "")


@ON_THE_SIMULATOR
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_element_that_is_not_written_is_found(dtype: str) -> None:
    (case,) = judged(problem(dtype, "unwritten")).cases
    assert case.verdict is Verdict.FAIL
    assert [element.index for element in case.outputs[0].first_bad] == [[42]]
    assert (case.diagnosis or "").startswith("1 of 300 elements were never written")


@ON_THE_SIMULATOR
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_element_past_the_end_is_found(dtype: str) -> None:
    found = judged(problem(dtype, "past_the_end"))
    assert {finding.kind for finding in found.findings} & {"global_oob"}


@ON_THE_SIMULATOR
@pytest.mark.parametrize("dtype", DTYPES)
def test_wrong_numbers_are_shown(dtype: str) -> None:
    (case,) = judged(problem(dtype, "wrong")).cases
    given = inputs(dtype).arrays["x"]
    assert given is not None
    assert given[N - 8] != given[9]
    (output,) = case.outputs
    (element,) = output.first_bad
    expected, got = given[N - 8].item(), given[9].item()
    assert (element.index, element.expected, element.got) == ([7], expected, got)
    assert output.max_error == abs(expected - got)
    assert isinstance(element.expected, int) == DTYPES[dtype].exact


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_number_is_poison_in_program_order_and_in_another_one(dtype: str, *, again: bool) -> None:
    storage = DTYPES[dtype].storage
    size, all_set = storage.itemsize, b"\xff" * storage.itemsize
    held = {poison(8, storage, again=again).tobytes()[:size] for _ in range(2000)}
    others = {poison(8, storage, again=not again).tobytes()[:size] for _ in range(2000)} | {all_set}
    if DTYPES[dtype].precision and np.isnan(np.frombuffer(all_set, storage).astype(float)):  # no number
        held -= {all_set}
    assert not held & (others if again else others - {all_set})


@ON_THE_SIMULATOR
@pytest.mark.parametrize("value", [255, 0xF5])
def test_a_byte_that_is_not_written_is_found_whatever_should_be_there(value: int) -> None:
    given = Inputs({"x": np.full(N, value, np.uint8)}, {"y": (N,)}, {"n": N})
    asked = replace(problem("uint8", "unwritten"), inputs=lambda _: given)
    assert judged(asked, orders=ORDERS).cases[0].verdict is Verdict.FAIL


@pytest.mark.parametrize("dtype", DTYPES)
def test_poison_is_recognised_and_numbers_are_not(dtype: str) -> None:
    storage = DTYPES[dtype].storage
    held = poison(4096, storage).view(storage)
    assert poisoned(held).all()
    assert poisoned(np.full(4096, 0xFF, np.uint8).view(storage)).all()
    numbers = np.array([0, 1, 2, 100]).astype(storage)
    assert not poisoned(numbers).any()
    if DTYPES[dtype].precision:
        assert np.isnan(held.astype(np.float64)).all()
        assert not poisoned(np.array([np.nan, np.inf]).astype(storage)).any()
        below = np.array([-np.inf]).astype(storage)  # a NaN with all bits set where there is no infinity
        assert np.isnan(below.astype(float)).all() or not poisoned(below).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_launcher_with_another_type_is_refused_in_the_words_of_both(dtype: str) -> None:
    others = [one.spellings[0] for one in DTYPES.values() if one.name != dtype]
    for other in others:
        _refused(dtype, other)


def _refused(dtype: str, other: str) -> None:
    text = HEADERS + written(SOURCE, f"right_{dtype}", other)
    asked = f"{DTYPES[dtype].spellings[0]}* y"
    with pytest.raises(LauncherError) as raised:
        launcher(problem(dtype), {"reverse.cu": text.encode()}, None)
    assert f"{other}* y" in str(raised.value)
    assert asked in str(raised.value)


@pytest.mark.parametrize(
    ("dtype", "spelling"),
    [(one.name, spelling) for one in DTYPES.values() for spelling in (*one.spellings, "void")],
)
def test_every_spelling_of_a_type_is_understood(dtype: str, spelling: str) -> None:
    text = HEADERS + written(SOURCE, f"right_{dtype}", spelling)
    assert launcher(problem(dtype), {"reverse.cu": text.encode()}, None).notes == ()
