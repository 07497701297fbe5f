import triton
import triton.language as tl


@triton.jit
def running(out, x, n, BLOCK: tl.constexpr):
    before = 0.0
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n, other=0.0)
        tl.store(out + i, tl.cumsum(v, axis=0) + before, mask=i < n)
        before += tl.sum(v, axis=0)


def scan(sums, x):
    running[(1,)](sums, x, x.shape[0], 512)
