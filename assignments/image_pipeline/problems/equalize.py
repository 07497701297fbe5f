"""Histogram equalisation of a grey image: its values are spread so that all are about as frequent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.problems.program import Run, program

from .images import GIVEN, drawn, on_image

if TYPE_CHECKING:
    from grader.problems.problem import Case


def run(case: Case) -> Run:
    """An image of a single value becomes black."""
    image = drawn(case, levels=case.sizes["levels"])
    below = np.cumsum(np.bincount(image.ravel(), minlength=256))
    least = below[image.min()]
    rest = image.size - least
    table = ((below - least) * 255 + rest // 2) // max(rest, 1)
    return on_image(image, table[image])


PROBLEM = program(
    id="equalize",
    file="equalize.cu",
    run=run,
    given=GIVEN,
    sizes={
        "small images": [
            {"width": 1, "height": 1, "levels": 256},
            {"width": 7, "height": 5, "levels": 3},
            {"width": 16, "height": 16, "levels": 256},
        ],
        "one value": [{"width": 40, "height": 30, "levels": 1}],
        "odd sizes": [
            {"width": 333, "height": 1, "levels": 256},
            {"width": 67, "height": 129, "levels": 17},
        ],
        "large images": [{"width": 320, "height": 240, "levels": 200}],
    },
)
