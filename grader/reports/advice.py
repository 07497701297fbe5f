"""What to do about errors that Python code or Triton raises, and about elements that no thread reaches.

What to do about a finding stands with its kind, in ``records/findings.py``.
"""

from __future__ import annotations

import re

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

BEFORE = (
    (
        "linkage specification is not allowed",
        "Close the brace of the function before this line: } is missing.",
    ),
    (
        "a function-definition is not allowed here",
        "Close the brace of the function before this: } is missing.",
    ),
    ("expected a declaration", "Look at the braces before this line: there is a } too many."),
    ('expected a ";"', "Look at the end of the statement before this, too: its semicolon may be missing."),
)
"""Words of nvcc about a line, and what to do before it."""

LATER_CPP = re.compile(
    r'identifier "(?:concept|requires|consteval|constinit|co_await|co_yield|co_return)" is undefined'
    r'|namespace "std" has no member "(?:span|ranges|views|format|bit_cast|numbers|source_location|same_as'
    r'|integral|floating_point|remove_cvref_t|countr_zero|popcount|bit_ceil|has_single_bit|latch|jthread)"'
)
"""Errors of nvcc about what C++20 has and C++17 has not."""

_IN_CUDA = (
    "Launch blocks for all elements, rounded up: (n + threads - 1) / threads; blockIdx.x tells each its own."
)
REACH = {
    "cuda": _IN_CUDA,
    **dict.fromkeys(("load_inline", "cupy", "nvrtc"), _IN_CUDA),
    "triton": "Launch programs for all elements, rounded up: triton.cdiv(n, size); tl.program_id tells each "
    "its own.",
}
"""What to do about elements that no thread reaches, by language."""
