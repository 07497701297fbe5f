// One block walks over the array, part after part, and carries the sum of all before.
#include "operations.h"

static __global__ void walk(const int* in, int* out, int n) {
  __shared__ int warps[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, carried = 0;
  for (int begin = 0; begin < n; begin += 1024) {
    int i = begin + threadIdx.x, own = i < n ? in[i] : 0, sum = own;
    for (int stride = 1; stride < 32; stride *= 2) {
      int other = __shfl_up_sync(~0u, sum, stride);
      if (lane >= stride) sum += other;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      int total = warps[lane];
      for (int stride = 1; stride < 32; stride *= 2) {
        int other = __shfl_up_sync(~0u, total, stride);
        if (lane >= stride) total += other;
      }
      warps[lane] = total;
    }
    __syncthreads();
    int before = carried + (warp > 0 ? warps[warp - 1] : 0);
    if (i < n) out[i] = before + sum - own;
    carried += warps[31];
    __syncthreads();
  }
}

int scan(const int* in, int* out, int n) {
  int* data;
  CHECK(cudaMalloc(&data, 2 * n * sizeof(int)));
  CHECK(cudaMemcpy(data, in, n * sizeof(int), cudaMemcpyHostToDevice));
  walk<<<1, 1024>>>(data, data + n, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out, data + n, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(data));
  return n;
}
