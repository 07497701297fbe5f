"""Tiles by descriptors, which know where the vectors end: no mask, but in the last tile.

A GPU stores by a descriptor 16 bytes at a time, and would write behind the end of z there.
"""

import triton
import triton.language as tl


@triton.jit
def ker(z, x, y, n, size: tl.constexpr):
    first = tl.program_id(0) * size
    of_x = tl.make_tensor_descriptor(x, [n], [1], [size])
    of_y = tl.make_tensor_descriptor(y, [n], [1], [size])
    value = of_x.load([first]) + of_y.load([first])
    if first + size <= n:
        tl.make_tensor_descriptor(z, [n], [1], [size]).store([first], value)
    else:
        at = first + tl.arange(0, size)
        tl.store(z + at, value, mask=at < n)


def vector_add(z, x, y):
    n = x.shape[0]
    ker[(triton.cdiv(n, 256),)](z, x, y, n, 256)
