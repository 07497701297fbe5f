"""A box blur of a colour image: each pixel becomes the mean of those around it, rounded to the nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.problems.program import Run, program

from .images import GIVEN, drawn, on_image

if TYPE_CHECKING:
    from grader.problems.problem import Case


def run(case: Case) -> Run:
    """Where the window leaves the image, the nearest pixel of the border counts."""
    radius = case.sizes["radius"]
    image = drawn(case, 3)
    window = 2 * radius + 1
    total = np.pad(image, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
    for axis in (0, 1):
        before = np.insert(np.cumsum(total, axis), 0, 0, axis)
        ends, begins = range(window, before.shape[axis]), range(before.shape[axis] - window)
        total = np.take(before, ends, axis) - np.take(before, begins, axis)
    return on_image(image, (total + window**2 // 2) // window**2, str(radius))


PROBLEM = program(
    id="blur",
    file="blur.cu",
    run=run,
    given=GIVEN,
    sizes={
        "small images": [
            {"width": 1, "height": 1, "radius": 1},
            {"width": 2, "height": 3, "radius": 0},
            {"width": 5, "height": 4, "radius": 7},
        ],
        "odd sizes": [
            {"width": 33, "height": 17, "radius": 3},
            {"width": 1, "height": 100, "radius": 2},
            {"width": 127, "height": 2, "radius": 1},
        ],
        "large images": [{"width": 200, "height": 150, "radius": 4}],
    },
    timed=[{"width": 3000, "height": 2000, "radius": 150}],
)
