// The shape in __constant__ memory, copied on the stream; what is visible as packed bits in memory that calls keep.
#include <cuda_runtime.h>

struct Shape {
  int rows, per_mask, queries, keys;
  bool future;
};

__constant__ Shape shape;

__global__ void __launch_bounds__(1024) softmax(float* inp, const float* mask, unsigned* packed) {
  const int lane = threadIdx.x % 32, row = blockIdx.x * 32 + threadIdx.x / 32, keys = shape.keys;
  if (row >= shape.rows) return;
  unsigned* bits = packed + (size_t)row * ((keys + 31) / 32);
  float* x = inp + (size_t)row * keys;
  const float* added = mask ? mask + (size_t)(row / shape.per_mask) * keys : nullptr;
  const auto logit = [=](int j) { return x[j] + (added ? added[j] : 0.0f); };
  float largest = -INFINITY, sum = 0.0f;
  for (int base = 0; base < keys; base += 32) {
    const int j = base + lane;
    const bool visible = j < keys && (!shape.future || j <= row % shape.queries);
    const unsigned all = __ballot_sync(0xffffffff, visible);
    if (lane == base / 32 % 32) bits[base / 32] = all;
    if (visible) largest = fmaxf(largest, logit(j));
  }
  __syncwarp();  // so that all lanes see the bits, for no shuffle orders memory
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, offset));
  for (int j = lane; j < keys; j += 32)
    if (bits[j / 32] >> lane & 1) sum += __expf(logit(j) - largest);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  for (int j = lane; j < keys; j += 32) x[j] = bits[j / 32] >> lane & 1 ? __expf(logit(j) - largest) / sum : 0.0f;
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  static unsigned* packed = nullptr;
  static size_t held = 0;
  const Shape given{batch_size * nhead * from_len, nhead * from_len, from_len, to_len, mask_future};
  const size_t bytes = sizeof(unsigned) * given.rows * ((to_len + 31) / 32);
  if (bytes > held) {
    cudaFree(packed);
    cudaMalloc(&packed, bytes);
    held = bytes;
  }
  cudaMemcpyToSymbolAsync(shape, &given, sizeof given, 0, cudaMemcpyHostToDevice, stream);
  softmax<<<(given.rows + 31) / 32, 1024, 0, stream>>>(inp, attn_mask, packed);
}
