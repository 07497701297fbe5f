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

extern "C" void launch_particles(Particle* particles, Step step, int n, cudaStream_t stream) {
  // Write a kernel above, and launch it here.
}
