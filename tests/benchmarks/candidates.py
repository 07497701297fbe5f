"""Versions of the reference that may be faster: each is a few edits, with what they are expected to change.

None of them is in ``reference/`` before it has been measured. ``kernels.py`` times them beside the reference;
the outcome goes into docs/kernels.md, and an edit that won into the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "reference"


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


_SOFTMAX = "softmax_kernel.cu"
_LEAVING = """    if (key < length) {
      if constexpr (WIDTH == 4) store_first_to_leave(out + key, grad[c]);
      else store(out + key, grad[c]);
    }
"""


def _scores(name: str, load: str, prediction: str) -> Candidate:
    """Softmax forward whose scores are loaded by PTX; %0 to %3 are the elements, %4 is where they are."""
    by = f"""    if constexpr (WIDTH == 4) {{
      if (key < visible) {{
        asm volatile("{load}"
                     : "=f"(value[c][0]), "=f"(value[c][1]), "=f"(value[c][2]), "=f"(value[c][3])
                     : "l"(x + key));
      }}
    }} else if (key < visible) {{
      load(value[c], x + key);
    }}
"""
    old = "    if (key < visible) load(value[c], x + key);\n"
    return Candidate(name, "softmax_forward", ((old, by),), prediction, _SOFTMAX)


CANDIDATES = (
    Candidate(
        "sf-copy",
        "softmax_forward",
        (("// Softmax over", "// A copy: softmax over"),),
        "the same: what one run can tell",
        _SOFTMAX,
    ),
    _scores(
        "sf-l1-last",
        "ld.global.L1::evict_last.v4.f32 {%0, %1, %2, %3}, [%4];",
        "the same: nothing is read twice",
    ),
    _scores(
        "sf-l2-last",
        "{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
        " ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy; }",
        "2048 keys without a mask: 101 of 100, as torch.compile, if its loads do that; to know it only,"
        " because it takes the L2 from others",
    ),
    Candidate(
        "sb-first-to-leave",
        "softmax_backward",
        (
            (
                "    if (key < length) store(out + key, grad[c]);\n",
                _LEAVING,
            ),
        ),
        "1024 x 64: 112 of 107, 10,240 x 40: 108 of 105.5, as in forward; from 512 keys on 0.5 less",
        _SOFTMAX,
    ),
    Candidate(
        "lf-first-to-leave",
        "layernorm_forward",
        (
            ("      store(y + column, value[c]);\n", "      store_first_to_leave(y + column, value[c]);\n"),
            (
                "      store(ln_res + start[r] + c * 128, value[r][c]);\n",
                "      store_first_to_leave(ln_res + start[r] + c * 128, value[r][c]);\n",
            ),
        ),
        "1024 x 256: 104 of 101, 5120 x 256: 104 of 102.4; from 1024 columns on the same",
    ),
    Candidate(
        "lb-first-to-leave",
        "layernorm_backward",
        (
            (
                "      store(inp_grad + static_cast<size_t>(row) * columns + column, dx);\n",
                "      store_first_to_leave(inp_grad + static_cast<size_t>(row) * columns + column, dx);\n",
            ),
        ),
        "1024 x 256: 72 of 71, 5120 x 256: 70.5 of 70: it waits for one trip after the other",
    ),
)
