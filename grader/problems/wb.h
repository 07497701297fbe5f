// The calls of libwb that labs use: arguments, files of vectors, matrices and images, logs, times and the solution.
//
// It is written anew, after the names and file formats of libwb. wbSolution does not compare: it writes the result to
// the file that the argument -o names, and who grades compares that with what is expected.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

using std::string;

typedef bool wbBool;
typedef float wbReal_t;
typedef char wbChar_t;
#define wbTrue true
#define wbFalse false
#define wbFile __FILE__
#define wbLine __LINE__
#define wbFunction __func__

namespace wb {

inline void fail(const string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

// The text of all values, one behind the other.
template <typename... Values>
string text(const Values&... values) {
  std::ostringstream out;
  int all[] = {0, ((void)(out << values), 0)...};
  (void)all;
  return out.str();
}

inline char* copy(const string& value) {
  char* made = static_cast<char*>(std::malloc(value.size() + 1));
  return std::strcpy(made, value.c_str());
}

inline bool ends_with(const string& name, const string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

inline std::map<string, std::chrono::steady_clock::time_point>& times() {
  static std::map<string, std::chrono::steady_clock::time_point> begun;
  return begun;
}

inline void start(const char* kind, const string& message) {
  times()[kind + message] = std::chrono::steady_clock::now();
}

inline void stop(const char* kind, const string& message) {
  std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - times()[kind + message];
  std::printf("time %s: %s: %.3f ms\n", kind, message.c_str(), passed.count());
}

inline void log(const char* level, const string& message, int line) {
  std::printf("%s line %d: %s\n", level, line, message.c_str());
}

}  // namespace wb

#define wbLog(level, ...) wb::log(#level, wb::text(__VA_ARGS__), __LINE__)
#define wbTime_start(kind, ...) wb::start(#kind, wb::text(__VA_ARGS__))
#define wbTime_stop(kind, ...) wb::stop(#kind, wb::text(__VA_ARGS__))
#define wbAssert(condition)                                                                    \
  do {                                                                                         \
    if (!(condition)) wb::fail(wb::text(__FILE__, ":", __LINE__, ": not true: ", #condition)); \
  } while (0)

#ifndef wbCheck  // many labs define it themselves, which may differ
#define wbCheck(stmt)                                                                  \
  do {                                                                                 \
    cudaError_t wb_error = stmt;                                                       \
    if (wb_error != cudaSuccess) {                                                     \
      wbLog(ERROR, "Failed to run stmt ", #stmt);                                      \
      wb::fail(wb::text(__FILE__, ":", __LINE__, ": ", cudaGetErrorString(wb_error))); \
    }                                                                                  \
  } while (0)
#endif

#define wbMalloc(size) std::malloc(size)
#define wbFree(pointer) std::free(pointer)
#define wbNew(type) static_cast<type*>(std::malloc(sizeof(type)))
#define wbNewArray(type, count) static_cast<type*>(std::malloc(sizeof(type) * (count)))
#define wbDelete(pointer) std::free(pointer)

// -e EXPECTED -i INPUT0,INPUT1 -o OUTPUT -t TYPE

struct wbArg_t {
  int inputCount;
  char** inputFiles;
  char* outputFile;
  char* expectedOutput;
  char* type;
};

#define wbArg_getInputCount(wa) ((wa).inputCount)
#define wbArg_getInputFiles(wa) ((wa).inputFiles)
#define wbArg_getInputFile(wa, ii) ((wa).inputFiles[ii])
#define wbArg_getOutputFile(wa) ((wa).outputFile)
#define wbArg_getExpectedOutputFile(wa) ((wa).expectedOutput)
#define wbArg_getType(wa) ((wa).type)

inline wbArg_t wbArg_read(int argc, char** argv) {
  std::map<string, string> given;
  for (int i = 1; i + 1 < argc; i += 2) given[string(argv[i]).substr(std::strspn(argv[i], "-"), 1)] = argv[i + 1];
  std::vector<string> files;
  std::istringstream list(given["i"]);
  for (string file; std::getline(list, file, ',');) files.push_back(file);
  wbArg_t args;
  args.inputCount = static_cast<int>(files.size());
  args.inputFiles = wbNewArray(char*, files.size() + 1);
  for (size_t i = 0; i < files.size(); ++i) args.inputFiles[i] = wb::copy(files[i]);
  args.inputFiles[files.size()] = nullptr;
  args.outputFile = wb::copy(given["o"]);
  args.expectedOutput = wb::copy(given["e"]);
  args.type = wb::copy(given["t"]);
  return args;
}

// Images: values from 0 to 1, row by row, the channels of a pixel side by side.

typedef struct st_wbImage_t {
  int width;
  int height;
  int channels;
  int pitch;
  float* data;
}* wbImage_t;

#define wbImage_channels 3
#define wbImage_getWidth(img) ((img)->width)
#define wbImage_getHeight(img) ((img)->height)
#define wbImage_getChannels(img) ((img)->channels)
#define wbImage_getPitch(img) ((img)->pitch)
#define wbImage_getData(img) ((img)->data)
#define wbImage_setData(img, val) ((img)->data = (val))

inline wbImage_t wbImage_new(int width, int height, int channels, float* data) {
  wbImage_t image = wbNew(st_wbImage_t);
  *image = {width, height, channels, width * channels, data};
  return image;
}

inline wbImage_t wbImage_new(int width, int height, int channels = wbImage_channels) {
  size_t count = static_cast<size_t>(width) * height * channels;
  return wbImage_new(width, height, channels, static_cast<float*>(std::calloc(count, sizeof(float))));
}

inline void wbImage_delete(wbImage_t image) {
  if (image) std::free(image->data);
  std::free(image);
}

namespace wb {

// The next number of the head of an image, behind white space and comments.
inline int number(std::ifstream& file) {
  while (file >> std::ws && file.peek() == '#') file.ignore(1 << 20, '\n');
  int value = 0;
  file >> value;
  return value;
}

}  // namespace wb

inline wbImage_t wbPPM_import(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) wb::fail(wb::text("File ", path, " does not exist."));
  string kind;
  file >> kind;
  if (kind != "P5" && kind != "P6") wb::fail(wb::text(path, " is no image: it is neither P5 nor P6."));
  int width = wb::number(file), height = wb::number(file), depth = wb::number(file);
  file.get();
  wbImage_t image = wbImage_new(width, height, kind == "P6" ? 3 : 1);
  std::vector<unsigned char> bytes(static_cast<size_t>(width) * height * image->channels);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), bytes.size())) wb::fail(wb::text(path, " is too short."));
  for (size_t i = 0; i < bytes.size(); ++i) image->data[i] = bytes[i] * (1.0f / depth);
  return image;
}

inline void wbPPM_export(const char* path, wbImage_t image) {
  std::ofstream file(path, std::ios::binary);
  file << (image->channels == 1 ? "P5\n" : "P6\n") << image->width << ' ' << image->height << "\n255\n";
  size_t count = static_cast<size_t>(image->width) * image->height * image->channels;
  for (size_t i = 0; i < count; ++i) {
    float value = std::min(std::max(image->data[i], 0.0f), 1.0f);
    file.put(static_cast<char>(static_cast<unsigned char>(std::lround(value * 255.0f))));
  }
}

#define wbImage_save(image, path) wbPPM_export(path, image)

// Vectors and matrices: a line with the length, or with rows and columns, and the numbers behind it. Of .csv, the
// numbers alone, a row in each line.

namespace wb {

struct Table {
  int rows = 0, columns = 1;
  std::vector<string> words;
};

inline Table read(const char* path) {
  std::ifstream file(path);
  if (!file) fail(text("File ", path, " does not exist."));
  Table table;
  string line;
  bool separated = ends_with(path, ".csv") || ends_with(path, ".tsv");
  if (!separated) {
    std::getline(file, line);
    std::istringstream sizes(line);
    sizes >> table.rows;
    if (!(sizes >> table.columns)) table.columns = 1;
  }
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream row(line);
    size_t before = table.words.size();
    for (string word; row >> word;) table.words.push_back(word);
    if (separated && table.words.size() > before) {
      table.columns = static_cast<int>(table.words.size() - before);
      ++table.rows;
    }
  }
  if (table.rows == 1 && table.columns > 1) std::swap(table.rows, table.columns);
  size_t count = static_cast<size_t>(table.rows) * table.columns;
  if (table.words.size() < count) fail(text(path, " holds ", table.words.size(), " of its ", count, " numbers."));
  return table;
}

}  // namespace wb

inline void* wbImport(const char* path, int* rows, int* columns, const char* type) {
  wb::Table table = wb::read(path);
  if (rows) *rows = table.rows;
  if (columns) *columns = table.columns;
  size_t count = static_cast<size_t>(table.rows) * table.columns;
  void* data = std::malloc(std::max<size_t>(count, 1) * 4);
  bool real = std::strcmp(type, "Real") == 0;
  for (size_t i = 0; i < count; ++i) {
    if (real)
      static_cast<float*>(data)[i] = std::strtof(table.words[i].c_str(), nullptr);
    else
      static_cast<int*>(data)[i] = static_cast<int>(std::strtol(table.words[i].c_str(), nullptr, 10));
  }
  return data;
}

inline void* wbImport(const char* path, int* rows, int* columns) { return wbImport(path, rows, columns, "Real"); }
inline void* wbImport(const char* path, int* rows, const char* type) { return wbImport(path, rows, nullptr, type); }
inline void* wbImport(const char* path, int* rows) { return wbImport(path, rows, nullptr, "Real"); }
inline wbImage_t wbImport(const char* path) { return wbPPM_import(path); }

inline int wbImport_flag(const char* path) {
  std::ifstream file(path);
  int flag = 0;
  file >> flag;
  return flag;
}

namespace wb {

template <typename Number>
void write(const char* path, const Number* data, int rows, int columns) {
  if (!path || !*path) return;
  std::ofstream file(path);
  file.precision(9);
  file << rows;
  if (columns != 1) file << ' ' << columns;
  for (size_t i = 0; i < static_cast<size_t>(rows) * columns; ++i) file << (i % columns ? ' ' : '\n') << +data[i];
  file << '\n';
}

}  // namespace wb

template <typename Number>
void wbExport(const char* path, Number* data, int rows, int columns = 1) {
  wb::write(path, data, rows, columns);
}

inline void wbExport(const char* path, wbImage_t image) { wbPPM_export(path, image); }

// Labs pass float, int or unsigned arrays; of one without a type, -t says whether it holds integers.

template <typename Number>
wbBool wbSolution(wbArg_t args, Number* data, int rows, int columns = 1) {
  if constexpr (std::is_void<Number>::value) {
    if (string(args.type).find("integral") == 0)
      wb::write(args.outputFile, static_cast<const int*>(data), rows, columns);
    else
      wb::write(args.outputFile, static_cast<const float*>(data), rows, columns);
  } else {
    wb::write(args.outputFile, data, rows, columns);
  }
  return wbTrue;
}

inline wbBool wbSolution(wbArg_t args, wbImage_t image) {
  wbPPM_export(args.outputFile, image);
  return wbTrue;
}

// Sparse matrices: rows in compressed form (CSR) to jagged diagonals (JDS), the longest rows first.

inline void CSRToJDS(int dim, int* csrRowPtr, int* csrColIdx, float* csrData, int** jdsRowPerm, int** jdsRowNNZ,
                     int** jdsColStartIdx, int** jdsColIdx, float** jdsData) {
  auto length = [&](int row) { return csrRowPtr[row + 1] - csrRowPtr[row]; };
  int* order = *jdsRowPerm = wbNewArray(int, dim);
  int* lengths = *jdsRowNNZ = wbNewArray(int, dim);
  for (int row = 0; row < dim; ++row) order[row] = row;
  std::stable_sort(order, order + dim, [&](int one, int other) { return length(one) > length(other); });
  for (int place = 0; place < dim; ++place) lengths[place] = length(order[place]);
  int longest = dim ? lengths[0] : 0, count = dim ? csrRowPtr[dim] - csrRowPtr[0] : 0, filled = 0;
  *jdsColStartIdx = wbNewArray(int, longest + 1);
  *jdsColIdx = wbNewArray(int, count + 1);
  *jdsData = wbNewArray(float, count + 1);
  for (int column = 0; column < longest; ++column) {
    (*jdsColStartIdx)[column] = filled;
    for (int place = 0; place < dim && lengths[place] > column; ++place, ++filled) {
      (*jdsColIdx)[filled] = csrColIdx[csrRowPtr[order[place]] + column];
      (*jdsData)[filled] = csrData[csrRowPtr[order[place]] + column];
    }
  }
  (*jdsColStartIdx)[longest] = filled;
}
