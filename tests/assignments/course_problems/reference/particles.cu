#include <cuda_runtime.h>

struct Particle {
  float position[3];
  unsigned char weight;
  float velocity[3];
};

struct Step {
  float dt;
  double drag;
};

__global__ void ker_particles(Particle* particles, Step step, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Particle& particle = particles[i];
  for (int axis = 0; axis < 3; ++axis) {
    particle.position[axis] += step.dt * particle.velocity[axis];
    particle.velocity[axis] = particle.velocity[axis] * (float)(1 - step.drag) - step.dt * particle.weight;
  }
}

extern "C" void launch_particles(Particle* particles, Step step, int n, cudaStream_t stream) {
  ker_particles<<<(n + 127) / 128, 128, 0, stream>>>(particles, step, n);
}
