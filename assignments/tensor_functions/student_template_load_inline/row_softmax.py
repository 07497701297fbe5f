"""A softmax of each row of a float32 matrix."""

from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void ker_row_softmax(float* y, const float* x, int columns) {
  // Write the kernel.
}

torch::Tensor launch(torch::Tensor x) {
  auto y = torch::empty_like(x);
  // Launch the kernel.
  return y;
}
"""

kernels = load_inline(
    name="row_softmax",
    cpp_sources="torch::Tensor launch(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["launch"],
)


def row_softmax(x):
    """Return a new tensor with the shape of ``x``."""
    raise NotImplementedError
