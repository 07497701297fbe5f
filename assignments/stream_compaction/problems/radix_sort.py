"""All integers of 32 bits, sorted; half of them are small, so that the lowest bits decide, too."""

import numpy as np

from .operations import operation

PROBLEM = operation(
    "radix_sort",
    lambda random, n: random.integers(-(2**31), 2**31, n) >> random.choice([0, 28], n),
    np.sort,
)
