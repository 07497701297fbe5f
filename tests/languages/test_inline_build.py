"""Modules of C++ in ``load_inline``, built: what such files say of PyTorch compiles with our headers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from grader.languages.cache import Cache
from grader.languages.cuda.imports import violations
from grader.languages.cuda.toolchain import find
from grader.languages.inline.build import build
from grader.languages.inline.constants import SourceError
from grader.languages.inline.source import extensions
from grader.languages.jobs import compile_limits
from grader.sandbox.backends import select

if TYPE_CHECKING:
    from pathlib import Path

    from grader.languages.language import Build

CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/util/Half.h>
#define CHECK_CUDA(x) TORCH_CHECK(x.type().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) AT_ASSERTM(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) \
  CHECK_CUDA(x);       \
  CHECK_CONTIGUOUS(x)
#define CUDA_CHECK(e)                                   \
  do {                                                  \
    cudaError_t er = (e);                               \
    if (er != cudaSuccess) {                            \
      throw std::runtime_error(cudaGetErrorString(er)); \
    }                                                   \
  } while (0)
__global__ void k(const half* a, half* b, int n) {
  int i = threadIdx.x;
  if (i < n) b[i] = __hadd(a[i], a[i]);
}
template <typename T>
__global__ void k2(const T* __restrict__ a, T* __restrict__ b, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    using acc = at::acc_type<T, true>;
    acc v = static_cast<acc>(a[i]);
    b[i] = static_cast<T>(v * v);
  }
}
at::Tensor f(at::Tensor a, c10::optional<torch::Tensor> bias, std::vector<torch::Tensor> all,
             std::string mode, bool flag) {
  CHECK_INPUT(a);
  TORCH_CHECK(a.dtype() == torch::kFloat16, "got ", a.dtype());
  TORCH_CHECK(
      a.scalar_type() == at::ScalarType::Half && a.dim() == 2 && a.sizes() == all[0].sizes(),
      a.sizes());
  auto options = torch::TensorOptions().dtype(torch::kFloat32).device(a.device());
  auto o2 =
      torch::zeros({a.size(0), a.size(-1)}, torch::dtype(torch::kFloat32).device(torch::kCUDA, 0));
  at::Tensor out = at::empty({a.size(0), a.size(1)}, a.options());
  auto o3 = torch::empty(a.sizes(), options);
  auto o4 = torch::empty({a.size(0)}, torch::kFloat32);
  auto o5 = torch::full({1}, 3.5, options);
  auto o6 = a.contiguous().view({-1}).to(torch::kFloat32);
  auto o7 = a.transpose(0, 1).reshape({a.size(1), -1});
  const at::Half* p = a.data_ptr<at::Half>();
  k<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(reinterpret_cast<const half*>(p),
                                                    (half*)out.data_ptr<c10::Half>(), a.numel());
  k<<<1, 32>>>(static_cast<const half*>(a.data_ptr()),
               reinterpret_cast<__half*>(out.data_ptr<torch::Half>()), a.numel());
  CUDA_CHECK(cudaGetLastError());
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::ScalarType::Half, at::ScalarType::BFloat16, a.scalar_type(), "f", [&] {
        k2<scalar_t><<<1, 32>>>(a.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), a.numel());
      });
  AT_DISPATCH_ALL_TYPES(o3.type(), "g", ([&] {
                          k2<scalar_t><<<dim3(1), dim3(32)>>>(o3.data<scalar_t>(),
                                                              o3.data<scalar_t>(), a.numel());
                        }));
  if (bias.has_value() && bias->defined()) out.copy_(*bias);
  out[0].fill_(1);
  auto s = out.sum().item<float>();
  (void)s;
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  auto prop = at::cuda::getCurrentDeviceProperties();
  int sms = prop->multiProcessorCount;
  (void)sms;
  return flag ? out : out.clone();
}
std::tuple<torch::Tensor, torch::Tensor> g(const torch::Tensor& a, int n, float s, int64_t m) {
  return {a, a};
}
"""
CPP = r"""
#include <vector>
at::Tensor f(at::Tensor a, c10::optional<torch::Tensor> bias, std::vector<torch::Tensor> all,
             std::string mode, bool flag);
std::tuple<torch::Tensor, torch::Tensor> g(const torch::Tensor& a, int n, float s, int64_t m);
void h(at::IntArrayRef s, at::TensorList l) {}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "text";
  m.def("f", &f, py::arg("a"), py::arg("bias") = py::none(), py::arg("all"),
        py::arg("mode") = "max", py::arg("flag") = true);
  m.def("g", g, "doc");
  m.def("h", &h);
  m.def(
      "l", [](torch::Tensor a) { return a.size(0); }, "lambda",
      py::call_guard<py::gil_scoped_release>());
}
"""


def built(cache: Cache, more: str = "") -> Build:
    call = f"load_inline('name', r'''{CPP}''', r'''{CUDA}''', {more})"
    text = f"from torch.utils.cpp_extension import load_inline\n{call}"
    (extension,) = extensions(ast.parse(text), text.encode())
    return build(extension, "answer.py", find(), select("process"), compile_limits(), cache, "sm_80")


def test_usual_code_compiles_once_and_keeps_the_policy(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = built(cache, "extra_cuda_cflags=['-O3', '-arch=sm_90', '-Xptxas', '-v', '-DSIZE=4']")
    assert first.ok, first.log
    assert first.artefact is not None
    assert violations(first.artefact) == ()
    assert {kernel.kernel for kernel in first.resources} >= {"k", "k2<float>", "k2<double>"}
    again = built(cache, "extra_cuda_cflags=['-O3', '-DSIZE=4'], verbose=True")
    assert again.cached


@pytest.mark.parametrize(
    "flag", ["-ccbin=/bin/sh", "-include=a.h", "-I/", "--run", "-Xcompiler=-fplugin=a.so"]
)
def test_flags_that_reach_elsewhere_are_refused(flag: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="flags that are not taken here"):
        built(Cache(tmp_path), f"extra_cuda_cflags=['{flag}']")
