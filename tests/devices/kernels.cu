// Kernels and launchers for the sim: right, and wrong in each way that the device must name.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

__global__ void scale(float* out, const float* in, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * in[i];
}
__global__ void strided(float* out, const float* in, int n) {
  const int i = threadIdx.x * 32 % n;
  out[i] = in[i];
}
__global__ void beyond(float* out, int n) { out[n + threadIdx.x] = 1; }
__global__ void wrapped(float* out, int n) { out[n * n + threadIdx.x] = 1; }
__global__ void add(float* out, int n) { if (threadIdx.x < n) out[threadIdx.x] += 1; }
__global__ void spin(volatile float* out) { while (out[0] != 7) {} }
__global__ void shout(float* out) { printf("a line of a thread that has a lot to say: %d\n", threadIdx.x); *out = 1; }
__global__ void say(float* out) { printf("thread %d\n", threadIdx.x); *out = 1; }
__global__ void say_nothing(float* out) { *out = 1; }
__constant__ int kept;
__global__ void scale_kept(float* out, const float* in, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kept) out[i] = factor * in[i];
}
__global__ void scale_by(float* out, const float* in, int n, const float* factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = *factor * in[i];
}

extern "C" {
void launch_too_large(float* out, int n, cudaStream_t stream) {
  float* scratch = nullptr;
  cudaMallocAsync(&scratch, size_t{1} << 40, stream);
  cudaMemcpyAsync(out, scratch, n * sizeof(float), cudaMemcpyDeviceToDevice, stream);
}
void launch_leaking(float* out, int n, cudaStream_t stream) {
  float* scratch;
  cudaMallocAsync(&scratch, n, stream);
  say_nothing<<<1, 1, 0, stream>>>(out);
}
void launch_keeping(float* out, int n, cudaStream_t stream) {
  static float* kept = nullptr;
  static int size = 0;
  if (n > size) {
    cudaFree(kept);
    cudaMalloc(&kept, n);
    size = n;
  }
  say_nothing<<<1, 1, 0, stream>>>(out);
}
void launch_scale(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  scale<<<(n + 63) / 64, 64, 0, stream>>>(out, in, n, factor);
}
void launch_scale_on_the_first_stream(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  static const cudaStream_t first = stream;
  scale<<<(n + 63) / 64, 64, 0, first>>>(out, in, n, factor);
}
void launch_scale_kept(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  cudaMemcpyToSymbol(kept, &n, sizeof n);
  scale_kept<<<(n + 63) / 64, 64, 0, stream>>>(out, in, factor);
}
void launch_scale_kept_in_order(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  cudaMemcpyToSymbolAsync(kept, &n, sizeof n, 0, cudaMemcpyHostToDevice, stream);
  scale_kept<<<(n + 63) / 64, 64, 0, stream>>>(out, in, factor);
}
// The factor lies where the host may change it until the kernel has run.
void launch_scale_pinned(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  static float* pinned = nullptr;
  if (pinned == nullptr) cudaMallocHost(&pinned, sizeof(float));
  *pinned = factor;
  scale_by<<<(n + 63) / 64, 64, 0, stream>>>(out, in, n, pinned);
}
// There is room for the factors of the last four calls.
void launch_scale_of_four(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  static float* ring = nullptr;
  static int turn = 0;
  if (ring == nullptr) cudaMallocHost(&ring, 4 * sizeof(float));
  float* mine = ring + turn++ % 4;
  *mine = factor;
  scale_by<<<(n + 63) / 64, 64, 0, stream>>>(out, in, n, mine);
}
// A call with the arrays of the last one is taken for the same call.
void launch_scale_once(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  static const float *last_out = nullptr, *last_in = nullptr;
  static float* kept = nullptr;
  if (kept == nullptr) cudaMalloc(&kept, 1 << 20);
  if (out != last_out || in != last_in) cudaMemcpyAsync(kept, in, n * sizeof(float), cudaMemcpyDeviceToDevice, stream);
  last_out = out;
  last_in = in;
  scale<<<(n + 63) / 64, 64, 0, stream>>>(out, kept, n, factor);
}
void launch_ordered(float* out, const float* in, int n, cudaStream_t first, cudaStream_t second) {
  static float* scratch = nullptr;
  if (scratch == nullptr) cudaMalloc(&scratch, 1 << 20);
  cudaEvent_t done;
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  scale<<<(n + 63) / 64, 64, 0, first>>>(scratch, in, n, 2);
  cudaEventRecord(done, first);
  cudaStreamWaitEvent(second, done, 0);
  scale<<<(n + 63) / 64, 64, 0, second>>>(out, scratch, n, 3);
  cudaEventDestroy(done);
}
void launch_unordered(float* out, const float* in, int n, cudaStream_t first, cudaStream_t second) {
  static float* scratch = nullptr;
  if (scratch == nullptr) cudaMalloc(&scratch, 1 << 20);
  scale<<<(n + 63) / 64, 64, 0, first>>>(scratch, in, n, 2);
  scale<<<(n + 63) / 64, 64, 0, second>>>(out, scratch, n, 3);
}
void launch_host(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  float *device_out, *device_in;
  cudaMalloc(&device_out, n * sizeof(float));
  cudaMalloc(&device_in, n * sizeof(float));
  cudaMemcpy(device_in, in, n * sizeof(float), cudaMemcpyHostToDevice);
  scale<<<(n + 63) / 64, 64, 0, stream>>>(device_out, device_in, n, factor);
  cudaStreamSynchronize(stream);
  cudaMemcpy(out, device_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(device_out);
  cudaFree(device_in);
}
// Returns while the result is on its way to where it belongs.
void launch_host_later(float* out, const float* in, int n, float factor, cudaStream_t stream) {
  static std::vector<float> result;
  result.resize(n);
  launch_host(result.data(), in, n, factor, stream);
  cudaLaunchHostFunc(stream, [](void* target) { std::copy(result.begin(), result.end(), static_cast<float*>(target)); }, out);
}
void launch_strided(float* out, const float* in, int n) { strided<<<1, 32>>>(out, in, n); }
void launch_beyond(float* out, int n) { beyond<<<1, 1>>>(out, n); }
void launch_wrapped(float* out, int n) { wrapped<<<1, 32>>>(out, n); }
void launch_put_back(float* out, float* in, int n, cudaStream_t stream) {
  cudaMemcpyAsync(out, in, n * sizeof *in, cudaMemcpyDeviceToDevice, stream);
  cudaMemsetAsync(in, 0, n * sizeof *in, stream);
  cudaMemcpyAsync(in, out, n * sizeof *in, cudaMemcpyDeviceToDevice, stream);
}
void launch_add(float* out, int n) { add<<<1, 32>>>(out, n); }
void launch_spin(float* out) { spin<<<1, 1>>>(out); }
void launch_say(float* out) { say<<<1, 1>>>(out); }
void launch_shout(float* out, int threads) { shout<<<threads / 256, 256>>>(out); }
void launch_nothing(float*) {}
void touch_on_host(float* out) { *out = 1; }
void spin_on_host() { for (volatile long i = 0; ; i = i + 1) {} }
void sleep_on_host() { for (;;) sleep(1000); }
void wait_for_a_child() {
  const pid_t child = fork();
  while (child == 0) pause();
  waitpid(child, nullptr, 0);
}
void wait_for_a_child_that_works() {
  const pid_t child = fork();
  for (volatile long i = 0; child == 0; i = i + 1) {}
  waitpid(child, nullptr, 0);
}
void launch_for_ever(float* out, cudaStream_t stream) {
  while (cudaStreamSynchronize(stream) == cudaSuccess) say_nothing<<<1, 1, 0, stream>>>(out);
}
void leave(float*) { std::exit(0); }
}
