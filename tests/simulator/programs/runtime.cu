// What programs do with the CUDA runtime. Each function returns 0, or the line of the first check that failed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

__device__ float variable[4] = {1, 2, 3, 4};

__global__ void scale(float* data, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}
__global__ void fill(float* data, int n, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = value;
}
__global__ void shift(float* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1;
}
__global__ void hello() { printf("hello from the device\n"); }
__global__ void spin(volatile int* flag) { while (*flag == 0) {} }

static const int n = 1000;
static float host[n];

static float* prepared(float value) {
  float* data = nullptr;
  cudaMalloc(&data, sizeof host);
  for (float& x : host) x = value;
  cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice);
  return data;
}
static float first(const float* data, cudaStream_t stream) {
  cudaStreamSynchronize(stream);
  cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream);
  for (const float x : host) if (x != host[0]) return -1;
  return host[0];
}
static cudaStream_t stream() {
  cudaStream_t made;
  cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
  return made;
}

extern "C" {

int launch_scale(float* data, int count, float factor, cudaStream_t on) {
  scale<<<(count + 127) / 128, 128, 0, on>>>(data, count, factor);
  return cudaGetLastError();
}

int right_numbers() {
  float* data = prepared(2);
  scale<<<8, 128>>>(data, n, 3);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  CHECK(first(data, nullptr) == 6);
  OK(cudaMemset(data, 0, sizeof host));
  CHECK(first(data, nullptr) == 0);
  OK(cudaFree(data));
  return 0;
}

int large_copies() {
  const size_t count = 9 << 20;  // more than two frames
  char* bytes = static_cast<char*>(malloc(4 * count));
  for (size_t i = 0; i < 4 * count; ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  char* data;
  OK(cudaMalloc(&data, 4 * count));
  OK(cudaMemcpy(data, bytes, 4 * count, cudaMemcpyDefault));
  char* back = static_cast<char*>(malloc(4 * count));
  OK(cudaMemcpy(back, data, 4 * count, cudaMemcpyDefault));
  CHECK(memcmp(bytes, back, 4 * count) == 0);
  return 0;
}

int rectangles() {
  char in[4][8], out[4][5] = {}, *data;
  size_t pitch;
  for (int i = 0; i < 32; ++i) in[i / 8][i % 8] = static_cast<char>(i);
  OK(cudaMallocPitch(&data, &pitch, 5, 4));
  CHECK(pitch >= 5);
  OK(cudaMemcpy2D(data, pitch, in, 8, 5, 4, cudaMemcpyHostToDevice));
  OK(cudaMemset2D(data + 2, pitch, 99, 1, 4));
  OK(cudaMemcpy2D(out, 5, data, pitch, 5, 4, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 5; ++x) CHECK(out[y][x] == (x == 2 ? 99 : in[y][x]));
  return 0;
}

int symbols() {
  float back[4];
  void* address;
  size_t size;
  OK(cudaGetSymbolSize(&size, variable));
  CHECK(size == sizeof back);
  const float nine = 9;
  OK(cudaMemcpyToSymbol(variable, &nine, 4, 4));
  OK(cudaGetSymbolAddress(&address, variable));
  scale<<<1, 32>>>(static_cast<float*>(address), 4, 2);
  OK(cudaMemcpyFromSymbol(back, variable, sizeof back));
  CHECK(back[1] == 18);
  return 0;
}

int beyond_a_symbol() {
  float five[5] = {};
  CHECK(cudaMemcpyToSymbol(variable, five, 4, 16) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyFromSymbol(five, variable, sizeof five) == cudaErrorInvalidValue);
  return 0;
}

int host_visible_memory() {
  float *pinned, *shared;
  OK(cudaMallocHost(&pinned, 16));
  OK(cudaMallocManaged(&shared, 16));
  for (int i = 0; i < 4; ++i) pinned[i] = shared[i] = static_cast<float>(i);
  scale<<<1, 32>>>(pinned, 4, 2);
  scale<<<1, 32>>>(shared, 4, 3);
  OK(cudaDeviceSynchronize());
  CHECK(pinned[3] == 6 && shared[3] == 9);
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, pinned));
  CHECK(attributes.type == cudaMemoryTypeHost);
  OK(cudaPointerGetAttributes(&attributes, &attributes));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  OK(cudaFreeHost(pinned));
  OK(cudaFree(shared));
  return 0;
}

int launch_errors_are_returned_once() {
  float* data = prepared(1);
  scale<<<1, 2048>>>(data, n, 2);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  scale<<<1, 32, 100000>>>(data, n, 2);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  scale<<<8, 128, 100000>>>(data, n, 2);
  OK(cudaGetLastError());
  CHECK(first(data, nullptr) == 2);
  return 0;
}

int launch_error_that_nobody_asks_for() {
  scale<<<0, 32>>>(nullptr, n, 2);
  return cudaDeviceSynchronize();
}

int kernel_faults_stay() {
  float* data = prepared(1);
  scale<<<8, 128>>>(data, 64 * n, 2);
  scale<<<8, 128>>>(reinterpret_cast<float*>(16), 64, 2);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaMalloc(&data, 4) == cudaErrorIllegalAddress);
  OK(cudaDeviceReset());
  OK(cudaMalloc(&data, 4));
  return 0;
}

int bad_arguments() {
  float* data = prepared(1);
  CHECK(cudaMemcpy(data, host, 2 * sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(data, data, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  OK(cudaFree(data));
  CHECK(cudaFree(data) == cudaErrorInvalidValue);
  CHECK(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(0x9990)) == cudaErrorInvalidResourceHandle);
  CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
  return 0;
}

// The result is 4 if the second stream saw what the first did, and 3 if it came first.
static int across(bool with_event) {
  float* data = prepared(1);
  cudaStream_t one = stream(), two = stream();
  cudaEvent_t done;
  cudaEventCreate(&done);
  shift<<<8, 128, 0, one>>>(data, n);
  cudaEventRecord(done, one);
  if (with_event) cudaStreamWaitEvent(two, done, 0);
  scale<<<8, 128, 0, two>>>(data, n, 2);
  cudaDeviceSynchronize();
  return static_cast<int>(first(data, two));
}
int without_event() { return across(false); }
int with_event() { return across(true); }

// Memory that one stream allocates and another uses, which waits for the first one's event or does not.
static int allocated_in_another(bool with_event) {
  float* data;
  cudaStream_t one = stream(), two = stream();
  cudaEvent_t there;
  cudaEventCreate(&there);
  OK(cudaMallocAsync(&data, sizeof host, one));
  cudaEventRecord(there, one);
  if (with_event) cudaStreamWaitEvent(two, there, 0);
  fill<<<8, 128, 0, two>>>(data, n, 4);
  if (const int error = cudaDeviceSynchronize()) return -error;
  return static_cast<int>(first(data, two));
}
int allocated_without_event() { return allocated_in_another(false); }
int allocated_with_event() { return allocated_in_another(true); }

// The default stream waits for blocking streams and they for it, for others it does not.
static int around_default(unsigned flags) {
  float* data = prepared(1);
  cudaStream_t other;
  cudaStreamCreateWithFlags(&other, flags);
  shift<<<8, 128>>>(data, n);
  scale<<<8, 128, 0, other>>>(data, n, 2);
  cudaDeviceSynchronize();
  return static_cast<int>(first(data, other));
}
int blocking_stream() { return around_default(cudaStreamDefault); }
int non_blocking_stream() { return around_default(cudaStreamNonBlocking); }

int events_measure_time() {
  cudaEvent_t start, end;
  float milliseconds = -1;
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&end));
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  OK(cudaEventRecord(start));
  scale<<<8, 128>>>(prepared(1), n, 2);
  OK(cudaEventRecord(end));
  OK(cudaEventSynchronize(end));
  OK(cudaEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 0);
  return 0;
}

int host_functions() {
  float* data = prepared(1);
  cudaStream_t on = stream();
  int order = 0;
  OK(cudaLaunchHostFunc(on, [](void* at) { *static_cast<int*>(at) = 7; }, &order));
  OK(cudaStreamAddCallback(on, [](cudaStream_t, cudaError_t status, void* at) {
    *static_cast<int*>(at) += status == cudaSuccess && cudaDeviceSynchronize() == cudaErrorNotPermitted;
  }, &order, 0));
  OK(cudaStreamSynchronize(on));
  CHECK(order == 8);
  return first(data, on) == 1 ? 0 : __LINE__;
}

int graphs() {
  float* data = prepared(1);
  cudaStream_t on = stream();
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal));
  shift<<<8, 128, 0, on>>>(data, n);
  scale<<<8, 128, 0, on>>>(data, n, 2);
  CHECK(cudaStreamSynchronize(on) == cudaErrorStreamCaptureUnsupported);
  OK(cudaStreamEndCapture(on, &graph));
  CHECK(first(data, on) == 1);
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphLaunch(executable, on));
  OK(cudaGraphLaunch(executable, on));
  CHECK(first(data, on) == 10);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
  return 0;
}

// A graph allocates what it frees at every launch, at the address that it was captured with.
int graphs_that_allocate() {
  float *data = prepared(1), *scratch;
  cudaStream_t on = stream();
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(cudaStreamBeginCapture(on, cudaStreamCaptureModeRelaxed));
  OK(cudaMallocAsync(&scratch, sizeof host, on));
  OK(cudaMemcpyAsync(scratch, data, sizeof host, cudaMemcpyDeviceToDevice, on));
  scale<<<8, 128, 0, on>>>(scratch, n, 3);
  OK(cudaMemcpyAsync(data, scratch, sizeof host, cudaMemcpyDeviceToDevice, on));
  OK(cudaFreeAsync(scratch, on));
  OK(cudaStreamEndCapture(on, &graph));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  for (int launch = 0; launch < 3; ++launch) OK(cudaGraphLaunch(executable, on));
  CHECK(first(data, on) == 27);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
  return 0;
}

// A pool of one's own, which may be the device's for a while.
int pools() {
  cudaMemPool_t device, own, current;
  OK(cudaDeviceGetDefaultMemPool(&device, 0));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  OK(cudaMemPoolCreate(&own, &properties));
  std::uint64_t threshold = 1 << 20, kept = 0;
  OK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold));
  OK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrReleaseThreshold, &kept));
  CHECK(kept == threshold);
  int reuses = 0;
  OK(cudaMemPoolGetAttribute(own, cudaMemPoolReuseAllowOpportunistic, &reuses));
  CHECK(reuses == 1);

  cudaStream_t on = stream();
  float *a, *b;
  OK(cudaMallocFromPoolAsync(&a, sizeof host, own, on));
  CHECK(cudaMallocFromPoolAsync(&b, sizeof host, nullptr, on) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  OK(cudaDeviceSetMemPool(0, own));
  OK(cudaDeviceGetMemPool(&current, 0));
  CHECK(current == own && own != device);
  OK(cudaMallocAsync(&b, sizeof host, on));
  fill<<<8, 128, 0, on>>>(a, n, 2);
  OK(cudaMemcpyAsync(b, a, sizeof host, cudaMemcpyDeviceToDevice, on));
  OK(cudaFreeAsync(a, on));
  CHECK(first(b, on) == 2);
  OK(cudaFreeAsync(b, on));
  OK(cudaStreamSynchronize(on));
  OK(cudaMemPoolTrimTo(own, 0));
  OK(cudaMemPoolDestroy(own));
  OK(cudaDeviceGetMemPool(&current, 0));
  CHECK(current == device);
  return 0;
}

int threads() {
  int failed = 0;
  std::thread other([&] { failed = right_numbers(); });
  other.join();
  return failed;
}

int unknown_call() {
  cudaArray_t array;
  cudaChannelFormatDesc description = {};
  return cudaMallocArray(&array, &description, 16, 16, 0) == cudaErrorNotSupported ? 0 : __LINE__;
}

int say_hello() {
  hello<<<1, 1>>>();
  return cudaDeviceSynchronize();
}

int dereference_on_host() { return static_cast<int>(*prepared(1)); }

int spin_forever() {
  int* flag;
  cudaMalloc(&flag, 4);
  cudaMemset(flag, 0, 4);
  spin<<<1, 1>>>(flag);
  return 0;
}

}
