// An exclusive scan in device memory, in place: each block scans its part, and the totals of blocks are scanned in
// turn.
#pragma once
#include "operations.h"

constexpr int BLOCK = 256;

static int blocks_of(int n) { return (n + BLOCK - 1) / BLOCK; }

static __global__ void scan_parts(int* data, int* totals, int n) {
  __shared__ int sums[BLOCK];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  int own = i < n ? data[i] : 0;
  sums[threadIdx.x] = own;
  __syncthreads();
  for (int stride = 1; stride < BLOCK; stride *= 2) {
    int before = threadIdx.x >= stride ? sums[threadIdx.x - stride] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  if (i < n) data[i] = sums[threadIdx.x] - own;
  if (threadIdx.x == BLOCK - 1) totals[blockIdx.x] = sums[threadIdx.x];
}

static __global__ void add_before(int* data, const int* before, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) data[i] += before[blockIdx.x];
}

static void exclusive(int* data, int n) {
  int blocks = blocks_of(n), *totals;
  CHECK(cudaMalloc(&totals, blocks * sizeof(int)));
  scan_parts<<<blocks, BLOCK>>>(data, totals, n);
  CHECK(cudaGetLastError());
  if (blocks > 1) {
    exclusive(totals, blocks);
    add_before<<<blocks, BLOCK>>>(data, totals, n);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaFree(totals));
}
