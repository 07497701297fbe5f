"""Versions of the reference that may be faster: each is a few edits, with what they are expected to change.

None of them is in ``reference/`` before it has been measured. ``kernels.py`` times them beside the reference; the
outcome goes into docs/kernels.md, and an edit that won into the reference.
"""

# ruff: noqa: E501 - edits quote the source as it stands

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "reference"
LN, SB = "layernorm_forward", "softmax_backward"
SOFTMAX = "softmax_kernel.cu"


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
        text = (REFERENCE / self.file).read_text()
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.id}: {old!r} occurs {text.count(old)} times in {self.file}")
            text = text.replace(old, new)
        return text


def _past_l1(*loads: str) -> tuple[tuple[str, str], ...]:
    """The edits that take ``loads`` past the L1 cache."""
    epsilon = "constexpr float EPSILON = 1e-8f;\n"
    define = """
__device__ inline void load_past_l1(float (&to)[4], const float* from) {
  const float4 v = __ldcg(reinterpret_cast<const float4*>(from));
  to[0] = v.x;
  to[1] = v.y;
  to[2] = v.z;
  to[3] = v.w;
}

__device__ inline void load_past_l1(float (&to)[1], const float* from) { to[0] = __ldcg(from); }
"""
    return ((epsilon, epsilon + define), *((load, load.replace("load", "load_past_l1")) for load in loads))


_GRAD, _WEIGHT = "load(grad[c], out + key);", "load(weight[c], soft + key);"

CANDIDATES = (
    Candidate("sb-grad-past-l1", SB, _past_l1(_GRAD), "10,240x40: 110.5 % beside 109: what is written in place is not written to the L1, too.", SOFTMAX),
    Candidate("sb-past-l1", SB, _past_l1(_GRAD, _WEIGHT), "10,240x40: 110.5 %: the weights are read once, too.", SOFTMAX),
    Candidate("lf-past-l1", LN, _past_l1("load(value[c], x + column);"), "5120x256: 101 % beside 100: scale and bias are not crowded out of the L1."),
)  # fmt: skip
