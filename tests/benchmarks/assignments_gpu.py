"""The kernels of ``rmsnorm`` and ``rglru`` over the published shapes, beside other kernels.

    PYTHONPATH=tests python tests/benchmarks/assignments_gpu.py OUT.json [--only rmsnorm | rglru] [--rounds N]

Everything is bfloat16: RMSNorm of rows of 4096 over the number of tokens, the RG-LRU of 8 x 1024 channels
over the length, with causal attention of 16 heads of 64 beside it. As in ``kernels.py``, the versions are
timed in turn in CUDA graphs over inputs that exceed the L2 several times, and percentages are those of a
streaming kernel with the same minimal bytes. What cannot be imported or run is named with the reason under
"skipped". ``plot_scan.py`` draws the times of the RG-LRU.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import kernels as bench
import torch
from torch.nn import functional

from grader.judge.timing.measure import slots

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Launch = Callable[[], object]
    Tensors = dict[str, torch.Tensor]
    Way = Callable[[Tensors], Launch]

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
TOKENS, HIDDEN = (256, 1024, 4096, 8192, 16_384), 4096
LENGTHS, BATCH, WIDTH, HEADS = (512, 1024, 2048, 4096, 8192, 16_384), 8, 1024, 16
EPSILON, HALF = 1e-6, 2  # bytes of an element
SECONDS = 140  # after which no further shape begins
FAULTS = (ImportError, AttributeError, TypeError, ValueError, RuntimeError)


def given(name: str) -> Any:  # noqa: ANN401 - a module
    """The module of an assignment's template that calls its launchers, with the reference built for it."""
    path = ASSIGNMENTS / name / "student_template" / "kernels.py"
    spec = importlib.util.spec_from_file_location(f"kernels_of_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.LIBRARIES = f"LIBRARIES_OF_{name.upper()}"
    module.build(ASSIGNMENTS / name / "reference")
    return module


def half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").bfloat16()


def norm_tensors(rows: int) -> Tensors:
    x = half(rows, HIDDEN)
    rstd = torch.rsqrt(x.float().square().mean(-1) + EPSILON)
    found = {"x": x, "dy": half(rows, HIDDEN), "weight": half(HIDDEN), "rstd": rstd}
    return found | {
        "y": torch.empty_like(x),
        "dx": torch.empty_like(x),
        "dweight": torch.empty_like(found["weight"]),
    }


def scan_tensors(length: int) -> Tensors:
    found = {name: half(BATCH, length, WIDTH) for name in ("x", "gx", "ga", "dh")}
    found["c"] = torch.empty(WIDTH, device="cuda").uniform_(-5, -3)
    found |= {name: torch.empty_like(found["x"]) for name in ("h", "dx", "dgx", "dga")}
    return found | {"dc": torch.empty_like(found["c"]), "dh0": torch.empty(BATCH, WIDTH, device="cuda")}


def llama(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """What models do, operation by operation."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)).to(x.dtype)


def llama_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    n, g = x.float() * rstd[:, None], dy.float() * weight.float()
    dx = rstd[:, None] * (g - n * (g * n).mean(-1, keepdim=True))
    return dx.to(x.dtype), (dy.float() * n).sum(0).to(x.dtype)


def gates(
    x: torch.Tensor, gx: torch.Tensor, ga: torch.Tensor, c: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Factors and terms of the scan, operation by operation."""
    d = 8 * torch.sigmoid(ga.float()) * functional.softplus(c)
    return torch.exp(-d).to(x.dtype), (torch.sqrt(-torch.expm1(-2 * d)) * torch.sigmoid(gx) * x).to(x.dtype)


def liger() -> Any:  # noqa: ANN401 - a module
    return importlib.import_module("liger_kernel.ops.rms_norm")


def liger_forward(t: Tensors) -> Launch:
    ops = liger()
    return lambda: ops.rms_norm_forward(t["x"], t["weight"], EPSILON, 0.0, "llama", None)


def liger_backward(t: Tensors) -> Launch:
    ops = liger()
    _, _, rstd, block, warps, mode = ops.rms_norm_forward(t["x"], t["weight"], EPSILON, 0.0, "llama", None)
    return lambda: ops.rms_norm_backward(
        t["dy"], t["x"], t["weight"], rstd, 0.0, mode, block, warps, False, None
    )


def norm_ways(module: Any) -> Mapping[str, Mapping[str, Way]]:  # noqa: ANN401 - a module
    """Versions by problem and name; ours first."""
    chain, chain_backward = (torch.compile(one, dynamic=False) for one in (llama, llama_backward))
    eager = torch.ops.aten._fused_rms_norm_backward

    def ours(t: Tensors) -> Launch:
        names = [t[name] for name in ("y", "rstd", "x", "weight")]
        return lambda: module.launch("launch_rmsnorm_forward_bfloat16", *names, EPSILON, *t["x"].shape)

    def ours_backward(t: Tensors) -> Launch:
        names = [t[name] for name in ("dx", "dweight", "dy", "x", "weight", "rstd")]
        return lambda: module.launch("launch_rmsnorm_backward_bfloat16", *names, *t["x"].shape)

    return {
        "rmsnorm_forward": {
            "reference": ours,
            "torch": lambda t: lambda: functional.rms_norm(t["x"], (HIDDEN,), t["weight"], EPSILON),
            "torch, unfused": lambda t: lambda: llama(t["x"], t["weight"]),
            "torch.compile": lambda t: lambda: chain(t["x"], t["weight"]),
            "Liger": liger_forward,
        },
        "rmsnorm_backward": {
            "reference": ours_backward,
            "torch": lambda t: (
                lambda: eager(t["dy"], t["x"], [HIDDEN], t["rstd"][:, None], t["weight"], [True, True])
            ),
            "torch.compile": lambda t: lambda: chain_backward(t["dy"], t["x"], t["weight"], t["rstd"]),
            "Liger": liger_backward,
        },
    }


def attention(t: Tensors, *, backward: bool) -> Launch:
    """Flash attention of the same width on the same data."""
    query, key, value = (
        t[name].view(BATCH, -1, HEADS, WIDTH // HEADS).transpose(1, 2).detach().requires_grad_(backward)
        for name in ("x", "gx", "ga")
    )
    upstream = t["dh"].view(BATCH, -1, HEADS, WIDTH // HEADS).transpose(1, 2)

    def launch() -> object:
        output = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return torch.autograd.grad(output, (query, key, value), upstream) if backward else output

    return launch


def scan_ways(module: Any) -> Mapping[str, Mapping[str, Way]]:  # noqa: ANN401 - a module
    def plain(t: Tensors) -> Launch:
        names = [t[name] for name in ("h", "x", "gx")]  # any numbers are factors and terms
        t["x"].uniform_(0.5, 1)
        return lambda: module.launch("launch_linear_scan_bfloat16", *names, None, *t["x"].shape)

    def ours(t: Tensors) -> Launch:
        names = [t[name] for name in ("h", "x", "gx", "ga", "c")]
        return lambda: module.launch("launch_rglru_forward_bfloat16", *names, None, *t["x"].shape)

    def ours_backward(t: Tensors) -> Launch:
        ours(t)()
        names = [t[name] for name in ("dx", "dgx", "dga", "dc", "dh0", "dh", "x", "gx", "ga", "c", "h")]
        return lambda: module.launch("launch_rglru_backward_bfloat16", *names, None, *t["x"].shape)

    def both(t: Tensors) -> Launch:
        first, second = ours(t), ours_backward(t)
        return lambda: (first(), second())

    def unfused(t: Tensors) -> Launch:
        def launch() -> None:
            a, b = gates(t["x"], t["gx"], t["ga"], t["c"])
            module.launch("launch_linear_scan_bfloat16", t["h"], a, b, None, *t["x"].shape)

        return launch

    def triton(name: str) -> Way:
        def way(t: Tensors) -> Launch:
            function = getattr(importlib.import_module("scan_peers"), name)
            return lambda: function(*(t[one] for one in ("h", "x", "gx", "ga", "c")))

        return way

    return {
        "linear_scan": {"reference": plain},
        "rglru_forward": {
            "reference": ours,
            "torch's gates, our scan": unfused,
            "Triton, sequential": triton("sequential"),
            "Triton, associative scan": triton("associative"),
            "attention": lambda t: attention(t, backward=False),
        },
        "rglru_backward": {"reference": ours_backward},
        "rglru_both": {"reference": both, "attention": lambda t: attention(t, backward=True)},
    }


def minimal_bytes(problem: str, size: int) -> tuple[int, int]:
    """Read and written."""
    if problem.startswith("rmsnorm"):
        one, row = HALF * size * HIDDEN, 4 * size
        return (one, one + row) if problem.endswith("forward") else (2 * one + row, one)
    one = HALF * BATCH * size * WIDTH
    reads, writes = {"linear_scan": (2, 1), "rglru_forward": (3, 1), "rglru_backward": (5, 3)}.get(
        problem, (8, 4)
    )
    return reads * one, writes * one


def streaming(function: Any, reads: int, writes: int) -> Launch:  # noqa: ANN401 - a foreign function
    source, target = (torch.zeros(size // 4, device="cuda") for size in (reads, writes))
    return lambda: function(
        *(ctypes.c_void_p(source.data_ptr()), ctypes.c_longlong(reads)),
        *(ctypes.c_void_p(target.data_ptr()), ctypes.c_longlong(writes)),
        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
    )


def measured(ways: Mapping[str, Way], size: int, problem: str, rounds: int, stream: Any) -> dict[str, Any]:  # noqa: ANN401
    """Microseconds of every version at one size, and why others have none."""
    reads, writes = minimal_bytes(problem, size)
    count = slots(reads + writes, torch.cuda.get_device_properties(0).L2_cache_size)
    make = norm_tensors if problem.startswith("rmsnorm") else scan_tensors
    sets = [make(size) for _ in range(count)]
    launches: dict[str, list[Launch]] = {bench.STREAM: [streaming(stream, reads, writes) for _ in sets]}
    skipped = {}
    for name, way in ways.items():
        try:
            launches[name] = [way(tensors) for tensors in sets]
            launches[name][0]()
            torch.cuda.synchronize()
        except FAULTS as error:
            launches.pop(name, None)
            skipped[name] = f"{type(error).__name__}: {error}"[:300]
    times = bench.seconds(launches, lambda: None, rounds)
    us = {name: round(median(found) * 1e6, 2) for name, found in times.items()}
    share = {name: round(100 * us[bench.STREAM] / one, 1) for name, one in us.items()}
    return {"problem": problem, "size": size, "sets": count, "us": us, "percent": share, "skipped": skipped}


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the kernels of rmsnorm and rglru beside others.")
    parser.add_argument("out", type=Path, help="the record, written anew after every shape")
    parser.add_argument("--only", choices=("rmsnorm", "rglru"))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    began = time.monotonic()
    names = [options.only] if options.only else ["rmsnorm", "rglru"]
    with ThreadPoolExecutor() as pool:
        modules = dict(zip(names, pool.map(given, names), strict=True))
    stream, done, late = bench.Lab().stream, [], []
    ways = {"rmsnorm": norm_ways, "rglru": scan_ways}
    work = [
        (problem, versions, size)
        for name in names
        for problem, versions in ways[name](modules[name]).items()
        for size in (TOKENS if name == "rmsnorm" else LENGTHS)
    ]
    for problem, versions, size in work:
        if time.monotonic() - began > SECONDS:
            late.append(f"{problem} {size}")
            continue
        done.append(measured(versions, size, problem, options.rounds, stream))
        print(
            f"{problem} {size}: {done[-1]['us']} {done[-1]['percent']} {done[-1]['skipped'] or ''}",
            flush=True,
        )
        record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "shapes": done}
        options.out.write_text(json.dumps(record, indent=1) + "\n")
        torch.cuda.empty_cache()
    if late:
        print(f"no time left for {', '.join(late)}: run them with --only", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
