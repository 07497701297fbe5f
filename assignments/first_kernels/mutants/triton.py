"""Wrong kernels in Triton: edits of ``reference_triton``, with the reason of each. All of them must fail."""

from .triton_matmul_to_attention import MUTANTS as SECOND
from .triton_vector_add_to_transpose import MUTANTS as FIRST

MUTANTS = (*FIRST, *SECOND)
