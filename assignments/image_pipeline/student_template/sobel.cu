// sobel IN.pgm OUT.pgm. Each pixel of the output says how much the image changes there.
#include "pnm.h"

// Your kernels.

int main(int count, char** words) {
  if (count != 3) fail("usage: sobel IN.pgm OUT.pgm, not", words[0]);
  Image image = read_image(words[1]);

  // Copy image.pixels to the GPU, launch your kernels, and copy the result back. Then:
  // write_image(words[2], image);
}
