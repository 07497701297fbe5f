#include <cuda_runtime.h>

__device__ float over(int colour, int behind, int alpha) {
  return (colour * alpha + behind * (255 - alpha)) / 65025.0f;
}

__global__ void ker_pixels(float4* mixed, int4* difference, const uchar4* front, const uchar3* behind, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uchar4 f = front[i];
  const uchar3 b = behind[i];
  mixed[i] = make_float4(over(f.x, b.x, f.w), over(f.y, b.y, f.w), over(f.z, b.z, f.w), f.w / 255.0f);
  const int3 d = make_int3(f.x - b.x, f.y - b.y, f.z - b.z);
  difference[i] = make_int4(d.x, d.y, d.z, d.x + d.y + d.z);
}

extern "C" void launch_pixels(float4* mixed, int4* difference, const uchar4* front, const uchar3* behind, int n,
                              cudaStream_t stream) {
  ker_pixels<<<(n + 255) / 256, 256, 0, stream>>>(mixed, difference, front, behind, n);
}
