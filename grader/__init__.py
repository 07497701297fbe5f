"""Grades CUDA kernels: whether they are right, on any machine, and whether they are fast, on a GPU."""

__version__ = "0.1.0"
