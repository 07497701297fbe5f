import triton
import triton.language as tl


@triton.jit
def mm(C, A, B, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    nn = tl.cdiv(N, BN)
    i = (pid // nn) * BM + tl.arange(0, BM)
    j = (pid % nn) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(A + i[:, None] * K + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(B + k[:, None] * N + j[None, :], mask=(k[:, None] < K) & (j[None, :] < N), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    tl.store(C + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))


def matmul(c, a, b):
    M, K = a.shape
    N = b.shape[1]
    mm[(triton.cdiv(M, 32) * triton.cdiv(N, 32),)](c, a, b, M, N, K, 32, 32, 32)
