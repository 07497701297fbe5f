#include <cuda_runtime.h>

__global__ void attention_rows(float *inp, const float *mask, int rows, int nhead, int from_len, int to_len,
                               bool mask_future) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    int query = row % from_len;
    int batch = row / from_len / nhead;
    size_t first = (size_t)row * to_len;
    float biggest = -INFINITY;
    for (int key = 0; key < to_len; key++) {
      if (mask) inp[first + key] += mask[batch * to_len + key];
      if (mask_future && key > query) inp[first + key] = -INFINITY;
      biggest = fmaxf(biggest, inp[first + key]);
    }
    float sum = 0.0f;
    for (int key = 0; key < to_len; key++) {
      float power = biggest == -INFINITY ? 0.0f : expf(inp[first + key] - biggest);
      inp[first + key] = power;
      sum += power;
    }
    for (int key = 0; key < to_len; key++) {
      inp[first + key] /= sum + 1e-8f;
    }
  }
}

extern "C" void launch_attn_softmax(float *inp, const float *attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  int rows = batch_size * nhead * from_len;
  attention_rows<<<(rows + 63) / 64, 64, 0, stream>>>(inp, attn_mask, rows, nhead, from_len, to_len, mask_future);
}

__global__ void gradient_rows(float *out_grad, const float *soft, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float dot = 0.0f;
    for (int i = 0; i < n; i++) dot += out_grad[(size_t)row * n + i] * soft[(size_t)row * n + i];
    for (int i = 0; i < n; i++) {
      size_t at = (size_t)row * n + i;
      out_grad[at] = soft[at] * (out_grad[at] - dot);
    }
  }
}

extern "C" void launch_attn_softmax_bw(float *out_grad, const float *soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  gradient_rows<<<(rows + 63) / 64, 64, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
