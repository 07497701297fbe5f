// Other names of the same types, float3 for three floats, and a thread per particle in a grid that walks.
#include <cuda_runtime.h>
#include <cstdint>

typedef struct {
  float3 position;
  uint8_t weight;
  float3 velocity;
} Particle;

struct Step {
  float dt;
  double drag;
};
using Constants = Step;

__global__ void ker_particles(Particle* particles, Constants step, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    Particle particle = particles[i];
    const float kept = (float)(1 - step.drag), more = step.dt * particle.weight;
    particle.position.x = fmaf(step.dt, particle.velocity.x, particle.position.x);
    particle.position.y = fmaf(step.dt, particle.velocity.y, particle.position.y);
    particle.position.z = fmaf(step.dt, particle.velocity.z, particle.position.z);
    particle.velocity.x = fmaf(particle.velocity.x, kept, -more);
    particle.velocity.y = fmaf(particle.velocity.y, kept, -more);
    particle.velocity.z = fmaf(particle.velocity.z, kept, -more);
    particles[i] = particle;
  }
}

extern "C" void launch_particles(Particle* particles, Constants step, int n, cudaStream_t stream) {
  ker_particles<<<n < 4096 ? 4 : 128, 64, 0, stream>>>(particles, step, n);
}
