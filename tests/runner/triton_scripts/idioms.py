"""What drivers of kernels write around them: each line has to run, as on a machine with a GPU."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import nn

IDIOMS = """
x.is_cuda and x.device.type == "cuda" and x.get_device() == 0 and x.device.index == 0
x.device == torch.device("cuda", 0) and str(x.device) == "cuda:0" and not x.is_cpu
torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
torch.device("cuda" if torch.cuda.is_available() else "cpu").type == "cuda"
torch.ones(4, device=0).is_cuda and torch.ones(4, device="cuda:0").is_cuda and torch.ones(4).cuda().is_cuda
torch.ones(4).to("cuda", torch.float16).dtype == torch.float16
torch.ones(4).to(x.device).is_cuda and torch.ones(4).to(x).is_cuda and not x.cpu().is_cuda
x.cpu().numpy().shape == (4, 8) and x.to("cpu").tolist() == x.tolist()
refuses("numpy", lambda: x.numpy()) and refuses("array", lambda: np.asarray(x))
refuses("two devices", lambda: x + torch.ones(4, 8)) and refuses("matmul", lambda: x @ torch.ones(8, 4))
refuses("cpu tensor", lambda: doubled[(1,)](torch.ones(32), 32))
torch.equal(x + torch.tensor(2.0), x + 2)
torch.from_numpy(np.ones(3)).cuda().sum().item() == 3
torch.as_tensor(np.arange(3), device="cuda").tolist() == [0, 1, 2]
torch.empty(4).pin_memory().is_pinned() and torch.empty(4, pin_memory=True).cuda(non_blocking=True).is_cuda
torch.Generator(device="cuda").manual_seed(3).device.type == "cuda"
torch.equal(seeded(3), seeded(3)) and not torch.equal(seeded(3), seeded(4))
(torch.manual_seed(1), torch.randn(3, device="cuda"))[1].is_cuda
(torch.cuda.manual_seed(1), torch.cuda.manual_seed_all(1))[0] is not None
torch.randint(0, 5, (9,), device="cuda").max() < 5
torch.rand(9, device="cuda", dtype=torch.float64).dtype == torch.float64
torch.randperm(7, device="cuda").sort().values.tolist() == list(range(7))
torch.arange(6, device="cuda").view(2, 3).t().contiguous().stride() == (2, 1)
torch.linspace(0, 1, 5, device="cuda")[-1].item() == 1
torch.full((2, 2), 3.0, device="cuda").eq(3).all()
torch.empty_strided((2, 3), (1, 2), device="cuda").stride() == (1, 2)
torch.zeros_like(x).sum() == 0 and x.new_ones(2).is_cuda and x.new_tensor([1]).is_cuda
torch.allclose(x.softmax(-1).sum(-1), torch.ones(4, device="cuda"))
torch.testing.assert_close(x.half().float(), x, rtol=1e-2, atol=1e-2) is None
torch.testing.assert_close(x.cpu(), x.detach().clone().cpu()) is None
torch.equal(x[x > 0], x.masked_select(x > 0)) and x[:, ::2].shape == (4, 4)
torch.equal(x[torch.tensor([0, 2])], x[[0, 2]])
torch.stack([x, x]).shape == torch.cat([x[None], x[None]]).shape
torch.einsum("ij,kj->ik", x, x).shape == (4, 4)
torch.where(x > 0, x, 0.0).min() >= 0 and x.clamp(min=0).min() >= 0
x.argmax(-1).dtype == torch.int64 and x.topk(2).indices.shape == (4, 2)
F.layer_norm(x, (8,)).shape == F.rms_norm(x, (8,)).shape == F.gelu(x).shape
F.cross_entropy(x, torch.zeros(4, dtype=torch.long, device="cuda")).item() > 0
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]).shape == (1, 1, 4, 8)
F.conv2d(x[None, None], torch.ones(1, 1, 3, 3, device="cuda")).shape == (1, 1, 2, 6)
F.conv1d(x[None], torch.ones(4, 1, 3, device="cuda"), groups=4).shape == (1, 4, 6)
F.dropout(x, 0.5).shape == x.shape and F.embedding(torch.tensor([1], device="cuda"), x).shape == (1, 8)
nn.Linear(8, 2).cuda()(x).is_cuda and nn.Linear(8, 2, device="cuda")(x).is_cuda
next(nn.Sequential(nn.Linear(8, 8), nn.ReLU()).to("cuda").parameters()).is_cuda
copy.deepcopy(nn.Linear(2, 2).cuda()).weight.is_cuda
gradient(lambda a: (a * a).sum()).equal(2 * x)
gradient(lambda a: Doubled.apply(a).sum()).equal(torch.full_like(x, 2))
torch.optim.AdamW(nn.Linear(2, 2).cuda().parameters()).step() is None
torch.autocast("cuda", dtype=torch.bfloat16).__enter__() is not None or True
isinstance(torch.cuda.Event(enable_timing=True), torch.cuda.Event)
timed() >= 0
torch.cuda.Stream() != torch.cuda.current_stream() == torch.cuda.default_stream()
on_another_stream().equal(x + 1)
torch.cuda.current_stream().cuda_stream == torch._C._cuda_getCurrentRawStream(0)
torch.cuda.current_stream().synchronize() is None and torch.cuda.synchronize() is None
torch.cuda.mem_get_info()[0] <= torch.cuda.mem_get_info()[1]
torch.cuda.memory_allocated() > 0 and torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats() is None and torch.cuda.empty_cache() is None
torch.cuda.get_device_properties(0).total_memory > 0
torch.cuda.get_device_properties("cuda").multi_processor_count == 108
torch.cuda.get_device_capability() == (8, 0) and "A100" in torch.cuda.get_device_name(0)
torch.cuda.is_bf16_supported() and torch.version.cuda.split(".")[0] == "13"
torch.cuda.nvtx.range_push("x") is None and torch.cuda.nvtx.range_pop() is None
torch.cuda.FloatTensor(4).is_cuda and torch.cuda.FloatTensor([1, 2]).tolist() == [1, 2]
torch.compile(lambda a: a + 1)(x).equal(x + 1)
torch.compile(mode="max-autotune")(lambda a: a + 1)(x).equal(x + 1)
triton.testing.do_bench(lambda: x + 1) != 0
len(triton.testing.do_bench(lambda: x + 1, quantiles=[0.5, 0.2])) == 2
triton.runtime.driver.active.get_active_torch_device() == x.device
triton.runtime.driver.active.get_current_target().arch == 80
triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"] == 108
doubled.warmup(x, 32, grid=(1,)).n_regs > 0 and doubled.warmup(x, 32, grid=(1,)).n_spills == 0
launched().equal(2 * x) and launched(x.t()).equal(2 * x.t())
through_addresses().equal(x[0] + x[2])
x.data_ptr() % 16 == 0 and x[1].data_ptr() - x[0].data_ptr() == 32
x.untyped_storage().nbytes() == 128 and x.storage_offset() == 0
torch.utils.dlpack.from_dlpack(x).device == x.device
x.__cuda_array_interface__["data"][0] == x.data_ptr()
torch.empty(0, device="cuda").resize_(4).shape == (4,)
"cuda:0" in repr(x) and isinstance(x.is_contiguous(), bool)
torch.backends.cuda.matmul.allow_tf32 in (True, False)
torch.set_float32_matmul_precision("high") is None
"""


@triton.jit
def doubled(x, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(x + at, 2 * tl.load(x + at))


@triton.jit
def added(pointers, out, size: tl.constexpr):
    at = tl.arange(0, size)
    first = tl.load(pointers).to(tl.pointer_type(tl.float32))
    second = tl.load(pointers + 1).to(tl.pointer_type(tl.float32))
    tl.store(out + at, tl.load(first + at) + tl.load(second + at))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return launched(x.detach())

    @staticmethod
    def backward(ctx, grad):
        assert grad.is_cuda
        return launched(grad.contiguous())


def launched(x=None):
    out = (torch.linspace(-1, 1, 32, device="cuda").view(4, 8) if x is None else x).contiguous().clone()
    doubled[(1,)](out, 32)
    return out


def through_addresses():
    pointers, out = (
        torch.tensor([x[0].data_ptr(), x[2].data_ptr()], device="cuda"),
        torch.empty(8, device="cuda"),
    )
    added[(1,)](pointers, out, 8)
    return out


def seeded(seed):
    return torch.randn(4, device="cuda", generator=torch.Generator(device="cuda").manual_seed(seed))


def gradient(function):
    leaf = x.detach().clone().requires_grad_()
    function(leaf).backward()
    return leaf.grad


def timed():
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    launched()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def on_another_stream():
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = x + 1
    torch.cuda.current_stream().wait_stream(stream)
    return result


def refuses(_what, call):
    try:
        call()
    except (TypeError, RuntimeError, ValueError):
        return True
    return False


x = torch.linspace(-1, 1, 32, device="cuda").view(4, 8)
for idiom in IDIOMS.strip().splitlines():
    try:
        holds = bool(eval(idiom))
    except Exception as error:
        holds = False
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}", end=" in ")
    if not holds:
        print(idiom)
print(len(IDIOMS.strip().splitlines()), "idioms")
