"""What to do about errors that Python code or Triton raises, and about elements that no thread reaches.

What to do about a finding stands with its kind, in ``records/findings.py``.
"""

from __future__ import annotations

RAISED = (
    (
        "must be a power of 2",
        "Take the next power of 2, triton.next_power_of_2(n), and leave out what is too much by a mask.",
    ),
    ("must be of type tl.constexpr", "Write `: tl.constexpr` behind this parameter of the kernel."),
    ("Cannot call @triton.jit'd", "Launch it with a grid: kernel[(programs,)](...)."),
    ("does not compile", "Correct this line first: other errors may follow from it."),
)
"""Words of what Python code or Triton says, and what to do then; the first that fit count."""

REACH = {
    "cuda": "Round the number of blocks up, (n + threads - 1) / threads; blockIdx.x tells each its elements.",
    "triton": "Round the number of programs up, triton.cdiv(n, size); tl.program_id tells each its elements.",
}
"""What to do about elements that no thread reaches, by language."""
