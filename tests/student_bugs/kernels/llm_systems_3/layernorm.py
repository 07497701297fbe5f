import triton
import triton.language as tl


@triton.jit
def ln_fwd(y_ptr, var_ptr, mean_ptr, x_ptr, g_ptr, b_ptr, N, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    keep = offs < N
    x = tl.load(x_ptr + pid * N + offs, mask=keep, other=0.0)
    mean = tl.sum(x, axis=0) / N
    diff = tl.where(keep, x - mean, 0.0)
    var = tl.sum(diff * diff, axis=0) / N
    tl.store(mean_ptr + pid, mean)
    tl.store(var_ptr + pid, var)
    g = tl.load(g_ptr + offs, mask=keep)
    b = tl.load(b_ptr + offs, mask=keep)
    tl.store(y_ptr + pid * N + offs, diff * tl.rsqrt(var + 1e-8) * g + b, mask=keep)


@triton.jit
def ln_bwd(dx_ptr, dg_ptr, db_ptr, dy_ptr, x_ptr, g_ptr, var_ptr, mean_ptr, N, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    keep = offs < N
    inv = tl.rsqrt(tl.load(var_ptr + pid) + 1e-8)
    mean = tl.load(mean_ptr + pid)
    x = tl.load(x_ptr + pid * N + offs, mask=keep, other=0.0)
    dy = tl.load(dy_ptr + pid * N + offs, mask=keep, other=0.0)
    gamma = tl.load(g_ptr + offs, mask=keep, other=0.0)
    xhat = tl.where(keep, (x - mean) * inv, 0.0)
    g = dy * gamma
    c1 = tl.sum(g, axis=0) / N
    c2 = tl.sum(g * xhat, axis=0) / N
    tl.store(dx_ptr + pid * N + offs, inv * (g - c1 - xhat * c2), mask=keep)
    tl.atomic_add(dg_ptr + offs, dy * xhat, mask=keep)
    tl.atomic_add(db_ptr + offs, dy, mask=keep)


def layernorm_forward(ln_res, vars, means, inp, scale, bias):
    M, N = inp.shape
    ln_fwd[(M,)](ln_res, vars, means, inp, scale, bias, N, triton.next_power_of_2(N))


def layernorm_backward(gamma_grad, betta_grad, inp_grad, out_grad, inp, gamma, vars, means):
    M, N = inp.shape
    gamma_grad.zero_()
    betta_grad.zero_()
    ln_bwd[(M,)](
        inp_grad, gamma_grad, betta_grad, out_grad, inp, gamma, vars, means, N, triton.next_power_of_2(N)
    )
