"""Triton's functions that measure time, where there is no clock: they call what they are given once."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import triton.testing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def without_clock() -> None:
    """Let ``do_bench`` and ``do_bench_cudagraph`` call their function once, and say that it is not timed."""
    triton.testing.do_bench = _once
    triton.testing.do_bench_cudagraph = _once


def _once(
    function: Callable[[], object],
    *_: object,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **__: object,
) -> float | list[float]:
    sys.stderr.write("grader: do_bench calls its function once here; its times are NaN.\n")
    function()
    if quantiles:
        return [math.nan] * len(quantiles)
    return [math.nan] if return_mode == "all" else math.nan
