"""Python files whose kernels are compiled when the file runs: by CuPy, or by NVRTC."""
