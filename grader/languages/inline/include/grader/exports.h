// What Python finds in a module of C++, and the runtime's calls on the default stream, which is that of the call.
#pragma once

#include <cuda_runtime_api.h>

#include "grader/module.h"

#define GRADER_EXPORT extern "C" __attribute__((visibility("default")))

extern "C" void grader_define(::pybind11::module_&);

namespace {

enum Ending : int { returned, raised_in_python, raised_here, wrong_arguments };

struct Ended {
  std::string message, file;
  int line = 0;
};
Ended ended;
pybind11::detail::Result result;

pybind11::module_& functions() {
  static pybind11::module_* const all = [] {
    auto* const defined = new pybind11::module_;
    grader_define(*defined);
    return defined;
  }();
  return *all;
}

}  // namespace

GRADER_EXPORT void grader_begin(const grader::Bridge* offered) { grader::bridge = *offered; }
GRADER_EXPORT std::int64_t grader_count() { return static_cast<std::int64_t>(functions().functions.size()); }
GRADER_EXPORT const char* grader_name(std::int64_t index) { return functions().functions[index].name.c_str(); }
GRADER_EXPORT const char* grader_arguments(std::int64_t index) {
  return functions().functions[index].arguments.c_str();
}
GRADER_EXPORT const char* grader_types(std::int64_t index) { return functions().functions[index].types.c_str(); }

GRADER_EXPORT int grader_call(std::int64_t index, const grader::Value* arguments, std::int64_t count) {
  auto& function = functions().functions[index];
  result = {};
  ended = {};
  std::vector<grader::Value> values(arguments, arguments + count);
  const auto with_defaults = function.defaults.size();
  for (auto i = values.size(); i < with_defaults; ++i) values.push_back(function.defaults[i]);
  for (std::size_t i = 0; i < with_defaults && i < values.size(); ++i) {
    if (values[i].kind == grader::missing) values[i] = function.defaults[i];
  }
  if (values.size() != function.count) return wrong_arguments;
  for (const auto& value : values) {
    if (value.kind == grader::missing) return wrong_arguments;
  }
  try {
    function.call(values.data(), result);
    return returned;
  } catch (const grader::PythonRaised&) {
    return raised_in_python;
  } catch (const pybind11::detail::WrongTypeError&) {
    return wrong_arguments;
  } catch (const c10::Error& error) {
    ended = {error.what(), error.file(), error.line()};
  } catch (const std::exception& error) {
    ended.message = error.what();
  }
  return raised_here;
}

GRADER_EXPORT std::int64_t grader_result(const grader::Value** values, int* one) {
  *values = result.values.data();
  *one = result.one ? 1 : 0;
  return static_cast<std::int64_t>(result.values.size());
}
GRADER_EXPORT void grader_done() { result = {}; }
GRADER_EXPORT const char* grader_message() { return ended.message.c_str(); }
GRADER_EXPORT const char* grader_place(int* line) {
  *line = ended.line;
  return ended.file.c_str();
}

// The linker gives these the calls of the module (`--wrap`).
namespace {
cudaStream_t chosen(cudaStream_t stream) {
  return stream == nullptr ? static_cast<cudaStream_t>(grader::bridge.stream()) : stream;
}
}  // namespace

extern "C" {

unsigned __real___cudaPushCallConfiguration(dim3, dim3, std::size_t, cudaStream_t);
unsigned __wrap___cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
  return __real___cudaPushCallConfiguration(grid, block, shared, chosen(stream));
}
cudaError_t __real_cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t);
cudaError_t __wrap_cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                                    cudaStream_t stream) {
  return __real_cudaLaunchKernel(kernel, grid, block, arguments, shared, chosen(stream));
}
cudaError_t __real_cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t);
cudaError_t __wrap_cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               std::size_t shared, cudaStream_t stream) {
  return __real_cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared, chosen(stream));
}
cudaError_t __real_cudaMemsetAsync(void*, int, std::size_t, cudaStream_t);
cudaError_t __wrap_cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return __real_cudaMemsetAsync(to, value, bytes, chosen(stream));
}
cudaError_t __wrap_cudaMemset(void* to, int value, std::size_t bytes) {
  return __real_cudaMemsetAsync(to, value, bytes, chosen(nullptr));
}
cudaError_t __real_cudaMemcpyAsync(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  return __real_cudaMemcpyAsync(to, from, bytes, kind, chosen(stream));
}
cudaError_t __real_cudaStreamSynchronize(cudaStream_t);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) { return __real_cudaStreamSynchronize(chosen(stream)); }
cudaError_t __wrap_cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const auto stream = chosen(nullptr);
  const auto error = __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
  return error != cudaSuccess || kind == cudaMemcpyDeviceToDevice ? error : __real_cudaStreamSynchronize(stream);
}
cudaError_t __real_cudaMemcpyToSymbolAsync(const void*, const void*, std::size_t, std::size_t, cudaMemcpyKind,
                                           cudaStream_t);
cudaError_t __wrap_cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream) {
  return __real_cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, chosen(stream));
}
cudaError_t __wrap_cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                      cudaMemcpyKind kind) {
  const auto stream = chosen(nullptr);
  const auto error = __real_cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, stream);
  return error != cudaSuccess || kind == cudaMemcpyDeviceToDevice ? error : __real_cudaStreamSynchronize(stream);
}
cudaError_t __real_cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return __real_cudaEventRecord(event, chosen(stream));
}
cudaError_t __real_cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return __real_cudaStreamWaitEvent(chosen(stream), event, flags);
}
cudaError_t __real_cudaMallocAsync(void**, std::size_t, cudaStream_t);
cudaError_t __wrap_cudaMallocAsync(void** block, std::size_t bytes, cudaStream_t stream) {
  return __real_cudaMallocAsync(block, bytes, chosen(stream));
}
cudaError_t __real_cudaFreeAsync(void*, cudaStream_t);
cudaError_t __wrap_cudaFreeAsync(void* block, cudaStream_t stream) {
  return __real_cudaFreeAsync(block, chosen(stream));
}

}  // extern "C"
