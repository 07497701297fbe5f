// What you write, each in the file of its name. `in` and `out` are arrays of the host with n elements, one at least.
// Each returns how many elements of `out` it has written.
#pragma once
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>

int scan(const int* in, int* out, int n);        // out[i] = in[0] + ... + in[i - 1], and out[0] = 0
int compact(const int* in, int* out, int n);     // the elements that are not 0, in their order
int radix_sort(const int* in, int* out, int n);  // the elements from the smallest to the largest

#define CHECK(call)                                                                        \
  do {                                                                                     \
    cudaError_t status = (call);                                                           \
    if (status != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)
