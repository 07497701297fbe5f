#include <cuda_runtime.h>

struct Plan {};

extern "C" Plan *plan_sums(int rows, int n, cudaStream_t stream) { return nullptr; }

extern "C" void run_sums(Plan *plan, int *sums, const int *x, cudaStream_t stream) {}

extern "C" void free_sums(Plan *plan) {}
