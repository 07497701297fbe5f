// One block walks over the vector; a tree in shared memory.
#include <cuda_runtime.h>

__global__ void ker(int* place, const float* x, int n) {
  __shared__ float numbers[1024];
  __shared__ int places[1024];
  float number = 0.0f;
  int best = n;
  for (long i = threadIdx.x; i < n; i += 1024) {
    if (best == n || x[i] > number) {
      number = x[i];
      best = i;
    }
  }
  numbers[threadIdx.x] = number;
  places[threadIdx.x] = best;
  __syncthreads();
  for (int half = 512; half > 0; half /= 2) {
    const int other = threadIdx.x + half;
    if (threadIdx.x < half && places[other] < n &&
        (numbers[other] > numbers[threadIdx.x] ||
         (numbers[other] == numbers[threadIdx.x] && places[other] < places[threadIdx.x]) || places[threadIdx.x] == n)) {
      numbers[threadIdx.x] = numbers[other];
      places[threadIdx.x] = places[other];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *place = places[0];
}

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  ker<<<1, 1024, 0, stream>>>(place, x, n);
}
