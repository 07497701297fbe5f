// The same by thrust, whose memory is that of its vectors.
#include <thrust/copy.h>
#include <thrust/device_vector.h>

#include "operations.h"

struct IsKept {
  __host__ __device__ bool operator()(int value) const { return value != 0; }
};

int compact(const int* in, int* out, int n) {
  thrust::device_vector<int> data(in, in + n), kept(n);
  auto end = thrust::copy_if(data.begin(), data.end(), kept.begin(), IsKept());
  thrust::copy(kept.begin(), end, out);
  return end - kept.begin();
}
