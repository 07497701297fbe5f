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


_EPSILON = "constexpr float EPSILON = 1e-8f;\n"
_GRAD, _WEIGHT, _OUT = (
    "load(grad[c], out + key);",
    "load(weight[c], soft + key);",
    "store(out + key, grad[c]);",
)
_X, _SCALE, _BIAS = (
    "load(value[c], x + column);",
    "load(gamma[c], scale + column);",
    "load(beta[c], bias + column);",
)

_PAST_L1 = """
__device__ inline void load_past_l1(float (&to)[4], const float* from) {
  const float4 v = __ldcg(reinterpret_cast<const float4*>(from));
  to[0] = v.x;
  to[1] = v.y;
  to[2] = v.z;
  to[3] = v.w;
}

__device__ inline void load_past_l1(float (&to)[1], const float* from) { to[0] = __ldcg(from); }
"""
_KEPT = """
__device__ inline void load_kept(float (&to)[4], const float* from) {
  asm("ld.global.L1::evict_last.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
      : "l"(from));
}
"""
_LEAVING = """
__device__ inline void store_leaving(float* to, const float (&from)[4]) {
  __stcs(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
}

__device__ inline void store_leaving(float* to, const float (&from)[1]) { __stcs(to, from[0]); }
"""


def _through(name: str, definition: str, *calls: str) -> tuple[tuple[str, str], ...]:
    """The edits that define the function ``name`` and make ``calls`` of load or store calls of it."""
    return ((_EPSILON, _EPSILON + definition), *((call, name + call[call.index("(") :]) for call in calls))


CANDIDATES = (
    Candidate("sb-grad-past-l1", SB, _through("load_past_l1", _PAST_L1, _GRAD), "10,240x40: 110.5 % beside 109: what is written in place is not written to the L1, too.", SOFTMAX),
    Candidate("sb-past-l1", SB, _through("load_past_l1", _PAST_L1, _GRAD, _WEIGHT), "10,240x40: 110.5 %: the weights are read once, too.", SOFTMAX),
    Candidate("sb-leaving", SB, _through("store_leaving", _LEAVING, _OUT), "10,240x40: 109.5 %: a line that is the first to leave need not be kept in the L1.", SOFTMAX),
    Candidate("lf-past-l1", LN, _through("load_past_l1", _PAST_L1, _X), "5120x256: 101 % beside 100: scale and bias are not crowded out of the L1."),
    Candidate("lf-kept", LN, _through("load_kept", _KEPT, _SCALE, _BIAS), "5120x256: 101 %: the same by name, as torch.compile asks for it."),
)  # fmt: skip
