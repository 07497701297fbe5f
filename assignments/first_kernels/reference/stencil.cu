// 5-point stencil: several steps at a time in shared memory.
//
// Idea: a step needs 5 neighbours, so four steps in one launch need a halo of 4 cells around what a block writes. A
// block loads a square with its halo once, takes all steps there between two copies, and writes the middle. Cells
// near the square's edge become wrong, one ring with each step, and are not written.
//
// Bytes: read and write each cell once for AT_ONCE steps, 8 bytes, and the halo: (EDGE / (EDGE - 2 steps))^2 of the
// reads.
//
// Launch: a block of 64 x 8 threads for a square of 64 x 64; a thread goes down 8 rows of one column, so that the
// cells north of it and south of it are in registers.
#include <cuda_runtime.h>

constexpr int EDGE = 64;  // of a block's square
constexpr int STRIP = 8;  // rows of it for each thread
constexpr int AT_ONCE = 4;  // steps of a launch at most

__global__ void __launch_bounds__(EDGE* EDGE / STRIP)
    ker_stencil(float* after, const float* before, float rate, int rows, int columns, int steps) {
  __shared__ float squares[2][EDGE][EDGE];
  const int x = threadIdx.x, top = threadIdx.y * STRIP;
  const int written = EDGE - 2 * steps;
  const int column = blockIdx.x * written - steps + x, first_row = blockIdx.y * written - steps + top;

  for (int i = 0; i < STRIP; ++i) {
    const int row = first_row + i;
    const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
    squares[0][top + i][x] = inside ? before[static_cast<size_t>(row) * columns + column] : 0.0f;
  }

  const bool between = x > 0 && x < EDGE - 1 && column > 0 && column < columns - 1;
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    const auto& old = squares[step % 2];
    auto& fresh = squares[(step + 1) % 2];
    float north = top > 0 ? old[top - 1][x] : 0.0f, middle = old[top][x];
    for (int i = 0; i < STRIP; ++i) {
      const int y = top + i, row = first_row + i;
      const float south = y < EDGE - 1 ? old[y + 1][x] : 0.0f;
      const bool spreads = between && y > 0 && y < EDGE - 1 && row > 0 && row < rows - 1;
      fresh[y][x] = spreads ? middle + rate * (north + south + old[y][x - 1] + old[y][x + 1] - 4.0f * middle) : middle;
      north = middle;
      middle = south;
    }
  }

  // Each thread writes what it computed itself: no barrier.
  if (x < steps || x >= EDGE - steps || column >= columns) return;
  for (int i = 0; i < STRIP; ++i) {
    const int y = top + i, row = first_row + i;
    if (y < steps || y >= EDGE - steps || row >= rows) continue;
    after[static_cast<size_t>(row) * columns + column] = squares[steps % 2][y][x];
  }
}

extern "C" void launch_stencil(float* after, const float* before, float rate, int rows, int columns, int steps,
                               cudaStream_t stream) {
  float* scratch = nullptr;
  if (steps > AT_ONCE) cudaMallocAsync(&scratch, sizeof(float) * rows * columns, stream);
  for (int launches = (steps + AT_ONCE - 1) / AT_ONCE; launches > 0; --launches) {
    float* to = launches % 2 == 1 ? after : scratch;  // so that the last one writes to `after`
    const int now = min(AT_ONCE, steps), written = EDGE - 2 * now;
    const dim3 blocks((columns + written - 1) / written, (rows + written - 1) / written);
    ker_stencil<<<blocks, dim3(EDGE, EDGE / STRIP), 0, stream>>>(to, before, rate, rows, columns, now);
    before = to;
    steps -= now;
  }
  if (scratch != nullptr) cudaFreeAsync(scratch, stream);
}
