// The places are counted on the device, by one thread.
#include <cuda_runtime.h>

struct Queue {
  int *counts;
  int *numbers;
};

__global__ void move(int *numbers, int *other, const int *count, int n, bool in) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (in) numbers[*count + i] = other[i];
    else other[i] = numbers[*count + i];
  }
}

__global__ void count_up(int *count, int n) { *count += n; }

extern "C" void *make_queue(int batches, int n, cudaStream_t stream) {
  Queue *queue = new Queue;
  cudaMalloc(&queue->counts, 2 * sizeof(int));
  cudaMalloc(&queue->numbers, (size_t)batches * n * sizeof(int));
  cudaMemsetAsync(queue->counts, 0, 2 * sizeof(int), stream);
  return queue;
}

extern "C" void push(void *queue, const int *numbers, int n, cudaStream_t stream) {
  Queue *known = (Queue *)queue;
  move<<<32, 128, 0, stream>>>(known->numbers, const_cast<int *>(numbers), known->counts, n, true);
  count_up<<<1, 1, 0, stream>>>(known->counts, n);
}

extern "C" void pop(void *queue, int *taken, int n, cudaStream_t stream) {
  Queue *known = (Queue *)queue;
  move<<<32, 128, 0, stream>>>(known->numbers, taken, known->counts + 1, n, false);
  count_up<<<1, 1, 0, stream>>>(known->counts + 1, n);
}

extern "C" void free_queue(void *queue) {
  Queue *known = (Queue *)queue;
  cudaFree(known->counts);
  cudaFree(known->numbers);
  delete known;
}
