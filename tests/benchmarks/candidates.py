"""Versions of the reference that may be faster: each is a few edits, with what they are expected to change.

None of them is in ``reference/`` before it has been measured. ``kernels.py`` times them beside the reference;
the outcome goes into docs/kernels.md, and an edit that won into the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

REFERENCE = Path(__file__).parents[2] / "reference"


def edited(file: str, edits: Sequence[tuple[str, str]]) -> str:
    """A file of the reference, in which each pair's first text became the second.

    Raises:
        ValueError: a first text does not occur exactly once.
    """
    text = (REFERENCE / file).read_text()
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times in {file}")
        text = text.replace(old, new)
    return text


@dataclass(frozen=True)
class Candidate:
    """Edits of one file: each pair's first text occurs there exactly once and becomes the second.

    Attributes:
        id: its name.
        problem: what it may speed up.
        edits: pairs of old and new text.
        prediction: what will happen on an H100, and why.
        file: of the reference.
    """

    id: str
    problem: str
    edits: tuple[tuple[str, str], ...]
    prediction: str
    file: str = "layernorm_kernel.cu"

    def text(self) -> str:
        """The edited file.

        Raises:
            ValueError: a text does not occur exactly once.
        """
        return edited(self.file, self.edits)


_SOFTMAX, _LAYERNORM = "softmax_kernel.cu", "layernorm_kernel.cu"


def _copy(name: str, problem: str, file: str, first_words: str) -> Candidate:
    edit = (f"// {first_words} over the last axis", f"// A copy: {first_words} over the last axis")
    return Candidate(name, problem, (edit,), "the same: what one run can tell", file)


_LOADS = """#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) load(value[r][c], inp + start[r] + c * 128);
    load(gamma[c], scale + c * 128 + lane * 4);
    load(beta[c], bias + c * 128 + lane * 4);
  }
"""
_ROWS = """#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) load(value[r][c], inp + start[r] + c * 128);
  }
"""
_STAY = """#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    load_to_load_again(gamma[c], scale + c * 128 + lane * 4);
    load_to_load_again(beta[c], bias + c * 128 + lane * 4);
  }
"""
_MEANS, _VARIANCES = "  reduce<Sum, 32>(mean, sums);\n", "  reduce<Sum, 32>(variance, squares);\n"


def _one_warp(name: str, rows: int, prediction: str, *edits: tuple[str, str]) -> Candidate:
    """LayerNorm forward of 256 columns, a warp in each block, and no condition before a load."""
    return Candidate(
        name,
        "layernorm_forward",
        (
            ("PAIR_THREADS = 64;", "PAIR_THREADS = 32;"),
            ("ROWS = 2, CHUNKS", f"ROWS = {rows}, CHUNKS"),
            ("  if (first >= rows) return;\n", ""),
            (
                "(min(first + r, rows - 1)) * PAIR_COLUMNS + lane * 4",
                "(first) * PAIR_COLUMNS + lane * 4 + r * PAIR_COLUMNS",
            ),
            ("if (lane == r && first + r < rows)", "if (lane == r)"),
            ("batch_size >= MANY_ROWS)", f"batch_size >= MANY_ROWS && batch_size % {rows} == 0)"),
            ("PAIR_THREADS / 32 * 2)", f"PAIR_THREADS / 32 * {rows})"),
            *edits,
        ),
        prediction,
    )


def _in_step(name: str, rows: int, prediction: str) -> Candidate:
    """Barriers make the compiler sum up all rows in step, as in torch.compile's kernel."""
    return _one_warp(
        name,
        rows,
        prediction,
        (_LOADS, _ROWS),
        ("  __threadfence_block();\n\n  float mean[ROWS]", "\n  float mean[ROWS]"),
        (_MEANS, "  __syncthreads();\n" + _MEANS + _STAY),
        (_VARIANCES, "  __syncthreads();\n" + _VARIANCES + "  __syncthreads();\n"),
    )


CANDIDATES = (
    _in_step("lf-four-in-step", 4, "5120 x 256: 103.3 of 101.7 on an H100, as torch.compile"),
    _in_step("lf-eight-in-step", 8, "5120 x 256: 103 of 101.7 on an H100: half as many warps to start"),
    _in_step("lf-two-in-step", 2, "5120 x 256: 102.5 of 101.7 on an H100"),
    _one_warp("lf-four", 4, "5120 x 256: 102.5 of 101.7 on an H100", (_LOADS, _ROWS + _STAY)),
    _copy("sf-copy", "softmax_forward", _SOFTMAX, "Softmax"),
    _copy("sb-copy", "softmax_backward", _SOFTMAX, "Softmax"),
    _copy("lf-copy", "layernorm_forward", _LAYERNORM, "LayerNorm"),
    _copy("lb-copy", "layernorm_backward", _LAYERNORM, "LayerNorm"),
)
