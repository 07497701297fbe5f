"""The coordinates of charts, which the templates draw as SVG.

Horizontal lengths are in percent of a chart's width, so that it fits every screen while letters keep their
size. Heights are in pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grader.records.record import PerformanceResult, TimedCase

ROW = 44  # height of a bar with its label, in pixels
CELL = 10  # height of a part of an array, in pixels
PLOT = 190  # inner height of the roofline chart, in pixels
_NICE = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Bar:
    """The speedup of a shape, with its interval."""

    label: str
    value: str
    top: int
    width: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class Speedups:
    """Bars, one below the other, and the target as a vertical line."""

    bars: tuple[Bar, ...]
    target: float  # percent
    height: int


@dataclass(frozen=True)
class Mark:
    """A point or a label; ``x`` in percent, ``y`` in pixels from the top."""

    x: float
    y: float
    label: str
    value: str = ""


@dataclass(frozen=True)
class Roofline:
    """Bandwidth over the bytes of a shape, for the kernel and the baseline; the device's is the roof."""

    yours: tuple[Mark, ...]
    baseline: tuple[Mark, ...]
    roof: tuple[Mark, ...]
    across: tuple[Mark, ...]  # labels of the horizontal axis
    up: tuple[Mark, ...]  # labels of the vertical axis
    height: int


@dataclass(frozen=True)
class Cell:
    """A part of an array with wrong elements; ``x`` and ``width`` in percent, ``y`` in pixels."""

    x: float
    y: int
    width: float
    share: float  # of its elements


@dataclass(frozen=True)
class Picture:
    """Which parts of an array are wrong."""

    cells: tuple[Cell, ...]
    height: int
    row: int = CELL  # height of a part


@dataclass(frozen=True)
class Bin:
    """A column of a distribution."""

    label: str
    count: int
    left: float
    width: float
    top: float
    height: float


def picture(rows: Sequence[str]) -> Picture:
    """The cells of ``OutputResult.picture`` that are not all right."""
    cells = (
        Cell(100 * column / len(row), CELL * down, 100 / len(row), 1 if mark == "#" else int(mark) / 10)
        for down, row in enumerate(rows)
        for column, mark in enumerate(row)
        if mark != "."
    )
    return Picture(tuple(cells), CELL * len(rows))


def speedups(performance: PerformanceResult) -> Speedups | None:
    """The speedup chart of all timed shapes; None if no shape was timed."""
    timed = [case for case in performance.cases if case.speedup is not None]
    if not timed:
        return None
    most = max(
        performance.target, *(case.interval[1] if case.interval else case.speedup or 0 for case in timed)
    )
    scale = 100 / (1.08 * most)
    bars = []
    for index, case in enumerate(timed):
        speed = case.speedup or 0.0
        low, high = case.interval or (speed, speed)
        bars.append(
            Bar(
                label=case.name,
                value=f"{speed:.2f}x",
                top=ROW * index + 24,
                width=speed * scale,
                low=low * scale,
                high=high * scale,
                verdict=case.verdict,
            )
        )
    return Speedups(tuple(bars), performance.target * scale, ROW * len(bars) + 28)


def roofline(performance: PerformanceResult) -> Roofline | None:
    """The roofline chart of all shapes whose bytes are known; None if there are none."""
    timed = sorted(
        (
            case
            for case in performance.cases
            if case.minimal_bytes and case.yours_us and case.bandwidth_fraction
        ),
        key=lambda case: case.minimal_bytes or 0,
    )
    if not timed:
        return None
    least, most = (math.log10(case.minimal_bytes or 1) for case in (timed[0], timed[-1]))
    highest = max(max(_rate(case), _roof(case), _baseline(case)) for case in timed)
    step = _step(highest)
    top = step * math.ceil(highest * 1.02 / step)

    def across(size: float) -> float:
        return 14 + (80 * (math.log10(size) - least) / (most - least) if most > least else 40)

    def mark(case: TimedCase, rate: float) -> Mark:
        value = f"{rate:.0f} GB/s"
        return Mark(
            across(case.minimal_bytes or 1), 10 + PLOT * (1 - rate / top), f"{case.name}: {value}", value
        )

    sizes = sorted({timed[0].minimal_bytes or 1, timed[-1].minimal_bytes or 1})
    return Roofline(
        yours=tuple(mark(case, _rate(case)) for case in timed),
        baseline=tuple(mark(case, _baseline(case)) for case in timed if case.baseline_us),
        roof=tuple(mark(case, _roof(case)) for case in timed),
        across=tuple(Mark(across(size), PLOT + 28, _bytes(size)) for size in sizes),
        up=tuple(
            Mark(0, 10 + PLOT * (1 - step * index / top), f"{step * index:g}")
            for index in range(round(top / step) + 1)
        ),
        height=PLOT + 36,
    )


def distribution(points: Sequence[float], possible: float, bins: int = 8) -> tuple[Bin, ...]:
    """The histogram of ``points`` out of ``possible``, with a separate column for full marks."""
    if not possible:
        return ()
    width = possible / bins
    counts = [0] * (bins + 1)
    for earned in points:
        counts[bins if earned >= possible else max(0, int(earned / width))] += 1
    most, share = max(1, *counts), 100 / (bins + 1)
    columns = []
    for index, count in enumerate(counts):
        height = 96 * count / most
        label = f"{width * index:.3g}" if index < bins else f"{possible:g}"
        columns.append(Bin(label, count, index * share + 0.6, share - 1.2, 116 - height, height))
    return tuple(columns)


def outliers(values: Iterable[float], limit: float = 3.5) -> tuple[float, ...]:
    """The values with a modified z-score ``0.6745 |x - median| / MAD`` above ``limit``.

    If at least half of the values equal the median, the MAD is 0 and there are no outliers.
    """
    listed = list(values)
    if len(listed) < 5:
        return ()
    middle = median(listed)
    spread = median(abs(value - middle) for value in listed)
    return tuple(value for value in listed if spread and 0.6745 * abs(value - middle) / spread > limit)


def _rate(case: TimedCase) -> float:
    """GB/s of the kernel, counting only the bytes that any implementation must move."""
    return (case.minimal_bytes or 0) / (case.yours_us or 1) / 1e3


def _roof(case: TimedCase) -> float:
    """GB/s of the streaming kernel on the same bytes."""
    return _rate(case) / (case.bandwidth_fraction or 1)


def _baseline(case: TimedCase) -> float:
    """GB/s of the baseline on the same minimal bytes."""
    return (case.minimal_bytes or 0) / case.baseline_us / 1e3 if case.baseline_us else 0.0


def _step(most: float) -> float:
    power = 10.0 ** math.floor(math.log10(most / 4))
    return next(nice * power for nice in _NICE if nice * power * 5 >= most)


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
