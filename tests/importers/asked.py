"""What a problem of a form asks for, as an answer's kernel does it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """What an answer to a problem does for each element.

    Attributes:
        id: of the imported problem.
        original: the name of what it is imported from.
        parameters: of the kernel, as in C++: pointers, ``long`` and ``float``; ``n`` elements are there.
        in_cpp: what it does for the element ``at``.
        in_triton: likewise for many elements, of which ``inside`` says whether they are there.
        function: of the answer, which calls ``launched`` with the parameters.
    """

    id: str
    original: str
    parameters: str
    in_cpp: str
    in_triton: str
    function: str
