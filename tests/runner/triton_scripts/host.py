"""What a script does around its kernels: devices by name, memory that the host changes, autotuning."""

import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"size": 64}, num_warps=2), triton.Config({"size": 32}, num_warps=1)]


@triton.jit
def scale(x, y, n, factor, offset, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, value * factor + offset, mask=at < n)


tuned = triton.autotune(CONFIGS, key=["n"])(scale)
grid = lambda given: (triton.cdiv(given["n"], given["size"]),)  # noqa: E731

x = torch.arange(100, dtype=torch.float32, device="cuda")
y = torch.empty_like(x)
assert x.is_cuda
assert torch.cuda.is_available()
assert torch.cuda.get_device_properties(x.device).multi_processor_count > 1
with torch.cuda.device(x.device):
    torch.cuda.synchronize()
tuned[grid](x, y, 100, 3.0, 1)  # 1 becomes a constant of the code
assert tuned.best_config is CONFIGS[0]
torch.testing.assert_close(y, 3 * x + 1)
x.add_(1)  # on the host, after the device has had it
scale[grid](x[10:], y[20:], 80, 2.0, 0.5, size=16)
torch.testing.assert_close(y[20:], 2 * x[10:90] + 0.5)
torch.testing.assert_close(y[:20], 3 * (x[:20] - 1) + 1)

half, double = torch.ones(5, dtype=torch.bfloat16).cuda(), torch.zeros(5, dtype=torch.float64, device=0)
scale[grid](half, double, 5, 0.25, -7, size=16)
assert double.tolist() == [-6.75] * 5
print("well done")
