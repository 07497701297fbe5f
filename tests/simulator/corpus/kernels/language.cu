// What the language offers on the device: functions, memory of each kind, printf, assert, malloc.
#include "../corpus.h"

#include <unistd.h>

#include <cassert>

// --- recursion: a function that calls itself, and two that call each other
__device__ __noinline__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__global__ void recurse(int* out) {
  const int t = threadIdx.x;
  out[t] = ackermann(t % 3, t % 4) * 10 + even(t);
}
PROGRAM(recursion) {
  CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
  Array<int> out(32);
  recurse<<<1, 32>>>(out);
  std::vector<int> expected(32);
  for (int t = 0; t < 32; ++t) expected[t] = (t % 3 == 0 ? t % 4 + 1 : t % 3 == 1 ? t % 4 + 2 : 2 * (t % 4) + 3) * 10 + (t % 2 == 0);
  return close(out.host(), expected);
}

// --- function_pointers: a table of functions in device memory
using Operation = float (*)(float, float);
__device__ float add(float a, float b) { return a + b; }
__device__ float subtract(float a, float b) { return a - b; }
__device__ float multiply(float a, float b) { return a * b; }
__device__ Operation operations[] = {add, subtract, multiply};
__global__ void apply(const float* in, float* out) {
  const int t = threadIdx.x;
  out[t] = operations[t % 3](in[t], in[(t + 1) % 32]);
}
PROGRAM(function_pointers) {
  const auto in = numbers(32);
  Array<float> din(in), out(32);
  apply<<<1, 32>>>(din, out);
  std::vector<float> expected(32);
  for (int t = 0; t < 32; ++t) {
    const float a = in[t], b = in[(t + 1) % 32];
    expected[t] = t % 3 == 0 ? a + b : t % 3 == 1 ? a - b : a * b;
  }
  return close(out.host(), expected);
}

// --- virtual_functions: objects made on the device
struct Shape {
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Rectangle : Shape {
  float a, b;
  __device__ Rectangle(float x, float y) : a(x), b(y) {}
  __device__ float area() const override { return a * b; }
};
__global__ void areas(float* out) {
  const int t = threadIdx.x;
  const Square square(static_cast<float>(t));
  const Rectangle rectangle(2, static_cast<float>(t));
  const Shape* shapes[] = {&square, &rectangle};
  out[t] = shapes[(t / 3) % 2]->area();
}
PROGRAM(virtual_functions) {
  Array<float> out(32);
  areas<<<1, 32>>>(out);
  std::vector<float> expected(32);
  for (int t = 0; t < 32; ++t) expected[t] = static_cast<float>((t / 3) % 2 ? 2 * t : t * t);
  return close(out.host(), expected);
}

// --- local_arrays: arrays of a thread, indexed by what it reads
__global__ void sort_own(const int* in, int* out) {
  int list[16];
  for (int i = 0; i < 16; ++i) {
    const int x = in[threadIdx.x * 16 + i];
    int at = i;
    while (at > 0 && list[at - 1] > x) {
      list[at] = list[at - 1];
      --at;
    }
    list[at] = x;
  }
  for (int i = 0; i < 16; ++i) out[threadIdx.x * 16 + i] = list[i];
}
PROGRAM(local_arrays) {
  auto expected = numbers<int>(64 * 16, 1000);
  Array<int> in(expected), out(64 * 16);
  sort_own<<<1, 64>>>(in, out);
  for (int t = 0; t < 64; ++t) {
    for (int i = t * 16; i < t * 16 + 16; ++i) {
      for (int j = i; j > t * 16 && expected[j - 1] > expected[j]; --j) std::swap(expected[j - 1], expected[j]);
    }
  }
  return close(out.host(), expected);
}

// --- dynamic_shared_memory: more than 48 KiB, asked for, beside static arrays
__global__ void through_shared(int n, const float* in, float* out) {
  extern __shared__ float buffer[];
  __shared__ float last[2];
  for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = in[i];
  if (threadIdx.x < 2) last[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = buffer[n - 1 - i] + last[i % 2];
}
PROGRAM(dynamic_shared_memory) {
  const int n = 20000, bytes = n * static_cast<int>(sizeof(float));
  const auto in = numbers(n);
  Array<float> din(in), out(n);
  CUDA(cudaFuncSetAttribute(through_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  through_shared<<<1, 512, bytes>>>(n, din, out);
  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) expected[i] = in[n - 1 - i] + in[i % 2];
  return close(out.host(), expected);
}

// --- variables_of_the_device: __constant__ and __device__, initialised, written and read from both sides
struct Settings {
  float scale;
  int offset[3];
};
__constant__ Settings settings = {2, {1, 2, 3}};
__device__ int counter = 100;
__device__ double table[4] = {0.5, 1.5, 2.5, 3.5};
__global__ void use_variables(float* out) {
  const int t = threadIdx.x;
  out[t] = settings.scale * t + settings.offset[t % 3] + static_cast<float>(table[t % 4]);
  atomicAdd(&counter, t);
}
PROGRAM(variables_of_the_device) {
  Array<float> out(32);
  use_variables<<<1, 32>>>(out);
  auto first = out.host();
  const Settings changed = {10, {7, 8, 9}};
  const double entry = 99;
  CUDA(cudaMemcpyToSymbol(settings, &changed, sizeof changed));
  CUDA(cudaMemcpyToSymbol(table, &entry, sizeof entry, 2 * sizeof entry));
  use_variables<<<1, 32>>>(out);
  const auto second = out.host();
  int count = 0;
  CUDA(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  std::vector<float> expected_first(32), expected_second(32);
  for (int t = 0; t < 32; ++t) {
    expected_first[t] = 2.0f * t + 1 + t % 3 + 0.5f + t % 4;
    expected_second[t] = 10.0f * t + 7 + t % 3 + (t % 4 == 2 ? 99 : 0.5f + t % 4);
  }
  return close(first, expected_first) && close(second, expected_second) && count == 100 + 2 * 31 * 16;
}

// --- printing: integers, reals, text, widths, a percent sign
__global__ void print() {
  if (threadIdx.x == 1) printf("thread %d: %5.2f %s %u%% %lld %c %x\n", threadIdx.x, 3.14159, "text", 7u, 1ll << 40, 'z', 255);
}
PROGRAM(printing) {
  std::fflush(stdout);
  const int terminal = dup(1);
  std::FILE* file = std::tmpfile();
  dup2(fileno(file), 1);
  print<<<1, 32>>>();
  finish();
  std::fflush(stdout);
  dup2(terminal, 1);
  close(terminal);
  char text[100] = {};
  std::rewind(file);
  const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  std::printf("%s", text);
  return length > 0 && std::strcmp(text, "thread 1:  3.14 text 7% 1099511627776 z ff\n") == 0;
}

// --- asserting: conditions that hold
__global__ void assert_order(const int* in) { assert(in[threadIdx.x] >= 0 && in[threadIdx.x] < 16); }
PROGRAM(asserting) {
  Array<int> in(numbers<int>(64));
  assert_order<<<1, 64>>>(in);
  finish();
  return true;
}

// --- device_malloc: linked lists of the threads' own, freed by them
struct Node {
  int value;
  Node* next;
};
__global__ void lists(int* out) {
  Node* first = nullptr;
  for (int i = 0; i <= threadIdx.x % 5; ++i) {
    Node* node = static_cast<Node*>(malloc(sizeof(Node)));
    if (!node) return;
    *node = {i * static_cast<int>(threadIdx.x), first};
    first = node;
  }
  int sum = 0;
  while (first) {
    Node* next = first->next;
    sum += first->value;
    free(first);
    first = next;
  }
  out[threadIdx.x] = sum;
}
PROGRAM(device_malloc) {
  Array<int> out(64);
  lists<<<1, 64>>>(out);
  std::vector<int> expected(64);
  for (int t = 0; t < 64; ++t) expected[t] = t * (t % 5) * (t % 5 + 1) / 2;
  return close(out.host(), expected);
}

// --- lambdas_and_structs: a functor by value, a struct of 40 bytes as an argument and as a result
struct Wide {
  double a;
  float b[4];
  char c;
  long long d;
};
__device__ __noinline__ Wide shift(Wide w, int by) {
  w.a += by;
  for (float& x : w.b) x *= static_cast<float>(by);
  w.d -= by;
  return w;
}
template <class F>
__global__ void map(Wide w, double* out, F f) {
  const Wide r = shift(w, static_cast<int>(threadIdx.x));
  out[threadIdx.x] = f(r.a + r.b[0] + r.b[3] + r.c + static_cast<double>(r.d));
}
struct Halve {
  double by;
  __device__ double operator()(double x) const { return x / by; }
};
PROGRAM(lambdas_and_structs) {
  Array<double> out(32);
  map<<<1, 32>>>(Wide{1.5, {1, 2, 3, 4}, 'A', 1ll << 40}, out, Halve{2});
  std::vector<double> expected(32);
  for (int t = 0; t < 32; ++t) expected[t] = (1.5 + t + t + 4 * t + 'A' + static_cast<double>((1ll << 40) - t)) / 2;
  return close(out.host(), expected);
}

// --- clocks: time goes on, and nanosleep ends
__global__ void clocks(int* out) {
  const long long before = clock64();
  const unsigned start = clock();
  __nanosleep(100);
  out[threadIdx.x] = clock64() > before && clock() != start;
}
PROGRAM(clocks) {
  Array<int> out(32);
  clocks<<<1, 32>>>(out);
  return close(out.host(), std::vector<int>(32, 1));
}

// --- divergent_loops: breaks, continues, nested loops and a switch, each lane with its own
__global__ void wander(const int* in, int* out) {
  int x = in[threadIdx.x], steps = 0;
  for (int i = 0; i < 100; ++i) {
    if (x == 1) break;
    switch (x % 4) {
      case 0: x /= 4; break;
      case 2: x /= 2; continue;
      default:
        x = 3 * x + 1;
        for (int j = 0; j < x % 3; ++j) steps += 100;
    }
    ++steps;
  }
  out[threadIdx.x] = steps;
}
PROGRAM(divergent_loops) {
  auto in = numbers<int>(96, 200);
  Array<int> din(in), out(96);
  wander<<<1, 96>>>(din, out);
  std::vector<int> expected(96);
  for (int t = 0; t < 96; ++t) {
    int x = in[t];
    for (int i = 0; i < 100 && x != 1; ++i) {
      if (x % 4 == 2) {
        x /= 2;
        continue;
      }
      if (x % 4 == 0) {
        x /= 4;
      } else {
        x = 3 * x + 1;
        expected[t] += 100 * (x % 3);
      }
      ++expected[t];
    }
  }
  return close(out.host(), expected);
}
