// Reads and writes images: PGM (grey) and PPM (red, green, blue), one byte for each value. Do not change it: the
// course's own copy is compiled with your programs.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

struct Image {
  int width = 0, height = 0, channels = 1;
  std::vector<unsigned char> pixels;  // row by row, the channels of a pixel side by side

  int size() const { return width * height * channels; }
};

// Ends the program with the place and CUDA's message if a call of CUDA fails.
#define CHECK(call)                                                                        \
  do {                                                                                     \
    cudaError_t error_ = (call);                                                           \
    if (error_ != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)

inline void fail(const char* what, const char* path) {
  std::fprintf(stderr, "%s %s\n", what, path);
  std::exit(2);
}

inline Image read_image(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) fail("cannot open", path);
  Image image;
  char kind = 0;
  int largest = 0;
  if (std::fscanf(file, "P%c %d %d %d", &kind, &image.width, &image.height, &largest) != 4) fail("no image:", path);
  std::fgetc(file);  // one character of white space stands before the pixels
  image.channels = kind == '6' ? 3 : 1;
  image.pixels.resize(image.size());
  if (std::fread(image.pixels.data(), 1, image.pixels.size(), file) != image.pixels.size()) fail("too short:", path);
  std::fclose(file);
  return image;
}

inline void write_image(const char* path, const Image& image) {
  std::FILE* file = std::fopen(path, "wb");
  if (!file) fail("cannot write", path);
  std::fprintf(file, "P%c\n%d %d\n255\n", image.channels == 3 ? '6' : '5', image.width, image.height);
  std::fwrite(image.pixels.data(), 1, image.pixels.size(), file);
  std::fclose(file);
}
