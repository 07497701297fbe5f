"""Submissions whose numbers are right and that have one defect each, which the checkers find."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from first_assignment import VARIANTS

if TYPE_CHECKING:
    from pathlib import Path

FILE = "softmax_kernel.cu"
PROBLEM = "softmax_forward"
_RIGHT = VARIANTS / PROBLEM / "shared.cu"
_FIRST = "  const int rows = batch_size * nhead * from_len;\n"  # of the launcher
_WORDS = "__device__ int words[64];\n"
_OWN = "int* own = nullptr; cudaMalloc(&own, {bytes});"


@dataclass(frozen=True)
class Defect:
    """A kernel that is launched before the right one.

    Attributes:
        id: its name.
        kind: of the finding.
        kernel: its body; ``x`` is the input, of ``count`` elements, or memory of the launcher's own.
        launch: what the launcher does first.
        costs: whether the group "memory and concurrency" is lost.
        ends: whether nothing runs after it.
    """

    id: str
    kind: str
    kernel: str
    launch: str = "side<<<1, 64, 0, stream>>>(inp, size_t(batch_size) * nhead * from_len * to_len);"
    costs: bool = True
    ends: bool = False

    def write(self, folder: Path) -> Path:
        """Write the submission into a new folder."""
        text = _RIGHT.read_text()
        assert text.count(_FIRST) == 1
        side = f"__global__ void side(void* x, size_t count) {{ const int t = threadIdx.x; {self.kernel} }}\n"
        text = text.replace(_FIRST, f"  {self.launch}\n{_FIRST}")
        text = re.sub(r'(?=^extern "C")', lambda _: f"{_WORDS}{side}", text, flags=re.MULTILINE)
        folder.mkdir(parents=True)
        (folder / FILE).write_text(text)
        return folder


def _own(size: int, after: str = "cudaFree(own);", before: str = "") -> str:
    """A launch on new memory of ``size`` bytes."""
    return f"{_OWN.format(bytes=size)} {before} side<<<1, 1, 0, stream>>>(own, {size // 4}); {after}"


DEFECTS = (
    Defect("reads-past-the-end", "global_oob", "if (t == 0) *((volatile float*)x + count);"),
    Defect("writes-past-an-array", "global_oob", "if (t == 0) ((volatile float*)x)[count] = 1;"),
    Defect("writes-past-the-end", "global_oob", "((volatile int*)x)[count] = 1;", _own(400)),
    Defect(
        "reads-freed-memory",
        "use_after_free",
        "*(volatile int*)x;",
        _own(
            400,
            after="cudaFree(other);",
            before="int* other = nullptr; cudaMalloc(&other, 4); cudaFree(own);",
        ),
    ),
    Defect("reads-memory-that-nobody-wrote", "uninit_global", "words[0] = *(int*)x > 3;", _own(400)),
    Defect(
        "shared-memory-past-the-end",
        "shared_oob",
        "__shared__ int held[33]; ((volatile int*)held)[t + count % 2] = t;",
        "side<<<1, 33, 0, stream>>>(inp, 1);",
    ),
    Defect(
        "own-array-past-the-end",
        "local_oob",
        'int own[8] = {}; int* at = own; asm volatile("" : "+l"(at) :: "memory"); '
        "at[8 + t] = t; words[t] = at[8 + t] + at[t % 8];",
    ),
    Defect(
        "shuffle-from-a-thread-that-has-left",
        "exited_lanes",
        "if (t >= 16) return; words[t] = __shfl_down_sync(0xffffffff, t, 16);",
        "side<<<1, 32, 0, stream>>>(inp, 1);",
    ),
    Defect(
        "two-threads-write-one-word",
        "race_shared",
        "__shared__ int held; if (t % 32 == 0) held = t; __syncthreads(); words[t] = held;",
    ),
    Defect(
        "no-barrier-between-write-and-read",
        "race_shared",
        "__shared__ int held[64]; held[t] = 0; __syncthreads(); held[t] = t; words[t] = held[63 - t];",
    ),
    Defect(
        "two-blocks-write-one-word",
        "race_global",
        "words[0] = blockIdx.x;",
        "side<<<2, 1, 0, stream>>>(inp, 1);",
    ),
    Defect(
        "barriers-at-two-places",
        "divergent_barrier",
        'if (t < 32) { asm volatile("bar.sync 0;"); words[t] = 1; } '
        'else { asm volatile("bar.sync 0;"); words[t] = 2; }',
    ),
    Defect("misaligned", "misaligned", "*(volatile double*)((float*)x + 1);", ends=True),
    Defect(
        "threads-leave-before-a-barrier",
        "divergent_barrier",
        "if (t >= 32) return; __syncthreads(); words[t] = t;",
        costs=False,
    ),
)
