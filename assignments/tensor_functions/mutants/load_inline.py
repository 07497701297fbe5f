"""Wrong answers in CUDA C++ by load_inline; ``in_cpp`` has them."""

from .in_cpp import mutants

MUTANTS = mutants("load_inline")
