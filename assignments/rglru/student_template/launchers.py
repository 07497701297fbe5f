"""Given: the file with your launchers, and how C declares these."""

from __future__ import annotations

SOURCES = ("rglru_kernel.cu",)
_NAMES = {"float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16"}
_DECLARED = {
    "launch_linear_scan": (
        "T* h, const T* a, const T* b, const float* h0, int batch, int length, int width, cudaStream_t stream"
    ),
    "launch_rglru_forward": (
        "T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch, int length, "
        "int width, cudaStream_t stream"
    ),
    "launch_rglru_backward": (
        "T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga, "
        "const float* c, const T* h, const float* h0, int batch, int length, int width, cudaStream_t stream"
    ),
}

LAUNCHERS = {
    f"{name}_{dtype}": declared.replace("T*", f"{spelling}*")
    for name, declared in _DECLARED.items()
    for dtype, spelling in _NAMES.items()
}
