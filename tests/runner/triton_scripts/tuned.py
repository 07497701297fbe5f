"""A kernel of which autotuning has two configurations: the second reads a number behind the end."""

import torch
import triton
import triton.language as tl

torch.set_default_device("cuda")


@triton.autotune([triton.Config({"more": more}) for more in (0, 1)], key=["size"], restore_value=["y"])
@triton.jit
def doubled(y, x, size, width: tl.constexpr, more: tl.constexpr):
    at = tl.arange(0, width)
    value = tl.load(x + at, mask=at < size + more, other=0.0)
    tl.store(y + at, tl.load(y + at, mask=at < size) + 2 * value, mask=at < size)


x, y = torch.randn(100, device="cuda"), torch.ones(100, device="cuda")
doubled[(1,)](y, x, 100, 128)
torch.testing.assert_close(y, 1 + 2 * x)
print("right")
