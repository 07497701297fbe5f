import triton
import triton.language as tl


@triton.jit
def soft_fwd(p, mask_p, Q, K, rows_of_batch, HAS_MASK: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    ok = cols < K
    z = tl.load(p + r * K + cols, mask=ok, other=float("-inf"))
    if HAS_MASK:
        z += tl.load(mask_p + (r // rows_of_batch) * K + cols, mask=ok, other=0.0)
    if CAUSAL:
        z = tl.where(cols > r % Q, float("-inf"), z)
    top = tl.max(z, axis=0)
    e = tl.where(z == float("-inf"), 0.0, tl.exp(z - top))
    tl.store(p + r * K + cols, e / (tl.sum(e, axis=0) + 1e-8), mask=ok)


@triton.jit
def soft_bwd(g_p, s_p, K, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    ok = cols < K
    g = tl.load(g_p + r * K + cols, mask=ok, other=0.0)
    s = tl.load(s_p + r * K + cols, mask=ok, other=0.0)
    tl.store(g_p + r * K + cols, s * (g - tl.sum(g * s, axis=0)), mask=ok)


def softmax_forward(inp, attn_mask, mask_future):
    B, H, Q, K = inp.shape
    m = inp if attn_mask is None else attn_mask
    block = triton.next_power_of_2(K)
    soft_fwd[(B * H * Q,)](inp, m, Q, K, H * Q, attn_mask is not None, bool(mask_future), block)


def softmax_backward(out_grad, soft_inp):
    K = soft_inp.shape[-1]
    rows = soft_inp.numel() // K
    soft_bwd[(rows,)](out_grad, soft_inp, K, triton.next_power_of_2(K))
