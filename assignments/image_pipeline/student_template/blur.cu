// blur IN.ppm OUT.ppm RADIUS. Each pixel of the output is the mean of the pixels around it; the handout says how it is
// rounded.
#include "pnm.h"

// Your kernels.

int main(int count, char** words) {
  if (count != 4) fail("usage: blur IN.ppm OUT.ppm RADIUS, not", words[0]);
  Image image = read_image(words[1]);
  [[maybe_unused]] int radius = std::atoi(words[3]);

  // Copy image.pixels to the GPU, launch your kernels, and copy the result back. Then:
  // write_image(words[2], image);
}
