"""What the handout's own checks would say of a kernel: the column that the grader is compared with.

They draw five small cases from a uniform distribution on [-1, 1], with a hidden size of 32, and take
``|got - expected| <= atol + rtol |expected|`` for right, with tolerances that do not depend on the case: 1e-3
for softmax, 1e-2 for LayerNorm. The mask hides the tail of each sequence with -1e8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import Call, Memory
from grader.judge.correctness.calls import arguments
from grader.problems.problem import Case, Inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grader.devices.device import Session
    from grader.problems.problem import Problem

CASES = 5
HIDDEN = 32
TOLERANCES = {
    "softmax_forward": 1e-3,
    "softmax_backward": 1e-3,
    "layernorm_forward": 1e-2,
    "layernorm_backward": 1e-2,
}


def _uniform(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.uniform(-1, 1, shape).astype(np.float32)


def _softmax_forward(random: np.random.Generator) -> tuple[dict[str, int], Inputs]:
    batch, heads, queries, keys = (
        int(random.integers(*limits)) for limits in ((1, 5), (1, 9), (1, 33), (4, 65))
    )
    kept = random.integers(1, keys + 1, (batch, 1))
    mask = np.where(np.arange(keys) < kept, 0, -1e8).astype(np.float32)
    future = bool(random.integers(2))
    if future:
        queries, mask = keys, np.zeros_like(mask)
    sizes = {"batch_size": batch, "nhead": heads, "from_len": queries, "to_len": keys}
    arrays = {"inp": _uniform(random, batch, heads, queries, keys), "attn_mask": mask}
    flagged = {**sizes, "mask_future": future}
    return {**sizes, "mask_future": int(future)}, Inputs(arrays, {}, flagged)


def _softmax_backward(random: np.random.Generator) -> tuple[dict[str, int], Inputs]:
    rows, length = int(random.integers(4, 257)), int(random.integers(4, 65))
    powers = np.exp(_uniform(random, rows, length))
    sizes = {"rows": rows, "softmax_len": length}
    arrays = {"out_grad": _uniform(random, rows, length), "soft_inp": powers / powers.sum(-1, keepdims=True)}
    return sizes, Inputs(arrays, {}, sizes)


def _layernorm_forward(random: np.random.Generator) -> tuple[dict[str, int], Inputs]:
    rows = int(random.integers(1, 257))
    sizes = {"batch_size": rows, "hidden_dim": HIDDEN}
    arrays = {
        "inp": _uniform(random, rows, HIDDEN),
        "scale": _uniform(random, HIDDEN),
        "bias": _uniform(random, HIDDEN),
    }
    return sizes, Inputs(arrays, {"ln_res": (rows, HIDDEN), "vars": (rows,), "means": (rows,)}, sizes)


def _layernorm_backward(random: np.random.Generator) -> tuple[dict[str, int], Inputs]:
    rows = int(random.integers(1, 257))
    sizes = {"batch_size": rows, "hidden_dim": HIDDEN}
    inp = _uniform(random, rows, HIDDEN)
    arrays = {
        "out_grad": _uniform(random, rows, HIDDEN),
        "inp": inp,
        "gamma": _uniform(random, HIDDEN),
        "betta": _uniform(random, HIDDEN),
        "vars": inp.var(axis=1),
        "means": inp.mean(axis=1),
    }
    outputs = {"gamma_grad": (HIDDEN,), "betta_grad": (HIDDEN,), "inp_grad": (rows, HIDDEN)}
    return sizes, Inputs(arrays, outputs, sizes)


_INPUTS: Mapping[str, Callable[[np.random.Generator], tuple[dict[str, int], Inputs]]] = {
    "softmax_forward": _softmax_forward,
    "softmax_backward": _softmax_backward,
    "layernorm_forward": _layernorm_forward,
    "layernorm_backward": _layernorm_backward,
}


def passed(problem: Problem, session: Session, memory: Memory, seconds: float, seed: int) -> int:
    """How many of the ``CASES`` the library passes."""
    random = np.random.default_rng(seed)
    tolerance = TOLERANCES[problem.id]
    count = 0
    for _ in range(CASES):
        sizes, given = _INPUTS[problem.id](random)
        case = Case("handout", "handout", sizes, "uniform", seed)
        answer = session.run(Call(problem.entry_point, arguments(problem, case, given), seconds, memory))
        if not answer.usable:
            break
        right = problem.oracle(case, given)
        count += all(
            np.allclose(
                answer.arrays[name], expectation.candidates[0].expected, rtol=tolerance, atol=tolerance
            )
            for name, expectation in right.items()
        )
    return count
