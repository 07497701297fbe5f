import triton
import triton.language as tl


@triton.jit
def walk(h, a, b, h0, T, D, HAS_H0: tl.constexpr, BD: tl.constexpr):
    bi = tl.program_id(1)
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    ok = d < D
    s = tl.zeros((BD,), tl.float32)
    if HAS_H0:
        s = tl.load(h0 + bi * D + d, mask=ok, other=0.0)
    base = bi.to(tl.int64) * T * D
    for t in range(0, T):
        o = base + t * D + d
        s = tl.load(a + o, mask=ok, other=0.0).to(tl.float32) * s + tl.load(b + o, mask=ok, other=0.0).to(tl.float32)
        tl.store(h + o, s, mask=ok)


def linear_scan(h, a, b, h0):
    B, T, D = h.shape
    walk[(triton.cdiv(D, 32), B)](h, a, b, h0 if h0 is not None else h, T, D, h0 is not None, 32, num_warps=1)
