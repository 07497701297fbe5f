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


_PARAMETERS = (
    (
        "ker_layer_norm(float* ln_res, float* vars, float* means, const float* inp,",
        "ker_layer_norm(const float* inp, int rows, int hidden, float share,",
    ),
    ("int rows, int hidden, float share) {", "float* ln_res, float* vars, float* means) {"),
    (
        "ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim, 1.0f / hidden_dim)",
        "inp, batch_size, hidden_dim, 1.0f / hidden_dim, scale, bias, ln_res, vars, means)",
    ),
)

CANDIDATES = (
    Candidate(
        "lf-parameters",
        "layernorm_forward",
        _PARAMETERS,
        "from 8192 x 1024 on the same; launches of a few us 1.5 % less time, as ker_layer_norm_narrow",
    ),
    _copy("sf-copy", "softmax_forward", _SOFTMAX, "Softmax"),
    _copy("sb-copy", "softmax_backward", _SOFTMAX, "Softmax"),
    _copy("lf-copy", "layernorm_forward", _LAYERNORM, "LayerNorm"),
    _copy("lb-copy", "layernorm_backward", _LAYERNORM, "LayerNorm"),
)
