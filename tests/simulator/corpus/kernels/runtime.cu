// The runtime's calls around kernels: streams, events, memory of each kind, graphs, attributes.
#include "../corpus.h"

#include <algorithm>

__global__ void scale(int n, float* data, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}
__global__ void add(int n, const float* a, const float* b, float* sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

// --- streams_and_events: two streams join in a third, asynchronous copies of pinned memory, a time that is not negative
PROGRAM(streams_and_events) {
  const int n = 1000;
  float* host;
  CUDA(cudaMallocHost(&host, n * sizeof(float)));
  for (int i = 0; i < n; ++i) host[i] = static_cast<float>(i);
  Array<float> a(n), b(n), sum(n);
  cudaStream_t streams[3];
  cudaEvent_t events[4];
  for (auto& stream : streams) CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (auto& event : events) CUDA(cudaEventCreate(&event));
  CUDA(cudaEventRecord(events[2], streams[0]));
  CUDA(cudaMemcpyAsync(a, host, n * sizeof(float), cudaMemcpyHostToDevice, streams[0]));
  scale<<<4, 256, 0, streams[0]>>>(n, a, 2);
  CUDA(cudaMemcpyAsync(b, host, n * sizeof(float), cudaMemcpyHostToDevice, streams[1]));
  scale<<<4, 256, 0, streams[1]>>>(n, b, 3);
  for (int s : {0, 1}) {
    CUDA(cudaEventRecord(events[s], streams[s]));
    CUDA(cudaStreamWaitEvent(streams[2], events[s], 0));
  }
  add<<<4, 256, 0, streams[2]>>>(n, a, b, sum);
  CUDA(cudaMemcpyAsync(host, sum, n * sizeof(float), cudaMemcpyDeviceToHost, streams[2]));
  CUDA(cudaEventRecord(events[3], streams[2]));
  CUDA(cudaEventSynchronize(events[3]));
  float milliseconds = -1;
  CUDA(cudaEventElapsedTime(&milliseconds, events[2], events[3]));
  bool right = milliseconds >= 0 && cudaStreamQuery(streams[2]) == cudaSuccess;
  for (int i = 0; i < n; ++i) right &= host[i] == 5.0f * i;
  for (auto& stream : streams) CUDA(cudaStreamDestroy(stream));
  for (auto& event : events) CUDA(cudaEventDestroy(event));
  CUDA(cudaFreeHost(host));
  return right;
}

// --- managed_memory: the host writes, the kernel works, the host reads
PROGRAM(managed_memory) {
  const int n = 500;
  float* data;
  CUDA(cudaMallocManaged(&data, n * sizeof(float)));
  for (int i = 0; i < n; ++i) data[i] = static_cast<float>(i);
  scale<<<2, 256>>>(n, data, 3);
  finish();
  bool right = true;
  for (int i = 0; i < n; ++i) right &= data[i] == 3.0f * i;
  CUDA(cudaFree(data));
  return right;
}

// --- managed_variable: the host and kernels read and write a variable of both
__managed__ float shared_by_both[300] = {1, 2, 3};
PROGRAM(managed_variable) {
  const int n = 300;
  bool right = shared_by_both[2] == 3 && shared_by_both[3] == 0;
  for (int i = 0; i < n; ++i) shared_by_both[i] += 1;
  scale<<<2, 256>>>(n, shared_by_both, 2);
  finish();
  for (int i = 0; i < n; ++i) right &= shared_by_both[i] == 2 * (1 + (i < 3 ? i + 1 : 0));
  return right;
}

// --- pinned_and_mapped: a kernel writes host memory through its device pointer
PROGRAM(pinned_and_mapped) {
  const int n = 300;
  float *host, *device;
  CUDA(cudaHostAlloc(&host, n * sizeof(float), cudaHostAllocMapped));
  CUDA(cudaHostGetDevicePointer(&device, host, 0));
  for (int i = 0; i < n; ++i) host[i] = 1.5f;
  scale<<<2, 256>>>(n, device, 4);
  finish();
  const bool right = std::all_of(host, host + n, [](float x) { return x == 6; });
  CUDA(cudaFreeHost(host));
  return right;
}

// --- pitched_copies: rows with padding, filled, copied in and out
__global__ void add_column(float* data, std::size_t pitch, int columns) {
  float* row = reinterpret_cast<float*>(reinterpret_cast<char*>(data) + blockIdx.x * pitch);
  for (int c = threadIdx.x; c < columns; c += blockDim.x) row[c] += static_cast<float>(c);
}
PROGRAM(pitched_copies) {
  const int rows = 7, columns = 45;
  float* data;
  std::size_t pitch;
  CUDA(cudaMallocPitch(&data, &pitch, columns * sizeof(float), rows));
  CUDA(cudaMemset2D(data, pitch, 0, columns * sizeof(float), rows));
  const auto in = numbers(rows * columns);
  CUDA(cudaMemcpy2D(data, pitch, in.data(), columns * sizeof(float), columns * sizeof(float), rows - 1, cudaMemcpyHostToDevice));
  add_column<<<rows, 32>>>(data, pitch, columns);
  std::vector<float> out(rows * columns), expected = in;
  CUDA(cudaMemcpy2D(out.data(), columns * sizeof(float), data, pitch, columns * sizeof(float), rows, cudaMemcpyDeviceToHost));
  for (int i = 0; i < rows * columns; ++i) expected[i] = (i / columns < rows - 1 ? in[i] : 0) + static_cast<float>(i % columns);
  CUDA(cudaFree(data));
  return pitch >= columns * sizeof(float) && close(out, expected);
}

// --- captured_graph: a stream's work captured once and launched three times
PROGRAM(captured_graph) {
  const int n = 200;
  const auto in = numbers(n);
  Array<float> data(in);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  scale<<<1, 256, 0, stream>>>(n, data, 2);
  add<<<1, 256, 0, stream>>>(n, data, data, data);
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int round = 0; round < 3; ++round) CUDA(cudaGraphLaunch(executable, stream));
  CUDA(cudaStreamSynchronize(stream));
  auto expected = in;
  for (auto& x : expected) x *= 64;
  const bool right = close(data.host(), expected);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
  return right;
}

// --- allocations_in_a_stream: cudaMallocAsync, used and freed in order
PROGRAM(allocations_in_a_stream) {
  const int n = 256;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  std::vector<float> in = numbers(n), out(n);
  for (int round = 0; round < 3; ++round) {
    float* data;
    CUDA(cudaMallocAsync(&data, n * sizeof(float), stream));
    CUDA(cudaMemcpyAsync(data, in.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
    scale<<<1, 256, 0, stream>>>(n, data, static_cast<float>(round));
    CUDA(cudaMemcpyAsync(out.data(), data, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaFreeAsync(data, stream));
  }
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaStreamDestroy(stream));
  for (auto& x : in) x *= 2;
  return close(out, in);
}

// --- host_function: called between two kernels of a stream
PROGRAM(host_function) {
  const int n = 64;
  Array<float> data(numbers(n));
  cudaStream_t stream;
  int calls = 0;
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaStreamCreate(&stream));
  scale<<<1, 64, 0, stream>>>(n, data, 2);
  CUDA(cudaLaunchHostFunc(stream, [](void* count) { ++*static_cast<int*>(count); }, &calls));
  scale<<<1, 64, 0, stream>>>(n, data, 2);
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaStreamDestroy(stream));
  auto expected = numbers(n);
  for (auto& x : expected) x *= 4;
  return calls == 1 && close(data.host(), expected);
}

// --- attributes_and_occupancy: a block size that the runtime suggests, and what it says of device, kernel and pointer
PROGRAM(attributes_and_occupancy) {
  cudaDeviceProp properties;
  CUDA(cudaGetDeviceProperties(&properties, 0));
  cudaFuncAttributes attributes;
  CUDA(cudaFuncGetAttributes(&attributes, scale));
  int grid = 0, block = 0, warp = 0;
  CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale, 0, 0));
  CUDA(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0));
  const int n = 5000;
  const auto in = numbers(n);
  Array<float> data(in);
  scale<<<(n + block - 1) / block, block>>>(n, data, 2);
  auto expected = in;
  for (auto& x : expected) x *= 2;
  std::size_t free_bytes = 0, total_bytes = 0;
  CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  cudaPointerAttributes where;
  CUDA(cudaPointerGetAttributes(&where, static_cast<float*>(data)));
  return warp == 32 && properties.warpSize == 32 && attributes.maxThreadsPerBlock >= block && grid > 0 && free_bytes <= total_bytes &&
         where.type == cudaMemoryTypeDevice && close(data.host(), expected);
}
