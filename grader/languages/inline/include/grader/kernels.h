// What Python finds in a module of kernels that a file compiles at run time: each kernel by its name, and launches.
//
// The linker gives `--wrap` the registration of kernels, which happens when the library is loaded. The calls are
// those of grader/runner/pytorch/raw.py.
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>
#include <vector>

#define GRADER_EXPORT extern "C" __attribute__((visibility("default")))

// CUDA's runtime has it since version 12.4.
extern "C" cudaError_t cudaFuncGetParamInfo(const void*, std::size_t, std::size_t*, std::size_t*) __attribute__((weak));

namespace {

struct Kernel {
  const char* name;  // the linker's
  const void* host;  // by which the runtime knows it
};

std::vector<Kernel>& kernels() {
  static auto* const all = new std::vector<Kernel>;  // filled before this file's own objects are there
  return *all;
}

}  // namespace

extern "C" void __real___cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                                              dim3*, int*);
extern "C" void __wrap___cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                                              int threads, uint3* thread, uint3* block, dim3* blocks, dim3* grid,
                                              int* warp) {
  kernels().push_back({name, host});
  __real___cudaRegisterFunction(handle, host, device, name, threads, thread, block, blocks, grid, warp);
}

GRADER_EXPORT const void* grader_kernel(const char* name) {
  for (const auto& kernel : kernels()) {
    if (std::strcmp(kernel.name, name) == 0) return kernel.host;
  }
  return nullptr;
}
GRADER_EXPORT const char* grader_name(std::size_t index) {
  return index < kernels().size() ? kernels()[index].name : nullptr;
}
// Bytes of a kernel's parameter; 0 behind the last one, -1 where the runtime is too old to tell.
GRADER_EXPORT long grader_bytes(const void* kernel, std::size_t index) {
  if (cudaFuncGetParamInfo == nullptr) return -1;
  std::size_t offset = 0, bytes = 0;
  if (cudaFuncGetParamInfo(kernel, index, &offset, &bytes) == cudaSuccess) return static_cast<long>(bytes);
  cudaGetLastError();  // that there are no more is no error of the launch
  return 0;
}
GRADER_EXPORT int grader_allow(const void* kernel, int shared) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
}
GRADER_EXPORT int grader_launch(const void* kernel, const unsigned* sizes, void** arguments, std::size_t shared,
                                cudaStream_t stream, int cooperative) {
  const dim3 grid(sizes[0], sizes[1], sizes[2]), block(sizes[3], sizes[4], sizes[5]);
  return cooperative ? cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared, stream)
                     : cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
GRADER_EXPORT const char* grader_error(int error) { return cudaGetErrorName(static_cast<cudaError_t>(error)); }
GRADER_EXPORT const char* grader_words(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }
