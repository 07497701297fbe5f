// A right program, written differently: it must pass.
#include <fstream>
#include <iostream>

__global__ void add(const float* a, float* b, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) b[i] += a[i];
}

int main(int, char** words) {
  float *a, *b, number;
  cudaMallocManaged(&a, 1 << 20);
  cudaMallocManaged(&b, 1 << 20);
  int n = 0;
  for (std::ifstream file(words[1]); file >> number;) a[n++] = number;
  n = 0;
  for (std::ifstream file(words[2]); file >> number;) b[n++] = number;
  add<<<1, 128>>>(a, b, n);
  cudaDeviceSynchronize();
  std::ofstream file(words[3]);
  file.precision(9);
  file << "time 0 ms\n";
  for (int i = 0; i < n; ++i) file << b[i] << ' ';
}
