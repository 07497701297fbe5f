#include <cuda_runtime.h>

__global__ void ker_step(float* __restrict__ to, const float* __restrict__ from, float rate, int rows, int columns) {
  const int c = blockIdx.x * 64 + threadIdx.x, r = blockIdx.y * 4 + threadIdx.y;
  if (c >= columns || r >= rows) return;
  const size_t i = (size_t)r * columns + c;
  float v = from[i];
  if (r > 0 && r + 1 < rows && c > 0 && c + 1 < columns)
    v = fmaf(rate, (from[i - columns] + from[i + columns]) + (from[i - 1] + from[i + 1]) - 4 * v, v);
  to[i] = v;
}

extern "C" void launch_stencil(float* after, const float* before, float rate, int rows, int columns, int steps,
                               cudaStream_t stream) {
  float* other = nullptr;
  cudaMallocAsync(&other, size_t(rows) * columns * 4, stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  const dim3 grid((columns + 63) / 64, (rows + 3) / 4), block(64, 4);
  const float* from = before;
  for (int s = 0; s < steps; ++s) {
    float* to = (steps - s) % 2 ? after : other;
    ker_step<<<grid, block, 0, stream>>>(to, from, rate, rows, columns);
    from = to;
  }
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, stream);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaFreeAsync(other, stream);
}
