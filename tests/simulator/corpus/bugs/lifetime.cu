// Pointers to what is gone, was never there or lives on the other side; and what is never given back.
#include "../corpus.h"

__global__ void scale(int n, float* data, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}

// --- freed_before_the_last_kernel: the scratch buffer is freed one kernel too early
__global__ void add_bias(int n, const float* scratch, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = scratch[i] + 1;  // BUG memcheck use_after_free
}
PROGRAM(freed_before_the_last_kernel) {
  const int n = 1024;
  float* scratch;
  CUDA(cudaMalloc(&scratch, n * sizeof(float)));
  CUDA(cudaMemset(scratch, 0, n * sizeof(float)));
  Array<float> out(n);
  scale<<<4, 256>>>(n, scratch, 2);
  CUDA(cudaFree(scratch));
  add_bias<<<4, 256>>>(n, scratch, out);
  finish();
  return true;
}

// --- freed_in_its_stream: cudaFreeAsync comes before the kernel in the same stream
__global__ void square(int n, float* data) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = static_cast<float>(i * i);  // BUG memcheck use_after_free
}
PROGRAM(freed_in_its_stream) {
  const int n = 256;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  float* data;
  CUDA(cudaMallocAsync(&data, n * sizeof(float), stream));
  CUDA(cudaMemsetAsync(data, 0, n * sizeof(float), stream));
  CUDA(cudaFreeAsync(data, stream));
  square<<<1, 256, 0, stream>>>(n, data);
  finish();
  CUDA(cudaStreamDestroy(stream));
  return true;
}

// --- freed_twice_by_cleanup: two pointers to one buffer, and a clean-up that frees both
PROGRAM(freed_twice_by_cleanup) {
  const int n = 256;
  float *current, *next;
  CUDA(cudaMalloc(&current, n * sizeof(float)));
  CUDA(cudaMemset(current, 0, n * sizeof(float)));
  next = current;
  scale<<<1, 256>>>(n, next, 2);
  finish();
  CUDA(cudaFree(current));
  const bool freed = cudaFree(next) == cudaSuccess;  // BUG memcheck double_free, in host code
  cudaGetLastError();
  return !freed;
}

// --- freed_by_every_thread: one thread allocates for the block, all of them free
__global__ void with_scratch(int* out) {
  __shared__ int* scratch;
  if (threadIdx.x == 0) scratch = static_cast<int*>(malloc(64 * sizeof(int)));
  __syncthreads();
  scratch[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = scratch[63 - threadIdx.x];
  __syncthreads();
  free(scratch);  // BUG memcheck double_free
}
PROGRAM(freed_by_every_thread) {
  Array<int> out(64);
  with_scratch<<<1, 64>>>(out);
  finish();
  return true;
}

// --- host_array_to_kernel: the launcher passes the host's array
__global__ void total(int n, const float* data, float* sum) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += 32) s += data[i];  // BUG memcheck host_pointer
  for (int step = 16; step > 0; step /= 2) s += __shfl_down_sync(~0u, s, step);
  if (threadIdx.x == 0) *sum = s;
}
PROGRAM(host_array_to_kernel) {
  const auto host = numbers(1024);
  Array<float> device(host), sum(1);
  total<<<1, 32>>>(1024, host.data(), sum);
  finish();
  return true;
}

// --- rows_not_copied: a table of row pointers that still point to the host's rows
__global__ void sum_rows(int columns, float* const* rows, float* sums) {
  float s = 0;
  for (int c = 0; c < columns; ++c) s += rows[threadIdx.x][c];  // BUG memcheck host_pointer
  sums[threadIdx.x] = s;
}
PROGRAM(rows_not_copied) {
  auto first = numbers(64), second = numbers(64);
  Array<float*> rows(std::vector<float*>{first.data(), second.data()});
  Array<float> sums(2);
  sum_rows<<<1, 2>>>(64, rows, sums);
  finish();
  return true;
}

// --- result_read_on_host: the host prints the sum where it lies on the device
PROGRAM(result_read_on_host) {
  Array<float> data(numbers(256));
  scale<<<1, 256>>>(256, data, 2);
  finish();
  volatile float* result = data;
  return result[0] >= 0;  // BUG memcheck device_pointer_on_host, in host code
}

// --- memset_of_the_host: the C library's memset on device memory
PROGRAM(memset_of_the_host) {
  Array<float> data(256);
  std::memset(static_cast<float*>(data), 0, 256 * sizeof(float));  // BUG memcheck device_pointer_on_host, in host code
  scale<<<1, 256>>>(256, data, 2);
  finish();
  return true;
}

// --- workspace_per_iteration: each step allocates its workspace, only the last is freed
PROGRAM(workspace_per_iteration) {
  const int n = 256;
  float* workspace = nullptr;
  for (int step = 0; step < 3; ++step) {
    CUDA(cudaMalloc(&workspace, n * sizeof(float)));  // BUG memcheck leak, in host code
    CUDA(cudaMemset(workspace, 0, n * sizeof(float)));
    scale<<<1, 256>>>(n, workspace, 2);
  }
  finish();
  CUDA(cudaFree(workspace));
  return true;
}

// --- early_return_leaks: the way out for an empty input forgets a buffer
static bool sum_unless_empty(int n) {
  float* sum;
  CUDA(cudaMalloc(&sum, sizeof(float)));  // BUG memcheck leak, in host code
  if (n == 0) return true;
  CUDA(cudaMemset(sum, 0, sizeof(float)));
  scale<<<1, 1>>>(1, sum, 2);
  finish();
  CUDA(cudaFree(sum));
  return true;
}
PROGRAM(early_return_leaks) { return sum_unless_empty(8) && sum_unless_empty(0); }

// --- arguments_swapped: destination and source of a copy to the device, the other way round
PROGRAM(arguments_swapped) {
  auto host = numbers(64);
  Array<float> device(64);
  device.zero();
  const auto error = cudaMemcpy(host.data(), device, 64 * sizeof(float), cudaMemcpyHostToDevice);  // BUG memcheck device_pointer_on_host, in host code // ALSO memcheck host_pointer, in host code
  cudaGetLastError();
  return error == cudaSuccess;
}

// --- list_freed_too_soon: a node's next is read after the node has been freed
struct Node {
  int value;
  Node* next;
};
__global__ void sum_and_free(int* out) {
  Node* first = nullptr;
  for (int i = 0; i < 4; ++i) {
    Node* node = static_cast<Node*>(malloc(sizeof(Node)));
    *node = {i, first};
    first = node;
  }
  int sum = 0;
  for (volatile Node* node = first; node; node = node->next) {  // BUG memcheck use_after_free
    sum += node->value;
    free(const_cast<Node*>(node));
  }
  out[threadIdx.x] = sum;
}
PROGRAM(list_freed_too_soon) {
  Array<int> out(1);
  sum_and_free<<<1, 1>>>(out);
  finish();
  return true;
}
