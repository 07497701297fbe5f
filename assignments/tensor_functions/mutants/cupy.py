"""Wrong answers in CUDA C++ by CuPy; ``in_cpp`` has them."""

from .in_cpp import mutants

MUTANTS = mutants("cupy")
