"""Tiles by descriptors, which know where the vectors end: no mask."""

import triton
import triton.language as tl


@triton.jit
def ker(z, x, y, n, size: tl.constexpr):
    first = tl.program_id(0) * size
    of_x = tl.make_tensor_descriptor(x, [n], [1], [size])
    of_y = tl.make_tensor_descriptor(y, [n], [1], [size])
    of_z = tl.make_tensor_descriptor(z, [n], [1], [size])
    of_z.store([first], of_x.load([first]) + of_y.load([first]))


def vector_add(z, x, y):
    n = x.shape[0]
    ker[(triton.cdiv(n, 256),)](z, x, y, n, 256)
