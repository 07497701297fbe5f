"""Wrong answers in CUDA C++ by NVRTC; ``in_cpp`` has them."""

from .in_cpp import mutants

MUTANTS = mutants("nvrtc")
