// What the programs of the corpus share. A file holds several; `./file NAME` runs one, which ends with 0 and prints
// `ok NAME` if its result is right. `./file NAME FILE` also writes what the program copies to the host there.
//
// Sources are read by corpus.py: a line `// --- NAME: what` begins a program; in bugs/, `// BUG tool kind` ends each line
// that a finding may name (both lines of a race), with `, in host code` where no line of a kernel is at fault;
// `// ALSO tool kind` marks what else is true of the same bug.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#define CUDA(call) expect_success(call, __FILE__, __LINE__)

inline void expect_success(cudaError_t error, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::printf("%s:%d: %s\n", file, line, cudaGetErrorString(error));
  std::exit(1);
}

// Waits for the kernels launched so far; ends the program if one failed.
inline void finish() {
  CUDA(cudaGetLastError());
  CUDA(cudaDeviceSynchronize());
}

inline std::FILE* outputs = nullptr;

// One record: r (real numbers) or b (other bytes), bytes of an element, elements, content.
template <class T>
void keep(const std::vector<T>& values) {
  const std::uint64_t header[] = {std::is_floating_point_v<T> ? 'r' : 'b', sizeof(T), values.size()};
  std::fwrite(header, sizeof header, 1, outputs);
  std::fwrite(values.data(), sizeof(T), values.size(), outputs);
}

template <class T>
class Array {  // of device memory
 public:
  explicit Array(std::size_t size) : size_(size) { CUDA(cudaMalloc(&data_, size * sizeof(T))); }
  explicit Array(const std::vector<T>& host) : Array(host.size()) {
    CUDA(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(data_); }

  void zero() { CUDA(cudaMemset(data_, 0, size_ * sizeof(T))); }
  std::vector<T> host() const {
    std::vector<T> host(size_);
    finish();
    CUDA(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    if (outputs) keep(host);
    return host;
  }
  operator T*() const { return data_; }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

// Small whole numbers in no order, so that sums in float are exact whatever their order.
template <class T = float>
std::vector<T> numbers(std::size_t count, unsigned below = 16) {
  std::vector<T> list(count);
  std::uint32_t state = 12345;
  for (auto& x : list) x = static_cast<T>(static_cast<int>((state = state * 1664525u + 1013904223u) >> 16) % static_cast<int>(below));
  return list;
}

template <class T>
bool close(const std::vector<T>& got, const std::vector<T>& expected, double tolerance = 0) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double g = static_cast<double>(got[i]), e = static_cast<double>(expected[i]);
    if (std::fabs(g - e) <= tolerance * std::fmax(1.0, std::fabs(e))) continue;
    std::printf("at %zu: got %.17g, expected %.17g\n", i, g, e);
    return false;
  }
  return got.size() == expected.size();
}

struct Program {
  Program(const char* name_, bool (*run_)()) : name(name_), run(run_), next(first) { first = this; }
  const char* name;
  bool (*run)();
  Program* next;
  inline static Program* first = nullptr;
};

#define PROGRAM(name)                                    \
  static bool name##_run();                              \
  static Program name##_program(#name, name##_run);      \
  static bool name##_run()

int main(int argc, char** argv) {
  for (const Program* program = Program::first; program; program = program->next) {
    if (argc < 2 || std::strcmp(argv[1], program->name) != 0) continue;
    if (argc > 2) outputs = std::fopen(argv[2], "wb");
    const bool right = program->run();
    if (outputs) std::fclose(outputs);
    std::printf("%s %s\n", right ? "ok" : "wrong", program->name);
    return right ? 0 : 1;
  }
  return 2;
}
