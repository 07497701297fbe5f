// A CUDA runtime without a device: enough for the runner, with errors that a test can plant.
#include <cstddef>
#include <cstdint>
namespace {
int pending = 0;
std::uintptr_t streams = 0;
}
extern "C" {
void plant_error(int code) { pending = code; }
int cudaGetLastError() { int code = pending; pending = 0; return code; }
int cudaDeviceSynchronize() { return 0; }
const char* cudaGetErrorName(int code) { return code == 700 ? "cudaErrorIllegalAddress" : "cudaErrorUnknown"; }
const char* cudaGetErrorString(int) { return "an illegal memory access was encountered"; }
int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  if (flags != 1) return 1;
  *stream = reinterpret_cast<void*>(++streams);
  return 0;
}
}
