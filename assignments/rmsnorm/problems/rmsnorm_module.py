"""RMSNorm as a module of PyTorch on the student's kernels, and in place of a module that a model has.

The expectations come from the formula in float64, the bounds from ``rounding``; in a type of 16 bits the
normalised values and what is written are rounded to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from grader.problems import written
from grader.problems.distributions import generator, normal
from grader.problems.problem import Case, Expectation, Inputs, KernelProblem, ModelProblem
from grader.problems.rounding import expectations, one_thread
from grader.problems.written import Written

from . import rmsnorm_backward, rmsnorm_forward
from .shapes import stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

MODULE, TAKEN, KERNELS = "module", "in place of another module", "your kernels"
DENSE, EVERY_OTHER, TRANSPOSED, EXPANDED = range(4)  # as in the runner
LAYOUTS = ("dense", "every other element", "transposed", "one value for all")
RATE = 0.25


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content."""
    table: list[Case] = []

    def add(group: str, dtype: str, epsilon: float, layouts: tuple[int, int], *shape: int) -> None:
        sizes = dict(zip(("hidden", "length", "batch"), reversed(shape), strict=False))
        layout = ", gradient ".join(LAYOUTS[number] for number in layouts)
        title = f"{' x '.join(map(str, shape))}, {dtype}, {layout}"
        sizes |= {"layout": layouts[0], "upstream_layout": layouts[1], "marked": int(group == KERNELS)}
        content = int(np.random.SeedSequence((seed, len(table))).generate_state(1, np.uint64)[0] >> 1)
        function = "taken over" if group == TAKEN else "norm"
        name = f"{title}, epsilon {epsilon:g}"
        table.append(Case(name, group, sizes, f"{epsilon}", content, function=function, dtype=dtype))

    add(MODULE, "float32", 1e-6, (DENSE, DENSE), 2, 5, 64)
    add(MODULE, "float32", 1e-6, (DENSE, EXPANDED), 7, 20)
    add(MODULE, "float32", 1e-2, (TRANSPOSED, EVERY_OTHER), 3, 11, 36)
    add(MODULE, "float32", 1e-6, (EVERY_OTHER, TRANSPOSED), 37, 101)
    add(MODULE, "bfloat16", 1e-6, (DENSE, DENSE), 2, 9, 72)
    add(MODULE, "float16", 1e-6, (TRANSPOSED, DENSE), 2, 9, 40)
    add(TAKEN, "float32", 1e-2, (DENSE, DENSE), 3, 5, 48)
    add(TAKEN, "float32", 1e-6, (DENSE, DENSE), 6, 33)
    add(TAKEN, "bfloat16", 1e-6, (DENSE, DENSE), 6, 64)
    add(KERNELS, "float32", 1e-6, (DENSE, DENSE), 5, 32)
    return tuple(table)


def _shape(case: Case) -> tuple[int, ...]:
    return tuple(case.sizes[name] for name in ("batch", "length", "hidden") if name in case.sizes)


def inputs(case: Case) -> Inputs:
    """Rows inp and the gradient upstream [..., hidden], weight [hidden]."""
    random, shape = generator(case.seed), _shape(case)
    expanded = case.sizes["upstream_layout"] == EXPANDED
    upstream = np.full(shape, random.uniform(0.5, 2), np.float32) if expanded else normal(random, shape)
    arrays = {
        "inp": stored(normal(random, shape, 0.3), case),
        "weight": stored(normal(random, shape[-1:], 0.3, 1.0), case),
        "upstream": stored(upstream, case),
    }
    scalars: dict[str, int | bool | float] = {"epsilon": float(case.distribution)}
    if case.function == "taken over":
        outputs = {"output": shape, "gradient of weight": shape[-1:], "output after a step": shape}
        return Inputs(arrays, outputs, {**scalars, "rate": RATE})
    outputs = {
        "output": shape,
        **{
            f"gradient of {name}{again}": array.shape
            for name, array in arrays.items()
            if name != "upstream"
            for again in ("", ", backward again")
        },
    }
    scalars |= {"layout": case.sizes["layout"], "upstream layout": case.sizes["upstream_layout"]}
    if case.sizes["marked"]:
        scalars[written.SEED] = int(random.integers(2**31))
    return Inputs(arrays, outputs, scalars)


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """What the module returns in float64, and how far its type may be from it."""
    fields: dict[str, Tensor] = {}
    with one_thread():
        expected = expectations(lambda: _program(case, data, Written(data.scalars, fields)), case.seed)
    again = {f"{name}, backward again": expected[name] for name in expected if name.startswith("gradient")}
    return expected if case.function == "taken over" else expected | again


def _program(case: Case, data: Inputs, marks: Written) -> dict[str, Tensor]:
    x, weight, upstream = (torch.from_numpy(data.wide(name)) for name in ("inp", "weight", "upstream"))
    kind = getattr(torch, case.dtype)

    def rounded(value: Tensor) -> Tensor:
        return value if case.dtype == "float32" else value.to(kind).to(torch.float64)

    forward, backward = (f"launch_rmsnorm_{way}_{case.dtype}" for way in ("forward", "backward"))
    rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + float(data.scalars["epsilon"]))
    n = x * rstd
    output = marks(f"{forward}.y", rounded(rounded(n) * weight))
    g = upstream * weight
    dx = marks(f"{backward}.dx", rounded(rstd * (g - n * (g * n).mean(-1, keepdim=True))))
    dweight = marks(f"{backward}.dweight", rounded((upstream * rounded(n)).flatten(0, -2).sum(0)))
    if case.function == "norm":
        results = {"output": output, "gradient of inp": dx, "gradient of weight": dweight}
        return results | marks.outputs
    after = marks(f"{forward}.y", rounded(rounded(n) * rounded(weight - RATE * dweight)))
    results = {"output": output, "gradient of weight": dweight, "output after a step": after}
    return results | marks.outputs


def needs(case: Case) -> tuple[tuple[KernelProblem, Case, int], ...]:
    """Forward once, or twice around a step; backward twice where it is judged alone."""
    rows = int(np.prod(_shape(case)[:-1]))
    shape = {"rows": rows, "hidden": case.sizes["hidden"]}
    call = Case("", "", shape, "normal", 0, dtype=case.dtype)
    taken = case.function == "taken over"
    return (
        (rmsnorm_forward.PROBLEM.launchers[case.dtype], call, 2 if taken else 1),
        (rmsnorm_backward.PROBLEM.launchers[case.dtype], call, 1 if taken else 2),
    )


def _unscaled(data: Inputs) -> Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    x = data.wide("inp")
    root = np.sqrt((x * x).mean(axis=-1, keepdims=True) + float(data.scalars["epsilon"]))
    return {"output": x / root}


PROBLEM = ModelProblem(
    id="rmsnorm_module",
    file="rmsnorm.py",
    groups=(MODULE, TAKEN, KERNELS),
    cases=cases,
    timing_cases=lambda _: (),
    inputs=inputs,
    oracle=oracle,
    bugs={"weight is not applied": _unscaled},
    harness=Path(__file__).with_name("rmsnorm_module_harness.py"),
    modules=("kernels.py", "launchers.py"),
    launchers={
        "rmsnorm_kernel.cu": (
            *rmsnorm_forward.PROBLEM.entry_points,
            *rmsnorm_backward.PROBLEM.entry_points,
        )
    },
    needs=needs,
)
