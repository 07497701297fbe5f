// The course's main: sgemm A.raw B.raw C.raw M N K CALLS, with 32-bit floats, row by row. It calls sgemm CALLS times,
// with -A in place of A from one call to the next, writes what the last call left, and prints the time of all calls.
#include <chrono>
#include <vector>

#include "sgemm.h"

__global__ void negate(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = -a[i];
}

static std::FILE* opened(const char* path, const char* how) {
  std::FILE* file = std::fopen(path, how);
  if (file == nullptr) {
    std::perror(path);
    std::exit(2);
  }
  return file;
}

static float* read(const char* path, size_t n) {
  std::vector<float> host(n);
  std::FILE* file = opened(path, "rb");
  if (std::fread(host.data(), sizeof(float), n, file) != n) {
    std::fprintf(stderr, "%s: too short\n", path);
    std::exit(2);
  }
  std::fclose(file);
  float* device;
  CHECK(cudaMalloc(&device, n * sizeof(float)));
  CHECK(cudaMemcpy(device, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

int main(int count, char** words) {
  if (count != 8) {
    std::fprintf(stderr, "usage: %s A.raw B.raw C.raw M N K CALLS\n", words[0]);
    return 2;
  }
  int m = std::atoi(words[4]), n = std::atoi(words[5]), k = std::atoi(words[6]), calls = std::atoi(words[7]);
  float *a = read(words[1], size_t(m) * k), *b = read(words[2], size_t(k) * n), *c;
  std::vector<float> host(size_t(m) * n);
  CHECK(cudaMalloc(&c, host.size() * sizeof(float)));

  auto begin = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) {
    if (call > 0) negate<<<(m * k + 255) / 256, 256>>>(a, m * k);
    sgemm(a, b, c, m, n, k);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaDeviceSynchronize());
  std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  std::printf("%d products in %.4f ms\n", calls, time.count());

  CHECK(cudaMemcpy(host.data(), c, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  std::FILE* file = opened(words[3], "wb");
  std::fwrite(host.data(), sizeof(float), host.size(), file);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  return std::fclose(file) == 0 ? 0 : 2;
}
