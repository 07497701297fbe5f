"""All integers of 32 bits, sorted."""

import numpy as np

from .operations import operation

PROBLEM = operation(
    "radix_sort",
    lambda random, n: random.integers(-(2**31), 2**31, n),
    np.sort,
)
