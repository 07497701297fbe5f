"""A kernel in place that autotuning does not restore, launched twice with the same key."""

import torch
import triton
import triton.language as tl

torch.set_default_device("cuda")


@triton.autotune([triton.Config({"width": width}) for width in (128, 256)], key=["size"])
@triton.jit
def add_one(y, size, width: tl.constexpr):
    at = tl.arange(0, width)
    tl.store(y + at, tl.load(y + at, mask=at < size) + 1, mask=at < size)


y = torch.zeros(100, device="cuda")
add_one[(1,)](y, 100)
first = int(y[0])
add_one[(1,)](y, 100)
print(f"applied {first} times, then {int(y[0]) - first}")
