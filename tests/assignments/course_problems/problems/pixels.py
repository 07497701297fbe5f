"""Pixels of four bytes over a background of three, as float4; and their differences, as int4."""

import torch

from grader.problems.contents import integers
from grader.problems.formula import Range, problem


def laid_over(front, behind):
    alpha, colour = front[:, 3:], front[:, :3]
    mixed = (colour.int() * alpha + behind.int() * (255 - alpha.int())) / 65025
    difference = colour.int() - behind
    return {
        "mixed": torch.cat([mixed, alpha / 255], 1),
        "difference": torch.cat([difference, difference.sum(1, keepdim=True)], 1),
    }


PROBLEM = problem(
    id="pixels",
    file="pixels.cu",
    launcher="launch_pixels(float4* mixed, int4* difference, const uchar4* front, const uchar3* behind, "
    "int n, cudaStream_t stream)",
    formula=laid_over,
    inputs=lambda n: {"front": integers(0, 255, n, 4), "behind": integers(0, 255, n, 3)},
    sizes={"n": Range(1, 1 << 20)},
)
