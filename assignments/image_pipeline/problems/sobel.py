"""Edges of a grey image by Sobel's operator: |gx| + |gy|, at most 255."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.problems.program import Run, program

from .images import GIVEN, drawn, on_image

if TYPE_CHECKING:
    from grader.problems.problem import Case


def run(case: Case) -> Run:
    """Beyond the border of the image, its nearest pixel counts."""
    image = drawn(case, levels=case.sizes["levels"])
    padded = np.pad(image, 1, mode="edge")
    across = padded[:-2] + 2 * padded[1:-1] + padded[2:]
    down = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    strength = np.abs(across[:, 2:] - across[:, :-2]) + np.abs(down[2:] - down[:-2])
    return on_image(image, np.minimum(strength, 255))


PROBLEM = program(
    id="sobel",
    file="sobel.cu",
    run=run,
    given=GIVEN,
    sizes={
        "small images": [
            {"width": 1, "height": 1, "levels": 256},
            {"width": 3, "height": 2, "levels": 256},
            {"width": 16, "height": 16, "levels": 2},
        ],
        "odd sizes": [
            {"width": 33, "height": 17, "levels": 256},
            {"width": 1, "height": 100, "levels": 256},
            {"width": 129, "height": 1, "levels": 256},
        ],
        "large images": [{"width": 320, "height": 240, "levels": 8}],
    },
)
