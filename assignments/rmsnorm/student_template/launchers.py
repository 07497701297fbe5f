"""Given: the file with your launchers, and how C declares these."""

from __future__ import annotations

SOURCES = ("rmsnorm_kernel.cu",)
_NAMES = {"float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16"}
_DECLARED = {
    "launch_rmsnorm_forward": (
        "T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden, "
        "cudaStream_t stream"
    ),
    "launch_rmsnorm_backward": (
        "T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows, "
        "int hidden, cudaStream_t stream"
    ),
}

LAUNCHERS = {
    f"{name}_{dtype}": declared.replace("T*", f"{spelling}*")
    for name, declared in _DECLARED.items()
    for dtype, spelling in _NAMES.items()
}
