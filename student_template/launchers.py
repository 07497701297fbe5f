"""Given: the files with your launchers, and how C declares these."""

from __future__ import annotations

SOURCES = ("softmax_kernel.cu", "layernorm_kernel.cu")
LAUNCHERS = {
    "launch_attn_softmax": (
        "float* inp, const float* attn_mask, int batch_size, int nhead, int from_len, int to_len, "
        "bool mask_future, cudaStream_t stream"
    ),
    "launch_attn_softmax_bw": (
        "float* out_grad, const float* soft_inp, int rows, int softmax_len, cudaStream_t stream"
    ),
    "launch_layernorm": (
        "float* ln_res, float* vars, float* means, const float* inp, const float* scale, const float* bias, "
        "int batch_size, int hidden_dim, cudaStream_t stream"
    ),
    "launch_layernorm_bw": (
        "float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad, const float* inp, "
        "const float* gamma, const float* betta, const float* vars, const float* means, int batch_size, "
        "int hidden_dim, cudaStream_t stream_1, cudaStream_t stream_2"
    ),
}
