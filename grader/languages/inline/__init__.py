"""CUDA C++ in texts of a Python file, which ``load_inline`` of PyTorch builds."""
