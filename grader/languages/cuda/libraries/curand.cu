// cuRAND for the simulator: what its host functions generate, by kernels that its checks watch. Number i of a generator
// comes from a Philox state of its own sequence, so the numbers are other ones than those of NVIDIA's generators.

#include <curand.h>
#include <curand_kernel.h>
#include <simulator_lacks.h>

#include <algorithm>
#include <vector>

struct curandGenerator_st {
  bool on_host;
  cudaStream_t stream = nullptr;
  unsigned long long seed = 0, next = 0;  // number
};

namespace curand_host {

constexpr int block = 256;

// Each number is that of a sequence of its own: no number depends on how many a call asks for.
template <typename T, typename Draw>
__global__ void generate(T* numbers, size_t count, unsigned long long seed, unsigned long long first, Draw draw) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, first + i, 0, &state);
  numbers[i] = draw(&state);
}

}  // namespace curand_host

namespace {

using State = curandStatePhilox4_32_10_t;

template <typename T, typename Draw>
curandStatus_t generate(curandGenerator_t generator, T* numbers, size_t count, Draw draw) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (count == 0) return CURAND_STATUS_SUCCESS;
  const unsigned blocks = unsigned((count + curand_host::block - 1) / curand_host::block);
  T* to = numbers;
  if (generator->on_host && cudaMalloc(&to, count * sizeof(T)) != cudaSuccess) return CURAND_STATUS_ALLOCATION_FAILED;
  curand_host::generate<<<blocks, curand_host::block, 0, generator->stream>>>(to, count, generator->seed,
                                                                              generator->next, draw);
  generator->next += count;
  auto error = cudaGetLastError();
  if (generator->on_host) {
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(numbers, to, count * sizeof(T), cudaMemcpyDeviceToHost, generator->stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(generator->stream);
    cudaFree(to);
  }
  return error == cudaSuccess ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}

// NVIDIA's pseudorandom generators make normal numbers in pairs, and refuse an odd number of them.
template <typename T, typename Draw>
curandStatus_t in_pairs(curandGenerator_t generator, T* numbers, size_t count, Draw draw) {
  if (count % 2 != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  return generate(generator, numbers, count, draw);
}

curandStatus_t create(curandGenerator_t* generator, curandRngType_t type, bool on_host) {
  if (type >= CURAND_RNG_QUASI_DEFAULT) return lacks("curandCreateGenerator_quasirandom", CURAND_STATUS_TYPE_ERROR);
  if (type < CURAND_RNG_PSEUDO_DEFAULT) return CURAND_STATUS_TYPE_ERROR;
  *generator = new curandGenerator_st{on_host};
  return CURAND_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  return create(generator, type, false);
}

curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return create(generator, type, true);
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  delete generator;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetVersion(int* version) {
  *version = 10400;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  generator->seed = seed;
  generator->next = 0;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  generator->next = offset;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  return order < CURAND_ORDERING_QUASI_DEFAULT ? CURAND_STATUS_SUCCESS : CURAND_STATUS_OUT_OF_RANGE;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int* numbers, size_t count) {
  return generate(generator, numbers, count, [] __device__(State* state) { return curand(state); });
}

curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* numbers, size_t count) {
  return generate(generator, numbers, count, [] __device__(State* state) { return curand_uniform(state); });
}

curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* numbers, size_t count) {
  return generate(generator, numbers, count, [] __device__(State* state) { return curand_uniform_double(state); });
}

curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* numbers, size_t count, float mean,
                                    float deviation) {
  return in_pairs(generator, numbers, count,
                  [=] __device__(State* state) { return mean + deviation * curand_normal(state); });
}

curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* numbers, size_t count, double mean,
                                          double deviation) {
  return in_pairs(generator, numbers, count,
                  [=] __device__(State* state) { return mean + deviation * curand_normal_double(state); });
}

curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* numbers, size_t count, float mean,
                                       float deviation) {
  return in_pairs(generator, numbers, count,
                  [=] __device__(State* state) { return curand_log_normal(state, mean, deviation); });
}

curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* numbers, size_t count, double mean,
                                             double deviation) {
  return in_pairs(generator, numbers, count,
                  [=] __device__(State* state) { return curand_log_normal_double(state, mean, deviation); });
}

curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int* numbers, size_t count, double mean) {
  if (!(mean > 0)) return CURAND_STATUS_OUT_OF_RANGE;
  return generate(generator, numbers, count, [=] __device__(State* state) { return curand_poisson(state, mean); });
}

}  // extern "C"
