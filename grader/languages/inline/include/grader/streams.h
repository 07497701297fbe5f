// The current stream of PyTorch, and the guards that choose a device, of which there is one.
#pragma once

#include "grader/tensor.h"

namespace c10::cuda {

class CUDAStream {
 public:
  explicit CUDAStream(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(stream_)); }
  DeviceIndex device_index() const { return 0; }
  Device device() const { return {kCUDA, 0}; }

 private:
  cudaStream_t stream_;
};

// The current stream is that of the call, and the default stream is the same (exports.h).
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) {
  return CUDAStream(static_cast<cudaStream_t>(grader::bridge.stream()));
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) { return getCurrentCUDAStream(); }
inline DeviceIndex current_device() { return 0; }
inline DeviceIndex device_count() { return 1; }

struct CUDAGuard {
  explicit CUDAGuard(DeviceIndex) {}
  explicit CUDAGuard(const Device&) {}
};
struct OptionalCUDAGuard {
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(const std::optional<Device>&) {}
};

}  // namespace c10::cuda

namespace at {

using DeviceGuard = c10::cuda::CUDAGuard;
using OptionalDeviceGuard = c10::cuda::OptionalCUDAGuard;

namespace cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::OptionalCUDAGuard;
inline bool is_available() { return true; }
inline const cudaDeviceProp* getCurrentDeviceProperties() {
  static const cudaDeviceProp properties = [] {
    cudaDeviceProp asked{};
    C10_CUDA_CHECK(cudaGetDeviceProperties(&asked, 0));
    return asked;
  }();
  return &properties;
}
inline const cudaDeviceProp* getDeviceProperties(DeviceIndex) { return getCurrentDeviceProperties(); }
}  // namespace cuda

}  // namespace at
