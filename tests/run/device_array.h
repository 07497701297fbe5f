// An array on the device, for programs that call a library.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

template <typename T>
struct Device {
  T* at;
  size_t n;
  explicit Device(const std::vector<T>& host) : n(host.size()) {
    cudaMalloc(&at, n * sizeof(T));
    cudaMemcpy(at, host.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  }
  ~Device() { cudaFree(at); }
  std::vector<T> host() const {
    std::vector<T> copy(n);
    cudaMemcpy(copy.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost);
    return copy;
  }
  void print(const char* name) const {
    std::printf("%s", name);
    for (const T element : host()) std::printf(" %g", double(float(element)));
    std::printf("\n");
  }
};
