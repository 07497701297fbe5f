"""Submissions with one typical bug each: small edits of right kernels, all graded in one run.

Each is a problem of its own in one assignment, and a file of its own. Those of one problem are built together;
what does not compile is built alone.
"""

# ruff: noqa: E501 - edits quote the source as it stands

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from first_assignment import ASSIGNMENT, KERNELS, VARIANTS

if TYPE_CHECKING:
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.problems.problem import Case, KernelProblem

SOFTMAX, LAYERNORM, BACKWARD = "softmax_forward", "layernorm_forward", "layernorm_backward"
_BLOCK_OF_A_ROW, _THREAD_OF_A_ROW, _WARP_OF_A_ROW, _ATOMICS = "shared", "two_pass", "float4", "atomics"
MOST_ELEMENTS = 100_000
_LOOP = "    for (int half = blockDim.x / 2; half > 0; half /= 2) {\n      if (threadIdx.x < half) tree[threadIdx.x] +="
_CLEARED = "  cudaMemsetAsync({}_grad, 0, sizeof(float) * hidden_dim, stream_1);\n"
_FOURS = "for (int i = lane; i < fours; i += 32) {\n    const float4 v = x[i];"
_LAUNCH = "  normalise<<<(batch_size + 31) / 32, 32, 0, stream>>>"


@dataclass(frozen=True)
class Bug:
    """A variant of a problem, in which the first of each pair of texts, that occurs once, became the second."""

    id: str
    problem: str
    variant: str
    edits: tuple[tuple[str, str], ...]
    alone: bool = False  # whether it has a build of its own

    @property
    def file(self) -> str:
        """The file that its author wrote."""
        return f"{self.id}.cu"

    @property
    def kernel(self) -> KernelProblem:
        """The problem, with the launcher's name and the file of its build."""
        name = self.id.replace("-", "_")
        right = KERNELS[self.problem]
        return replace(
            right,
            id=self.id,
            file=self.file if self.alone else f"{self.problem}.cu",
            entry_point=f"{right.entry_point}_{name}",
            cases=lambda seed: _few(right.cases(seed)),
        )

    @property
    def text(self) -> str:
        """The source."""
        text = (VARIANTS / self.problem / f"{self.variant}.cu").read_text()
        for old, new in self.edits:
            assert text.count(old) == 1, f"{self.id}: {old!r} occurs {text.count(old)} times"
            text = text.replace(old, new)
        text = text.replace(f"{KERNELS[self.problem].entry_point}(", f"{self.kernel.entry_point}(")
        kernels = "|".join(re.findall(r"__global__ void (\w+)", text))
        return re.sub(rf"\b({kernels})\b(?=\(|<)", rf"\1_{self.id.replace('-', '_')}", text)


BUGS = (
    Bug(
        "missing-barrier",
        SOFTMAX,
        _BLOCK_OF_A_ROW,
        (("const float largest = tree[0];\n    __syncthreads();", "const float largest = tree[0];"),),
    ),
    Bug(
        "past-the-end",
        LAYERNORM,
        _WARP_OF_A_ROW,
        (
            (
                f"sum = 0.0f, square = 0.0f;\n  {_FOURS}",
                f"sum = 0.0f, square = 0.0f;\n  {_FOURS.replace('i < fours', 'i - lane < fours')}",
            ),
        ),
    ),
    Bug("no-maximum", SOFTMAX, _BLOCK_OF_A_ROW, (("expf(held[j] - largest)", "expf(held[j])"),)),
    Bug("no-epsilon", LAYERNORM, _THREAD_OF_A_ROW, (("sqrtf(variance + 1e-8f)", "sqrtf(variance)"),)),
    Bug(
        "empty-grid",
        LAYERNORM,
        _THREAD_OF_A_ROW,
        ((_LAUNCH, "  normalise<<<batch_size / 32, 32, 0, stream>>>"),),
    ),
    Bug(
        "compile-error",
        SOFTMAX,
        _BLOCK_OF_A_ROW,
        (("float value = -1e38f", "flaot value = -1e38f"),),
        alone=True,
    ),
    Bug("endless-loop", SOFTMAX, _BLOCK_OF_A_ROW, ((_LOOP, _LOOP.replace("half > 0", "half >= 0")),)),
    Bug(
        "exited-lane",
        BACKWARD,
        "two_streams",
        (("  const size_t start = ", "  if (threadIdx.x >= n) return;\n  const size_t start = "),),
    ),
    Bug("no-event", BACKWARD, _ATOMICS, (("  cudaStreamWaitEvent(stream_2, cleared, 0);\n", ""),)),
    Bug("default-stream", SOFTMAX, _BLOCK_OF_A_ROW, (("32 : 256, 0, stream>>>", "32 : 256>>>"),)),
    Bug("unbiased-variance", LAYERNORM, _THREAD_OF_A_ROW, (("variance /= n;", "variance /= n - 1;"),)),
    Bug(
        "standard-deviation",
        LAYERNORM,
        _THREAD_OF_A_ROW,
        (("vars[row] = variance;", "vars[row] = sqrtf(variance);"),),
    ),
    Bug("not-cleared", BACKWARD, _ATOMICS, ((_CLEARED.format("gamma"), ""), (_CLEARED.format("betta"), ""))),
    Bug("shared-too-small", SOFTMAX, _BLOCK_OF_A_ROW, (("held[2048], tree[256]", "tree[256], held[1024]"),)),
    Bug("shared-not-set", SOFTMAX, _BLOCK_OF_A_ROW, ((_LOOP, _LOOP.replace("blockDim.x / 2", "128")),)),
    Bug(
        "device-pointer-on-host",
        SOFTMAX,
        _BLOCK_OF_A_ROW,
        (
            (
                "  const int rows = batch_size",
                "  if (inp[0] != inp[0]) return;\n  const int rows = batch_size",
            ),
        ),
    ),
    Bug(
        "never-launched",
        LAYERNORM,
        _THREAD_OF_A_ROW,
        ((_LAUNCH, "  if (false) normalise<<<1, 32, 0, stream>>>"),),
    ),
    Bug(
        "too-many-threads",
        SOFTMAX,
        _BLOCK_OF_A_ROW,
        (("to_len <= 32 ? 32 : 256", "to_len <= 32 ? 32 : to_len <= 1024 ? 256 : 2048"),),
    ),
)


def _few(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """The first case of each kind, without the large ones."""
    small = [
        case for case in cases if math.prod(max(1, size) for size in case.sizes.values()) <= MOST_ELEMENTS
    ]
    return tuple({(case.group, case.distribution): case for case in reversed(small)}.values())[::-1]


def write(folder: Path) -> Assignment:
    """Write the submission that holds all of them; the assignment that it is for."""
    builds: dict[str, list[str]] = {}
    for bug in BUGS:
        (folder / bug.file).write_text(bug.text)
        if not bug.alone:
            builds.setdefault(bug.kernel.file, []).append(f'#include "{bug.file}"\n')
    for file, lines in builds.items():
        (folder / file).write_text("".join(lines))
    entries = tuple(
        ASSIGNMENT.rules.problem(bug.problem).model_copy(update={"id": bug.id, "title": bug.id})
        for bug in BUGS
    )
    assignment = replace(ASSIGNMENT, rules=ASSIGNMENT.rules.model_copy(update={"problems": entries}))
    vars(assignment)["problems"] = {bug.id: bug.kernel for bug in BUGS}  # where a cached property keeps it
    return assignment
