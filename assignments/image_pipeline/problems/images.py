"""What the three programs share: the course's header, images that are drawn anew, and runs on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.formats import write_pnm
from grader.problems.program import Numbers, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.problems.problem import Case

    Image = NDArray[np.int64]

HEADER = Path(__file__).parents[1] / "student_template" / "pnm.h"
GIVEN = {HEADER.name: HEADER.read_bytes()}


def drawn(case: Case, *channels: int, levels: int = 256) -> Image:
    """An image of the case's width and height whose pixels take so many of the values up to 255."""
    generator = np.random.default_rng(case.seed)
    values = np.sort(generator.choice(256, levels, replace=False))
    shape = (case.sizes["height"], case.sizes["width"], *channels)
    return values[generator.integers(levels, size=shape)]


def on_image(image: Image, expected: Image, *further: str) -> Run:
    """A run on ``image`` that has to write the image ``expected``."""
    suffix = "ppm" if image.ndim == 3 else "pgm"
    source, target = f"in.{suffix}", f"out.{suffix}"
    return Run(
        arguments=(source, target, *further),
        files={source: write_pnm(image)},
        expected={target: Numbers(expected.astype(np.uint8), "pnm")},
    )
