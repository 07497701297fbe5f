// The course's main: OPERATION IN.raw OUT.raw, with 32-bit integers. It prints the time of the operation.
#include <chrono>
#include <vector>

#include "operations.h"

static std::FILE* opened(const char* path, const char* how) {
  std::FILE* file = std::fopen(path, how);
  if (file == nullptr) {
    std::perror(path);
    std::exit(2);
  }
  return file;
}

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s IN.raw OUT.raw\n", words[0]);
    return 2;
  }
  std::FILE* file = opened(words[1], "rb");
  std::fseek(file, 0, SEEK_END);
  std::vector<int> in(std::ftell(file) / sizeof(int)), out(in.size());
  std::rewind(file);
  if (std::fread(in.data(), sizeof(int), in.size(), file) != in.size()) return 2;
  std::fclose(file);

  CHECK(cudaFree(nullptr));  // CUDA starts before the clock does
  const bool large = in.size() > (1 << 20);
  if (large) OPERATION(in.data(), out.data(), 4096);  // and the kernels are loaded
  int written = 0;
  for (int call = 0; call < (large ? 5 : 1); ++call) {
    auto begin = std::chrono::steady_clock::now();
    written = OPERATION(in.data(), out.data(), static_cast<int>(in.size()));
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    std::printf("%d elements in %.4f ms\n", written, time.count());
  }

  if (written < 0 || written > static_cast<int>(out.size())) {
    std::fprintf(stderr, "it says that it wrote %d elements\n", written);
    return 3;
  }
  file = opened(words[2], "wb");
  std::fwrite(out.data(), sizeof(int), written, file);
  return std::fclose(file) == 0 ? 0 : 2;
}
