// Calls of cuRAND on the host and in kernels; prints mean and deviation of what they draw, rounded.

#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <cstdio>

#include "device_array.h"

void ok(curandStatus_t status, const char* call) {
  if (status != CURAND_STATUS_SUCCESS) std::printf("%s: %d\n", call, int(status));
}
#define OK(call) ok(call, #call)

constexpr int count = 20000;

template <typename T>
void moments(const char* name, const std::vector<T>& numbers) {
  double mean = 0, square = 0;
  for (const T number : numbers) mean += number;
  mean /= numbers.size();
  for (const T number : numbers) square += (number - mean) * (number - mean);
  std::printf("%s %.1f %.1f\n", name, mean, std::sqrt(square / numbers.size()));
}

__global__ void first(unsigned* numbers) {
  curandStatePhilox4_32_10_t state;
  curand_init(0, 0, 0, &state);
  const uint4 four = curand4(&state);
  numbers[0] = four.x;
  numbers[1] = four.y;
  numbers[2] = four.z;
  numbers[3] = four.w;
  curand_init(0, 0, 2, &state);
  numbers[4] = curand(&state);
}

__global__ void begin(curandState* states, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) curand_init(7, i, 0, &states[i]);
}

__global__ void draw(curandState* states, float* uniform, float* normal, double* precise, unsigned* arrivals, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  curandState state = states[i];
  uniform[i] = curand_uniform(&state);
  normal[i] = curand_normal(&state);
  precise[i] = 2 * curand_normal_double(&state) + 1;
  arrivals[i] = curand_poisson(&state, 40.0);
  states[i] = state;
}

int main() {
  Device<unsigned> known({0, 0, 0, 0, 0});
  first<<<1, 1>>>(known.at);
  for (const unsigned number : known.host()) std::printf("%08x ", number);
  std::printf("\n");

  Device<float> numbers(std::vector<float>(count, -1)), again(std::vector<float>(count, 0));
  Device<double> precise(std::vector<double>(count, 0));
  Device<unsigned> whole(std::vector<unsigned>(count, 0));
  curandGenerator_t generator, other;
  OK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  OK(curandSetPseudoRandomGeneratorSeed(generator, 1234));
  OK(curandGenerateUniform(generator, numbers.at, count));
  moments("uniform", numbers.host());
  std::vector<float> on_host(count);
  OK(curandCreateGeneratorHost(&other, CURAND_RNG_PSEUDO_DEFAULT));
  OK(curandSetPseudoRandomGeneratorSeed(other, 1234));
  OK(curandGenerateUniform(other, on_host.data(), count / 2));
  OK(curandGenerateUniform(other, on_host.data() + count / 2, count / 2));
  std::printf("same seed, same numbers: %d\n", on_host == numbers.host());
  OK(curandGenerateUniform(generator, again.at, count));
  std::printf("next numbers are others: %d\n", again.host() != numbers.host());
  OK(curandGenerateUniformDouble(generator, precise.at, count));
  moments("uniform double", precise.host());
  OK(curandGenerateNormal(generator, numbers.at, count, 10, 3));
  moments("normal", numbers.host());
  OK(curandGenerateNormalDouble(generator, precise.at, count, -5, 2));
  moments("normal double", precise.host());
  OK(curandGenerateLogNormal(generator, numbers.at, count, 0, 0.5f));
  moments("log normal", numbers.host());
  OK(curandGeneratePoisson(generator, whole.at, count, 4));
  moments("poisson", whole.host());
  OK(curandGenerateNormal(generator, numbers.at, 3, 0, 1));

  curandState* states;
  cudaMalloc(&states, count * sizeof(curandState));
  begin<<<(count + 255) / 256, 256>>>(states, count);
  draw<<<(count + 255) / 256, 256>>>(states, numbers.at, again.at, precise.at, whole.at, count);
  moments("of kernels", numbers.host());
  moments("normal", again.host());
  moments("normal double", precise.host());
  moments("poisson", whole.host());
  cudaFree(states);
  OK(curandDestroyGenerator(generator));
  OK(curandDestroyGenerator(other));
}
