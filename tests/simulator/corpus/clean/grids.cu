// Right: blocks that wait for each other, count each other and write what others read.
#include "../corpus.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// --- last_block_done: the last block to finish, by an atomic counter behind a fence, adds up the parts
__global__ void sum_at_once(int n, const float* in, float* parts, float* sum, unsigned* counter) {
  __shared__ float s[128];
  __shared__ bool last;
  const int t = threadIdx.x;
  float x = 0;
  for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) x += in[i];
  s[t] = x;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) {
    parts[blockIdx.x] = s[0];
    __threadfence();
    last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    float all = 0;
    const volatile float* fresh = parts;
    for (int b = 0; b < gridDim.x; ++b) all += fresh[b];
    *sum = all;
  }
}
PROGRAM(last_block_done) {
  const int n = 5000;
  const auto in = numbers(n);
  Array<float> din(in), parts(8), sum(1);
  Array<unsigned> counter(1);
  counter.zero();
  float expected = 0;
  for (const float x : in) expected += x;
  for (int round = 0; round < 2; ++round) {
    sum_at_once<<<8, 128>>>(n, din, parts, sum, counter);
    if (sum.host()[0] != expected) return false;
  }
  return true;
}

// --- flag_behind_a_fence: block 1 spins on a volatile flag that block 0 raises after a fence
__global__ void pass_on(const float* in, float* box, volatile int* flag, float* out) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    box[t] = 2 * in[t];
    __threadfence();
    __syncthreads();
    if (t == 0) *flag = 1;
  } else {
    if (t == 0) {
      while (*flag == 0) {}
      __threadfence();
    }
    __syncthreads();
    out[t] = reinterpret_cast<volatile float*>(box)[63 - t];
  }
}
PROGRAM(flag_behind_a_fence) {
  const auto in = numbers(64);
  Array<float> din(in), box(64), out(64);
  Array<int> flag(1);
  flag.zero();
  pass_on<<<2, 64>>>(din, box, flag, out);
  std::vector<float> expected(64);
  for (int i = 0; i < 64; ++i) expected[63 - i] = 2 * in[i];
  return close(out.host(), expected);
}

// --- grid_sync: a stencil over the grid, in two buffers, with a grid barrier per step
__global__ void diffuse(int n, int steps, float* a, float* b) {
  const cg::grid_group grid = cg::this_grid();
  const int i = static_cast<int>(grid.thread_rank());
  float *from = a, *to = b;
  for (int step = 0; step < steps; ++step) {
    const float left = i > 0 ? from[i - 1] : 0, right = i + 1 < n ? from[i + 1] : 0;
    to[i] = 0.5f * (left + right);
    grid.sync();
    float* swap = from;
    from = to;
    to = swap;
  }
}
PROGRAM(grid_sync) {
  int n = 512, steps = 4;
  auto expected = numbers(n);
  Array<float> a(expected), b(n);
  float *pa = a, *pb = b;
  void* arguments[] = {&n, &steps, &pa, &pb};
  CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(diffuse), dim3(4), dim3(128), arguments, 0, nullptr));
  for (int step = 0; step < steps; ++step) {
    const auto old = expected;
    for (int i = 0; i < n; ++i) expected[i] = 0.5f * ((i > 0 ? old[i - 1] : 0) + (i + 1 < n ? old[i + 1] : 0));
  }
  return close(a.host(), expected, 1e-6);
}

// --- memset_then_atomics: sums of all blocks go to zeroed memory by atomics
__global__ void column_sums(int rows, int columns, const float* in, float* sums) {
  const int c = threadIdx.x;
  if (c < columns) {
    float x = 0;
    for (int r = blockIdx.x; r < rows; r += gridDim.x) x += in[r * columns + c];
    atomicAdd(&sums[c], x);
  }
}
PROGRAM(memset_then_atomics) {
  const int rows = 40, columns = 100;
  const auto in = numbers(rows * columns);
  Array<float> din(in), sums(columns);
  sums.zero();
  column_sums<<<8, 128>>>(rows, columns, din, sums);
  std::vector<float> expected(columns);
  for (int i = 0; i < rows * columns; ++i) expected[i % columns] += in[i];
  return close(sums.host(), expected);
}

// --- lock_around_an_update: one thread per block takes a lock, with fences on both sides
__global__ void update_locked(int* lock, volatile float* total, float by) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *total = *total + by;
    __threadfence();
    atomicExch(lock, 0);
  }
}
PROGRAM(lock_around_an_update) {
  Array<int> lock(1);
  Array<float> total(1);
  lock.zero();
  total.zero();
  update_locked<<<20, 32>>>(lock, total, 3);
  return total.host()[0] == 60;
}

// --- look_back: a scan in one pass, each block waiting for the sum of its predecessors
__global__ void scan_in_one_pass(const int* in, int* out, volatile int* inclusive, volatile int* ready) {
  __shared__ int s[64];
  __shared__ int before;
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = in[i];
  for (int step = 1; step < 64; step *= 2) {
    __syncthreads();
    const int left = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += left;
  }
  __syncthreads();
  if (t == 0) {
    before = 0;
    if (blockIdx.x > 0) {
      while (ready[blockIdx.x - 1] == 0) {}
      __threadfence();
      before = inclusive[blockIdx.x - 1];
    }
    inclusive[blockIdx.x] = before + s[63];
    __threadfence();
    ready[blockIdx.x] = 1;
  }
  __syncthreads();
  out[i] = before + s[t];
}
PROGRAM(look_back) {
  const int n = 512;
  const auto in = numbers<int>(n);
  Array<int> din(in), out(n), inclusive(8), ready(8);
  ready.zero();
  scan_in_one_pass<<<8, 64>>>(din, out, inclusive, ready);
  auto expected = in;
  for (int i = 1; i < n; ++i) expected[i] += expected[i - 1];
  return close(out.host(), expected);
}

// --- ping_pong_launches: launches in one stream are ordered, so two buffers need no more
__global__ void step_right(int n, const float* from, float* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[(i + 1) % n] = from[i];
}
PROGRAM(ping_pong_launches) {
  const int n = 300;
  const auto in = numbers(n);
  Array<float> a(in), b(n);
  for (int round = 0; round < 4; ++round) {
    step_right<<<3, 128>>>(n, round % 2 ? b : a, round % 2 ? a : b);
  }
  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) expected[(i + 4) % n] = in[i];
  return close(a.host(), expected);
}

// --- event_between_streams: the second stream waits for the first one's kernel
PROGRAM(event_between_streams) {
  const int n = 300;
  const auto in = numbers(n);
  Array<float> a(in), b(n), c(n);
  cudaStream_t first, second;
  cudaEvent_t written;
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CUDA(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
  step_right<<<3, 128, 0, first>>>(n, a, b);
  CUDA(cudaEventRecord(written, first));
  CUDA(cudaStreamWaitEvent(second, written, 0));
  step_right<<<3, 128, 0, second>>>(n, b, c);
  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) expected[(i + 2) % n] = in[i];
  const bool right = close(c.host(), expected);
  CUDA(cudaEventDestroy(written));
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  return right;
}

// --- benign_duplicates: overlapping halos are computed by two blocks, and both write the same
__global__ void squares_with_overlap(int n, const float* in, float* out) {
  const int i = blockIdx.x * 112 + threadIdx.x;
  if (i < n) out[i] = in[i] * in[i];
}
PROGRAM(benign_duplicates) {
  const int n = 448;
  const auto in = numbers(n);
  Array<float> din(in), out(n);
  squares_with_overlap<<<4, 128>>>(n, din, out);
  auto expected = in;
  for (auto& x : expected) x *= x;
  return close(out.host(), expected);
}

// --- unread_tail: an output that is written in part, of which only that part is read
__global__ void first_half(int n, const float* in, float* out) {
  if (threadIdx.x < n / 2) out[threadIdx.x] = -in[threadIdx.x];
}
PROGRAM(unread_tail) {
  const int n = 128;
  const auto in = numbers(n);
  Array<float> din(in), out(n), last(n / 2);
  first_half<<<1, 128>>>(n, din, out);
  first_half<<<1, 128>>>(n, out, last);
  const auto got = last.host();
  return close(got, std::vector<float>(in.begin(), in.begin() + n / 2));
}

// --- bytes_of_two_blocks: blocks that write neighbouring bytes
__global__ void parities(int n, const int* in, unsigned char* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<unsigned char>(in[i] % 2);
}
PROGRAM(bytes_of_two_blocks) {
  const int n = 333;
  const auto in = numbers<int>(n);
  Array<int> din(in);
  Array<unsigned char> out(n);
  parities<<<10, 37>>>(n, din, out);
  const auto got = out.host();
  for (int i = 0; i < n; ++i) {
    if (got[i] != in[i] % 2) return false;
  }
  return true;
}

// --- rows_of_odd_length: blocks work in place on rows that share sectors
__global__ void normalise(int columns, float* data) {
  float* row = data + blockIdx.x * columns;
  float top = 0;
  for (int c = threadIdx.x; c < columns; c += 32) top = fmaxf(top, row[c]);
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  for (int c = threadIdx.x; c < columns; c += 32) row[c] -= top;
}
PROGRAM(rows_of_odd_length) {
  const int rows = 40, columns = 13;
  auto expected = numbers(rows * columns);
  Array<float> data(expected);
  normalise<<<rows, 32>>>(columns, data);
  for (int r = 0; r < rows; ++r) {
    float top = 0;
    for (int c = 0; c < columns; ++c) top = std::fmax(top, expected[r * columns + c]);
    for (int c = 0; c < columns; ++c) expected[r * columns + c] -= top;
  }
  return close(data.host(), expected);
}

// --- record_in_parts: a block goes on to write a sector of which it has handed over the first part
__global__ void hand_over(int n, volatile int* flag, float* record, float* out) {
  if (blockIdx.x == 0) {
    record[0] = n;
    __threadfence();
    *flag = 1;
    record[1] = 2 * n;
  } else {
    while (*flag == 0) {}
    __threadfence();
    *out = record[0];
  }
}
PROGRAM(record_in_parts) {
  Array<int> flag(1);
  flag.zero();
  Array<float> record(2), out(1);
  hand_over<<<2, 1>>>(7, flag, record, out);
  return out.host()[0] == 7 && record.host()[1] == 14;
}

// --- counter_beside_results: all blocks count in a word of the sector in which each has a word of its own
struct Tally {
  unsigned blocks;
  float squares[7];
};
__global__ void count_and_square(Tally* tally) {
  atomicAdd(&tally->blocks, 1u);
  tally->squares[blockIdx.x] = blockIdx.x * blockIdx.x;
}
PROGRAM(counter_beside_results) {
  Array<Tally> tally(1);
  tally.zero();
  count_and_square<<<7, 1>>>(tally);
  const Tally result = tally.host()[0];
  return result.blocks == 7 && result.squares[6] == 36;
}

// --- reallocated_and_written: a new buffer where a freed one was, written before it is read
PROGRAM(reallocated_and_written) {
  const int n = 300;
  const auto in = numbers(n);
  { Array<float> first(in); }
  Array<float> second(n), third(n);
  Array<float> source(in);
  step_right<<<3, 128>>>(n, source, second);
  step_right<<<3, 128>>>(n, second, third);
  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) expected[(i + 2) % n] = in[i];
  return close(third.host(), expected);
}

// --- queue_of_work: blocks take their next piece from an atomic counter, and thread 0 tells its block
__global__ void take_work(int pieces, const float* in, float* out, int* next) {
  __shared__ int piece;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) piece = atomicAdd(next, 1);
    __syncthreads();
    if (piece >= pieces) return;
    out[piece * 64 + threadIdx.x] = 3 * in[piece * 64 + threadIdx.x];
  }
}
PROGRAM(queue_of_work) {
  const int pieces = 19;
  auto expected = numbers(pieces * 64);
  Array<float> in(expected), out(pieces * 64);
  Array<int> next(1);
  next.zero();
  take_work<<<4, 64>>>(pieces, in, out, next);
  for (auto& x : expected) x *= 3;
  return close(out.host(), expected);
}

// --- lock_per_thread: all threads of all warps take the same lock, in a loop that ends when it was had
__global__ void count_locked(int* lock, volatile int* total) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *total = *total + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
PROGRAM(lock_per_thread) {
  Array<int> lock(1), total(1);
  lock.zero();
  total.zero();
  count_locked<<<2, 64>>>(lock, total);
  return total.host()[0] == 128;
}
