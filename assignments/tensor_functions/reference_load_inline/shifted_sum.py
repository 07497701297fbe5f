"""A sum of two vectors and a number, in CUDA C++.

Idea: memory is the limit, so each element is read and written once. A thread beyond the end does nothing.

Bytes: 12 per element.

Launch: a thread per element, in blocks of 256.
"""

from torch.utils.cpp_extension import load_inline

CUDA = """
#include <ATen/cuda/CUDAContext.h>

__global__ void ker_shifted_sum(float* out, const float* x, const float* y, float shift, long n) {
  const long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < n) out[at] = x[at] + y[at] + shift;
}

void launch(torch::Tensor out, const torch::Tensor& x, const torch::Tensor& y, double shift) {
  const long n = x.numel(), threads = 256;
  ker_shifted_sum<<<(n + threads - 1) / threads, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      out.data_ptr<float>(), x.data_ptr<float>(), y.data_ptr<float>(), shift, n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

kernels = load_inline(
    name="shifted_sum",
    cpp_sources="void launch(torch::Tensor, const torch::Tensor&, const torch::Tensor&, double);",
    cuda_sources=CUDA,
    functions=["launch"],
    extra_cuda_cflags=["-O3"],
)


def custom_kernel(data):
    x, y, shift, out = data
    kernels.launch(out, x, y, shift)
    return out
