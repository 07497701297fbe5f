"""An exclusive scan of integers, whose sums do not wrap."""

import numpy as np

from .operations import operation

PROBLEM = operation(
    "scan",
    lambda random, n: random.integers(-40, 50, n),
    lambda array: np.concatenate([[0], np.cumsum(array, dtype=np.int64)])[: array.size],
)
