// The bandwidth limit for a kernel: a streaming kernel that moves as many bytes, with float4 accesses and no other
// work. Each element of the target is the sum of several elements of the source, so that the whole source is read. A
// thread issues many loads before it adds, because each further memory latency would show in a short launch. A target
// that is far smaller, as that of a reduction, has too few elements for all threads: those without one keep their sum,
// which the compiler cannot know that they never write.
#include <cuda_runtime.h>

constexpr int STREAM_THREADS = 256;
constexpr long long LARGE = 1 << 18;  // accesses of 16 bytes: below, more blocks beat more loads in flight

__device__ float4 added(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

// Each thread computes IN_FLIGHT elements of the target and loads PARTS elements of the source for each at a time.
template <int IN_FLIGHT, int PARTS>
__global__ void __launch_bounds__(STREAM_THREADS)
    ker_stream(const float4* source, long long reads, float4* target, long long writes) {
  const long long first = static_cast<long long>(blockIdx.x) * STREAM_THREADS * IN_FLIGHT + threadIdx.x;
  float4 sum[IN_FLIGHT] = {};
  for (long long base = first; base < reads; base += PARTS * writes) {
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
#pragma unroll
      for (int k = 0; k < IN_FLIGHT; ++k) {
        const long long at = base + p * writes + k * STREAM_THREADS;
        if (at < reads && first + k * STREAM_THREADS < writes) sum[k] = added(sum[k], source[at]);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < IN_FLIGHT; ++k) {
    const long long at = first + k * STREAM_THREADS;
    if (at < writes) target[at] = sum[k];
  }
}

constexpr int LOADS = 8;  // of each thread, where there are so many for each element of the target

__global__ void __launch_bounds__(STREAM_THREADS)
    ker_stream_in(const float4* source, long long reads, float4* target, long long writes) {
  const long long first = static_cast<long long>(blockIdx.x) * STREAM_THREADS * LOADS + threadIdx.x;
  const long long thread = static_cast<long long>(blockIdx.x) * STREAM_THREADS + threadIdx.x;
  float4 part[LOADS] = {}, sum = {};
#pragma unroll
  for (int k = 0; k < LOADS; ++k)
    if (first + k * STREAM_THREADS < reads) part[k] = source[first + k * STREAM_THREADS];
#pragma unroll
  for (int k = 0; k < LOADS; ++k) sum = added(sum, part[k]);
  if (thread < writes || isnan(sum.x)) target[thread < writes ? thread : 0] = sum;
}

// Reads and writes these numbers of bytes, which must be multiples of 16.
extern "C" void launch_stream(const float4* source, long long read_bytes, float4* target, long long write_bytes,
                              cudaStream_t stream) {
  const long long reads = read_bytes / 16, writes = write_bytes / 16;
  if (reads >= LOADS * writes) {
    const unsigned blocks = static_cast<unsigned>((reads + STREAM_THREADS * LOADS - 1) / (STREAM_THREADS * LOADS));
    ker_stream_in<<<blocks, STREAM_THREADS, 0, stream>>>(source, reads, target, writes);
    return;
  }
  const bool large = writes >= LARGE;
  const long long per_block = STREAM_THREADS * (large ? 4 : 1);
  const unsigned blocks = static_cast<unsigned>((writes + per_block - 1) / per_block);
  const auto kernel = large                 ? ker_stream<4, 1>
                      : reads <= writes     ? ker_stream<1, 1>
                      : reads <= 2 * writes ? ker_stream<1, 2>
                                            : ker_stream<1, 4>;
  kernel<<<blocks, STREAM_THREADS, 0, stream>>>(source, reads, target, writes);
}
