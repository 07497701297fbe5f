"""The references of ``assignments/first_kernels`` on a GPU, beside the libraries that do the same.

    PYTHONPATH=tests python tests/benchmarks/first_kernels.py [--json FILE] [--only PROBLEM ...] [--variants]
                                                              [--rounds N]

Timed as in ``kernels.py``: a CUDA graph over input sets that exceed the L2, the versions in turn. Percentages
are the time of a streaming kernel with the same minimal bytes over a version's. ``libraries/`` has launchers
around CUB where no variant is one; PyTorch's operators call cuBLAS, cuDNN and cuSPARSE. The last columns are
the best library's time over the reference's, and the reference's share of the limit that arithmetic sets.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from kernels import REFERENCE_NAME, ROUNDS, STREAM, Lab, launcher, seconds, shape, streaming, traffic
from torch.nn import functional

from grader.assignments.assignment import load
from grader.problems.operations import multiply_adds
from grader.problems.problem import KernelProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kernels import Launch, Way

    from grader.problems.problem import Case, Inputs

    Tensors = dict[str, torch.Tensor]

cuda: Any = torch.cuda
ASSIGNMENT = load(str(Path(__file__).parents[2] / "assignments" / "first_kernels"))
LIBRARIES = Path(__file__).with_name("libraries")
ARITHMETIC = "arithmetic"


def stencil(arrays: Tensors, given: Inputs) -> Launch:
    """A convolution for each step, and the border put around it."""
    rate, before = float(given.scalars["rate"]), arrays["before"]
    weights = torch.tensor([[0, rate, 0], [rate, 1 - 4 * rate, rate], [0, rate, 0]], device="cuda")

    def launch() -> torch.Tensor:
        plate = before.clone()
        for _ in range(given.scalars["steps"]):
            plate[1:-1, 1:-1] = functional.conv2d(plate[None, None], weights[None, None])[0, 0]
        return plate

    return launch


def spmv(arrays: Tensors, given: Inputs) -> Launch:
    """Through cuSPARSE."""
    shape = given.scalars["rows"], given.scalars["width"]
    matrix = torch.sparse_csr_tensor(arrays["starts"], arrays["columns"], arrays["values"], shape)
    return lambda: matrix @ arrays["x"]


def convolution(arrays: Tensors, given: Inputs) -> Launch:
    """Through cuDNN."""
    image, weights = arrays["image"][None, None], arrays["weights"][None, None]
    return lambda: functional.conv2d(image, weights, padding=given.scalars["radius"])


def attention(arrays: Tensors, _: Inputs) -> Launch:
    """The fastest that PyTorch has in float32."""
    q, k, v = (arrays[name][None, None] for name in "qkv")
    return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def saxpy(arrays: Tensors, given: Inputs) -> Launch:
    """In place."""
    factor = float(given.scalars["a"])
    return lambda: arrays["y"].add_(arrays["x"], alpha=factor)


PYTORCH: Mapping[str, Way] = {
    "saxpy": saxpy,
    "stencil": stencil,
    "spmv": spmv,
    "convolution": convolution,
    "attention": attention,
    "sort": lambda arrays, _: arrays["keys"].sort,
}
"""PyTorch's operator where it is not the problem's formula."""


def versions(lab: Lab, problem: KernelProblem, *, variants: bool) -> dict[str, Way]:
    """Everything that is timed of a problem, by name."""
    texts = {REFERENCE_NAME: ASSIGNMENT.reference / problem.file}
    folder = ASSIGNMENT.folder / "variants" / problem.id
    for library in (LIBRARIES / problem.file, folder / "cub.cu"):
        if library.is_file():
            texts["CUB"] = library
    if variants:
        texts |= {path.stem: path for path in sorted(folder.glob("*.cu"))}

    def of(path: Path) -> Way:
        function = lab.function(problem.file, {problem.file: path.read_text()}, problem.entry_point)
        return lambda arrays, given: launcher(function, problem, arrays, given)

    found = {name: of(path) for name, path in texts.items()}
    fused = problem.fused
    formula: Way | None = None if fused is None else lambda arrays, given: fused(arrays, given.scalars)
    if (way := PYTORCH.get(problem.id, formula)) is not None:
        found["PyTorch"] = way
    return found


def arithmetic(lab: Lab, problem: KernelProblem, case: Case) -> Launch | None:
    """The multiplications and additions of a case's matrix products and nothing else; None if it has none."""
    try:
        counts = multiply_adds(problem.unfused(case))
    except ValueError:
        return None
    function, unwritten = lab.baseline("launch_multiply_adds"), torch.zeros(1, device="cuda")

    def launch() -> None:
        for dtype, count in counts.items():
            function(
                ctypes.c_void_p(unwritten.data_ptr()),
                ctypes.c_longlong(count),
                ctypes.c_int(dtype != "float32"),
                ctypes.c_void_p(cuda.current_stream().cuda_stream),
            )

    return launch


def measured(only: Sequence[str], rounds: int, *, variants: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """The microseconds of every version of each case that is timed."""
    lab = Lab()
    for problem in ASSIGNMENT.problems.values():
        if not isinstance(problem, KernelProblem) or (only and problem.id not in only):
            continue
        ways = versions(lab, problem, variants=variants)
        for case in problem.timing_cases(1):
            one = shape(problem, case)
            moved = traffic(problem, case, one.given)
            launches = {STREAM: [streaming(lab.stream, *moved) for _ in one.sets]}
            launches |= {name: one.launches(way) for name, way in ways.items()}
            if (alone := arithmetic(lab, problem, case)) is not None:
                launches[ARITHMETIC] = [alone for _ in one.sets]
            times = seconds(launches, one.restore, rounds)
            yield f"{problem.id}: {case.name}", {name: median(all_) * 1e6 for name, all_ in times.items()}
            del one, launches
            cuda.empty_cache()


def line(name: str, us: Mapping[str, float]) -> str:
    """The times of a case, and how they compare."""
    cells = [f"{version} {time:.1f} us ({us[STREAM] / time:.0%})" for version, time in us.items()]
    libraries = [us[version] for version in ("CUB", "PyTorch") if version in us]
    ratio = f"best library / reference {min(libraries) / us[REFERENCE_NAME]:.2f}" if libraries else ""
    share = f"of the arithmetic {us[ARITHMETIC] / us[REFERENCE_NAME]:.0%}" if ARITHMETIC in us else ""
    return "  ".join([f"{name:44}", *cells, ratio, share])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Time the first kernels beside libraries.")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--only", nargs="+", default=[], metavar="PROBLEM")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    options = parser.parse_args(arguments)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    found = {}
    print(f"{cuda.get_device_name(0)}, PyTorch {torch.__version__}")
    for name, us in measured(options.only, options.rounds, variants=options.variants):
        found[name] = us
        print(line(name, us), flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
