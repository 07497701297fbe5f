"""The RG-LRU as a layer of PyTorch on the student's kernels: its function, its module, and training steps.

The expectations come from the formula in float64, the bounds from ``rounding``. Fused and unfused must both
agree with them, so they agree with each other.
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

from . import rglru_backward, rglru_forward

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

RECURRENCE, LAYER, STEPS, KERNELS = "function", "layer", "twenty steps", "your kernels"
GROUPS = (RECURRENCE, LAYER, STEPS, KERNELS)
DENSE, EVERY_OTHER, TRANSPOSED, EXPANDED = range(4)  # as in the runner
LAYOUTS = ("dense", "every other element", "transposed", "one value for all")
PATHS = ("fused", "unfused")
RATE, WORDS = 0.5, 11
BACKWARD = "launch_rglru_backward_float32"
GRADIENTS = {"inp": "dx", "gx": "dgx", "ga": "dga", "c": "dc", "h0": "dh0"}
"""What the launcher of the backward calls the gradient of each input."""


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content."""
    table: list[Case] = []

    def add(group: str, function: str, name: str, **sizes: int) -> None:
        content = int(np.random.SeedSequence((seed, len(table))).generate_state(1, np.uint64)[0] >> 1)
        shape = " x ".join(str(sizes[name]) for name in ("batch", "length", "width"))
        table.append(Case(f"{shape}, {name}", group, sizes, name, content, function=function))

    for inp, upstream, start, shape in (
        (DENSE, DENSE, 1, (2, 9, 8)),
        (TRANSPOSED, EVERY_OTHER, 1, (3, 11, 7)),
        (EVERY_OTHER, TRANSPOSED, 0, (2, 33, 5)),
        (DENSE, EXPANDED, 0, (1, 140, 34)),
    ):
        sizes = dict(zip(("batch", "length", "width"), shape, strict=True))
        name = f"{LAYOUTS[inp]}, gradient {LAYOUTS[upstream]}" + ("" if start else ", no initial state")
        add(RECURRENCE, "recurrence", name, **sizes, layout=inp, upstream_layout=upstream, start=start)
    add(LAYER, "layer", "RGLRU", batch=2, length=9, width=6, start=1)
    add(LAYER, "layer", "RGLRU", batch=3, length=20, width=8, start=1)
    add(STEPS, "train", "RGLRU, 20 steps", batch=3, length=7, width=6, steps=20)
    marked = {"layout": DENSE, "upstream_layout": DENSE, "start": 1, "marked": 1}
    add(KERNELS, "recurrence", "results of the kernels marked", batch=2, length=6, width=8, **marked)
    return tuple(table)


def _shape(case: Case) -> tuple[int, int, int]:
    return case.sizes["batch"], case.sizes["length"], case.sizes["width"]


def _weights(random: np.random.Generator, width: int) -> dict[str, NDArray[np.float32]]:
    names = ("input_gate", "recurrence_gate")
    matrices = {f"{name}.weight": normal(random, (width, width), width**-0.5) for name in names}
    return matrices | {f"{name}.bias": normal(random, (width,)) for name in names} | {"c": _c(random, width)}


def _c(random: np.random.Generator, width: int) -> NDArray[np.float32]:
    return random.uniform(-5, -2, width).astype(np.float32)


def inputs(case: Case) -> Inputs:
    """Arrays and scalars of the case's function, see ``rglru_layer_harness.py``."""
    random = generator(case.seed)
    batch, length, width = shape = _shape(case)
    if case.function == "train":
        tokens = np.empty((case.sizes["steps"], batch, length + 1), np.int64)
        tokens[..., 0] = random.integers(WORDS, size=tokens.shape[:2])
        for position in range(length):
            tokens[..., position + 1] = (5 * tokens[..., position] + 1) % WORDS
        tables = {name: normal(random, (WORDS, width)) for name in ("embedding", "logits")}
        losses = {f"loss, {path}": (len(tokens),) for path in PATHS}
        return Inputs({"tokens": tokens, **tables, **_weights(random, width)}, losses, {"rate": RATE})
    upstream = normal(random, shape)
    if case.sizes.get("upstream_layout") == EXPANDED:
        upstream = np.full(shape, random.uniform(0.5, 2), np.float32)
    arrays: dict[str, NDArray[np.generic] | None] = {"inp": normal(random, shape), "upstream": upstream}
    arrays["h0"] = normal(random, (batch, width)) if case.sizes["start"] else None
    if case.function == "layer":
        arrays |= _weights(random, width)
        return Inputs(
            arrays, {f"{name}, {path}": shape for name, shape in _results(arrays) for path in PATHS}, {}
        )
    arrays |= {"gx": normal(random, shape), "ga": normal(random, shape), "c": _c(random, width)}
    outputs = dict(_results(arrays))
    outputs |= {f"{name}, backward again": shape for name, shape in outputs.items() if name != "output"}
    scalars: dict[str, int | bool | float] = {
        "layout": case.sizes["layout"], "upstream layout": case.sizes["upstream_layout"]
    }  # fmt: skip
    if case.sizes.get("marked"):
        scalars[written.SEED] = int(random.integers(2**31))
    return Inputs(arrays, outputs, scalars)


def _results(arrays: Mapping[str, NDArray[np.generic] | None]) -> list[tuple[str, tuple[int, ...]]]:
    present = {name: array.shape for name, array in arrays.items() if array is not None}
    gradients = [(f"gradient of {name}", shape) for name, shape in present.items() if name != "upstream"]
    return [("output", present["inp"]), *gradients]


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """What the function returns in float64, and how far float32 may be from it."""
    arrays = {name: torch.tensor(array) for name, array in data.arrays.items() if array is not None}
    arrays = {name: array.double() if array.is_floating_point() else array for name, array in arrays.items()}
    if case.function != "recurrence":
        program = {"layer": _layer, "train": _train}[case.function]
        with one_thread():
            expected = expectations(lambda: program(arrays), case.seed)
        return {f"{name}, {path}": expectation for name, expectation in expected.items() for path in PATHS}
    fields: dict[str, Tensor] = {}
    with one_thread():
        expected = expectations(lambda: _recurrence(arrays, Written(data.scalars, fields)), case.seed)
    return expected | {
        f"{name}, backward again": expectation
        for name, expectation in expected.items()
        if name.startswith("gradient")
    }


def states(x: Tensor, gx: Tensor, ga: Tensor, c: Tensor, h0: Tensor | None) -> Tensor:
    """The RG-LRU one operation at a time."""
    decay = 8 * torch.sigmoid(ga) * torch.log1p(torch.exp(c))
    factor = torch.exp(-decay)
    added = torch.sqrt(-torch.expm1(-2 * decay)) * torch.sigmoid(gx) * x
    state = torch.zeros_like(x[:, 0]) if h0 is None else h0
    hidden = []
    for step in range(x.shape[1]):
        state = factor[:, step] * state + added[:, step]
        hidden.append(state)
    return torch.stack(hidden, 1)


def _gates(weights: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    gx, ga = (
        x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        for name in ("input_gate", "recurrence_gate")
    )
    return gx, ga


def _differentiated(leaves: Mapping[str, Tensor], output: Tensor, upstream: Tensor) -> dict[str, Tensor]:
    gradients = torch.autograd.grad(output, tuple(leaves.values()), upstream)
    named = {f"gradient of {name}": value for name, value in zip(leaves, gradients, strict=True)}
    return {"output": output.detach(), **named}


def _leaves(arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: array.clone().requires_grad_()
        for name, array in arrays.items()
        if name != "upstream" and array.is_floating_point()
    }


def _recurrence(arrays: Mapping[str, Tensor], marks: Written) -> dict[str, Tensor]:
    """What the backward writes is marked; the states are not, as the backward would read them so."""
    leaves = _leaves(arrays)
    output = states(leaves["inp"], leaves["gx"], leaves["ga"], leaves["c"], leaves.get("h0"))
    results = _differentiated(leaves, output, arrays["upstream"])
    for name in leaves:
        gradient = f"gradient of {name}"
        results[gradient] = marks(f"{BACKWARD}.{GRADIENTS[name]}", results[gradient])
    return results | marks.outputs


def _layer(arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    leaves = _leaves(arrays)
    output = states(leaves["inp"], *_gates(leaves, leaves["inp"]), leaves["c"], leaves["h0"])
    return _differentiated(leaves, output, arrays["upstream"])


def _train(arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    now = {name: array for name, array in arrays.items() if array.is_floating_point()}
    losses = []
    for tokens in arrays["tokens"]:
        leaves = _leaves(now)
        x = leaves["embedding"][tokens[:, :-1]]
        logits = states(x, *_gates(leaves, x), leaves["c"], None) @ leaves["logits"].T
        chosen = torch.log_softmax(logits, -1).gather(-1, tokens[:, 1:, None])
        loss = -chosen.mean()
        gradients = torch.autograd.grad(loss, tuple(leaves.values()))
        now = {
            name: value.detach() - RATE * gradient
            for (name, value), gradient in zip(leaves.items(), gradients, strict=True)
        }
        losses.append(loss.detach())
    return {"loss": torch.stack(losses)}


def needs(case: Case) -> tuple[tuple[KernelProblem, Case, int], ...]:
    """Forward and backward once per step; backward twice where the function is judged alone."""
    shape = dict(zip(("batch", "length", "width"), _shape(case), strict=True))
    call = Case("", "", shape, "usual" if case.sizes.get("start") else "no initial state", 0, dtype="float32")
    steps = case.sizes.get("steps", 1)
    return (
        (rglru_forward.PROBLEM.launchers["float32"], call, steps),
        (rglru_backward.PROBLEM.launchers["float32"], call, 2 if case.function == "recurrence" else steps),
    )


PROBLEM = ModelProblem(
    id="rglru_layer",
    file="rglru.py",
    groups=GROUPS,
    cases=cases,
    timing_cases=lambda _: (),
    inputs=inputs,
    oracle=oracle,
    harness=Path(__file__).with_name("rglru_layer_harness.py"),
    modules=("kernels.py", "launchers.py"),
    launchers={
        "rglru_kernel.cu": (*rglru_forward.PROBLEM.entry_points, *rglru_backward.PROBLEM.entry_points)
    },
    needs=needs,
)
