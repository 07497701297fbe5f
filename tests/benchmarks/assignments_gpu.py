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
import importlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import kernels as bench
import torch
from torch.nn import functional

from grader.assignments.assignment import load
from grader.judge.timing.measure import slots
from grader.problems.problem import Inputs, KernelProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Launch = Callable[[], object]
    Tensors = dict[str, torch.Tensor]
    Way = Callable[[Tensors], Launch]

ASSIGNMENTS, NAMES = Path(__file__).parents[2] / "assignments", ("rmsnorm", "rglru")
TOKENS, HIDDEN = (256, 1024, 4096, 8192, 16_384), 4096
LENGTHS, BATCH, WIDTH, HEADS = (512, 1024, 2048, 4096, 8192, 16_384), 8, 1024, 16
EPSILON, HALF = 1e-6, 2  # bytes of an element
SECONDS = 140  # after which no further shape begins
WRITTEN = {"rglru_forward": ("h",), "rglru_backward": ("dx", "dgx", "dga", "dc", "dh0")}
ROUNDING = 2.0**-6  # of the largest element, where two kernels round apart
REGISTERS = "tiles in registers"  # a variant of the problems above
FAULTS = (ImportError, AttributeError, TypeError, ValueError, RuntimeError)


@cache
def problems() -> dict[str, KernelProblem]:
    """Those with kernels of both assignments, for bfloat16."""
    known = [problem for name in NAMES for problem in load(str(ASSIGNMENTS / name)).problems.values()]
    return {one.id: one.launchers["bfloat16"] for one in known if isinstance(one, KernelProblem)}


def reference(name: str) -> dict[str, str]:
    """The files of an assignment's reference by name, as far as kernels are made of them."""
    paths = (ASSIGNMENTS / name / "reference").glob("*.cu*")
    return {path.name: path.read_text() for path in paths}


def variant(problem: str) -> dict[str, str]:
    """The files of the RG-LRU's variant whose tiles wait in registers: one that solves one problem."""
    path = ASSIGNMENTS / "rglru" / "variants" / problem / "registers.cu"
    return {problems()[problem].file: path.read_text()}


def scalars(x: torch.Tensor) -> dict[str, float]:
    """What launchers are given beside arrays; ``x`` is [rows, hidden] or [batch, length, width]."""
    names = ("rows", "hidden") if x.dim() == 2 else ("batch", "length", "width")
    return {**dict(zip(names, x.shape, strict=True)), "epsilon": EPSILON}


@dataclass(frozen=True)
class Kernels:
    """The launchers that are built of some files."""

    lab: bench.Lab
    texts: Mapping[str, str]

    def call(self, problem: KernelProblem, arrays: Tensors) -> Launch:
        """A call of the launcher of ``problem``; an array that is missing is null."""
        function = self.lab.function(problem.file, self.texts, problem.entry_point)
        return bench.launcher(function, problem, arrays, Inputs({}, {}, scalars(arrays["x"])))


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


def quack() -> Any:  # noqa: ANN401 - a module
    return importlib.import_module("quack.rmsnorm")


def quack_forward(t: Tensors) -> Launch:
    ops = quack()
    return lambda: ops.rmsnorm_fwd(t["x"], t["weight"], eps=EPSILON, store_rstd=True)


def quack_backward(t: Tensors) -> Launch:
    ops = quack()
    return lambda: ops.rmsnorm_bwd(t["x"], t["weight"], t["dy"], t["rstd"])


def norm_ways(kernels: Kernels) -> Mapping[str, Mapping[str, Way]]:
    """Versions by problem and name; ours first."""
    chain, chain_backward = (torch.compile(one, dynamic=False) for one in (llama, llama_backward))
    eager = torch.ops.aten._fused_rms_norm_backward

    known = problems()
    return {
        "rmsnorm_forward": {
            "reference": lambda t: kernels.call(known["rmsnorm_forward"], t),
            "torch": lambda t: lambda: functional.rms_norm(t["x"], (HIDDEN,), t["weight"], EPSILON),
            "torch, unfused": lambda t: lambda: llama(t["x"], t["weight"]),
            "torch.compile": lambda t: lambda: chain(t["x"], t["weight"]),
            "Liger": liger_forward,
            "QuACK": quack_forward,
        },
        "rmsnorm_backward": {
            "reference": lambda t: kernels.call(known["rmsnorm_backward"], t),
            "torch": lambda t: (
                lambda: eager(t["dy"], t["x"], [HIDDEN], t["rstd"][:, None], t["weight"], [True, True])
            ),
            "torch.compile": lambda t: lambda: chain_backward(t["dy"], t["x"], t["weight"], t["rstd"]),
            "Liger": liger_backward,
            "QuACK": quack_backward,
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


def own_ways(kernels: Kernels) -> Mapping[str, Way]:
    """The reference's scans by problem."""
    known = problems()

    def plain(t: Tensors) -> Launch:  # any numbers are factors and terms
        return kernels.call(known["linear_scan"], {**t, "a": t["x"].uniform_(0.5, 1), "b": t["gx"]})

    def forward(t: Tensors) -> Launch:
        return kernels.call(known["rglru_forward"], t)

    def backward(t: Tensors) -> Launch:
        forward(t)()
        return kernels.call(known["rglru_backward"], t)

    def both(t: Tensors) -> Launch:
        first, second = forward(t), backward(t)
        return lambda: (first(), second())

    return {"linear_scan": plain, "rglru_forward": forward, "rglru_backward": backward, "rglru_both": both}


def scan_ways(kernels: Kernels) -> Mapping[str, Mapping[str, Way]]:
    """Versions by problem and name; ours first."""
    ours, scan = own_ways(kernels), problems()["linear_scan"]

    def unfused(t: Tensors) -> Launch:
        def launch() -> None:
            a, b = gates(t["x"], t["gx"], t["ga"], t["c"])
            kernels.call(scan, {**t, "a": a, "b": b})()

        return launch

    def triton(name: str) -> Way:
        def way(t: Tensors) -> Launch:
            function = getattr(importlib.import_module("scan_peers"), name)
            return lambda: function(*(t[one] for one in ("h", "x", "gx", "ga", "c")))

        return way

    def registers(name: str) -> Way:
        def way(t: Tensors) -> Launch:
            ours["rglru_forward"](t)()  # backward reads its states
            return Kernels(kernels.lab, variant(name)).call(problems()[name], t)

        return way

    return {
        "linear_scan": {"reference": ours["linear_scan"]},
        "rglru_forward": {
            "reference": ours["rglru_forward"],
            REGISTERS: registers("rglru_forward"),
            "torch's gates, our scan": unfused,
            "Triton, sequential": triton("sequential"),
            "Triton, associative scan": triton("associative"),
            "attention": lambda t: attention(t, backward=False),
        },
        "rglru_backward": {
            "reference": ours["rglru_backward"],
            REGISTERS: registers("rglru_backward"),
        },
        "rglru_both": {
            "reference": ours["rglru_both"],
            "attention": lambda t: attention(t, backward=True),
        },
    }


def differing(problem: str, way: Way, right: Way, t: Tensors) -> str:
    """Where a version differs from another one by more than rounding; "" if nowhere."""
    found = []
    for one in (right, way):
        one(t)()
        found.append({name: t[name].float() for name in WRITTEN[problem]})
    for name, expected in found[0].items():
        off = (expected - found[1][name]).abs().max().item()
        if not off <= ROUNDING * expected.abs().max().item():
            return f"{name} differs by {off:g}"
    return ""


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


def measured(
    ways: Mapping[str, Way],
    size: int,
    problem: str,
    rounds: int,
    stream: Any,  # noqa: ANN401 - a foreign function
) -> dict[str, Any]:
    """Microseconds of every version at one size, and why others have none."""
    reads, writes = minimal_bytes(problem, size)
    count = slots(reads + writes, torch.cuda.get_device_properties(0).L2_cache_size)
    make = norm_tensors if problem.startswith("rmsnorm") else scan_tensors
    sets = [make(size) for _ in range(count)]
    launches: dict[str, list[Launch]] = {bench.STREAM: [bench.streaming(stream, reads, writes) for _ in sets]}
    skipped = {}
    for name, way in ways.items():
        try:
            launches[name] = [way(tensors) for tensors in sets]
            launches[name][0]()
            torch.cuda.synchronize()
        except FAULTS as error:
            launches.pop(name, None)
            skipped[name] = f"{type(error).__name__}: {error}"[:300]
            continue
        if name == REGISTERS and (fault := differing(problem, way, ways["reference"], sets[0])):
            del launches[name]
            skipped[name] = fault
    times = bench.seconds(launches, lambda: None, rounds)
    us = {name: round(median(found) * 1e6, 2) for name, found in times.items()}
    share = {name: round(100 * us[bench.STREAM] / one, 1) for name, one in us.items()}
    return {"problem": problem, "size": size, "sets": count, "us": us, "percent": share, "skipped": skipped}


def sources(name: str) -> Iterator[tuple[KernelProblem, Mapping[str, str]]]:
    """All files that are built for an assignment, each with a problem that it solves."""
    yield problems()[f"{name}_forward"], reference(name)
    if name == "rglru":
        yield from ((problems()[one], variant(one)) for one in WRITTEN)


def build(lab: bench.Lab, files: Iterable[tuple[KernelProblem, Mapping[str, str]]]) -> None:
    """Build kernels side by side, before any of them is called."""
    with ThreadPoolExecutor() as pool:
        for problem, texts in files:
            pool.submit(lab.function, problem.file, texts, problem.entry_point)


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the kernels of rmsnorm and rglru beside others.")
    parser.add_argument("out", type=Path, help="the record, written anew after every shape")
    parser.add_argument("--only", choices=("rmsnorm", "rglru"))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    lab, done, late = bench.Lab(), [], []
    names = (options.only,) if options.only else NAMES
    build(lab, (one for name in names for one in sources(name)))
    ways = {"rmsnorm": norm_ways, "rglru": scan_ways}
    work = [
        (problem, versions, size)
        for name in names
        for problem, versions in ways[name](Kernels(lab, reference(name))).items()
        for size in (TOKENS if name == "rmsnorm" else LENGTHS)
    ]
    began = time.monotonic()
    for problem, versions, size in work:
        if time.monotonic() - began > SECONDS:
            late.append(f"{problem} {size}")
            continue
        done.append(measured(versions, size, problem, options.rounds, lab.stream))
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
