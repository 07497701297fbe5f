"""Wrong kernels that `grader assignment mutate` does not make: all of them must fail."""

from .stencil_to_sort import MUTANTS as SECOND
from .vector_add_to_matmul import MUTANTS as FIRST

MUTANTS = (*FIRST, *SECOND)
