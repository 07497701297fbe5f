// Calls of the runtime that fail, and programs that do not look.
#include "../corpus.h"

__global__ void fill(int n, float* data, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = value;
}

// --- block_too_large_unseen: 2048 threads per block, and nobody asks whether the kernel started
PROGRAM(block_too_large_unseen) {
  Array<float> data(2048);
  data.zero();
  fill<<<1, 2048>>>(2048, data, 1);  // BUG apicheck unchecked_error, in host code // ALSO apicheck invalid_launch, in host code
  return true;
}

// --- fault_unseen: the program ends without asking how its kernel fared
__global__ void fill_all(float* data) {
  data[blockIdx.x * blockDim.x + threadIdx.x] = 1;  // ALSO memcheck global_oob
}
PROGRAM(fault_unseen) {
  float* data;
  if (cudaMalloc(&data, 1000 * sizeof(float)) != cudaSuccess) return false;
  fill_all<<<4, 256>>>(data + (1 << 24));  // BUG apicheck unchecked_error, in host code
  return true;
}

// --- no_blocks_for_few: n / 256 blocks are none if n is below 256
PROGRAM(no_blocks_for_few) {
  const int n = 200;
  Array<float> data(n);
  data.zero();
  fill<<<n / 256, 256>>>(n, data, 1);  // BUG apicheck invalid_launch, in host code
  return cudaGetLastError() == cudaSuccess;
}

// --- shared_memory_not_requested: more than 48 KiB of dynamic shared memory without asking for it
__global__ void in_shared(int n, float* data) {
  extern __shared__ float row[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = data[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = row[n - 1 - i];
}
PROGRAM(shared_memory_not_requested) {
  const int n = 16384;
  Array<float> data(numbers(n));
  in_shared<<<1, 256, n * sizeof(float)>>>(n, data);  // BUG apicheck invalid_launch, in host code
  return cudaGetLastError() == cudaSuccess;
}

// --- copy_of_doubles: the size is computed from the wrong type
PROGRAM(copy_of_doubles) {
  const int n = 256;
  std::vector<double> host(n);
  Array<float> data(n);
  const auto error = cudaMemcpy(data, host.data(), n * sizeof(double), cudaMemcpyHostToDevice);  // BUG apicheck memcpy_overflow, in host code
  cudaGetLastError();
  return error == cudaSuccess;
}

// --- constant_table_too_small: 80 coefficients for a table of 64
__constant__ float coefficients[64];
__global__ void apply(float* data) { data[threadIdx.x] *= coefficients[threadIdx.x]; }
PROGRAM(constant_table_too_small) {
  const std::vector<float> host(80, 1);
  Array<float> data(numbers(64));
  const auto error = cudaMemcpyToSymbol(coefficients, host.data(), 80 * sizeof(float));  // BUG apicheck memcpy_overflow, in host code
  cudaGetLastError();
  apply<<<1, 64>>>(data);
  finish();
  return error == cudaSuccess;
}

// --- grid_too_tall: more than 65535 blocks in y
PROGRAM(grid_too_tall) {
  Array<float> data(64);
  data.zero();
  fill<<<dim3(1, 70000), 64>>>(64, data, 1);  // BUG apicheck invalid_launch, in host code
  return cudaGetLastError() == cudaSuccess;
}

// --- memset_in_bits: a fill of 32 times too many bytes
PROGRAM(memset_in_bits) {
  Array<float> data(64);
  const auto error = cudaMemset(data, 0, 64 * 32);  // BUG apicheck memcpy_overflow, in host code
  cudaGetLastError();
  return error == cudaSuccess;
}

// --- result_longer_than_its_buffer: more is copied back than there is
PROGRAM(result_longer_than_its_buffer) {
  std::vector<float> host(512);
  Array<float> data(256);
  fill<<<1, 256>>>(256, data, 1);
  const auto error = cudaMemcpy(host.data(), data, host.size() * sizeof(float), cudaMemcpyDeviceToHost);  // BUG apicheck memcpy_overflow, in host code
  cudaGetLastError();
  return error == cudaSuccess;
}
