// What passes between a module of C++ and the Python that calls it: values, and the calls of PyTorch.
//
// The same structures stand in grader/runner/pytorch/extensions.py.
#pragma once

#include <cstdint>

namespace grader {

enum Kind : std::int64_t { nothing, missing, boolean, integer, real, text, tensor, integers, tensors, dtype, device };

struct Value {
  std::int64_t kind;
  std::int64_t integer;  // a number, the name of a tensor, a type, whether a device is CUDA's; the length of a list
  double real;
  const void* pointer;  // to a text, or to the integers of a list, which are names where it holds tensors
};

// What C++ knows of a tensor: the rest is PyTorch's.
struct Layout {
  void* data;
  std::int64_t dtype, on_device, dimensions, offset;
  const std::int64_t* sizes;
  const std::int64_t* strides;
};

// What Python offers; each gives another number than 0 where Python has raised an exception.
struct Bridge {
  int (*call)(const char* name, const Value* arguments, std::int64_t count, Value* result);
  int (*look)(std::int64_t tensor, Layout* layout);
  void (*release)(std::int64_t tensor);
  void* (*stream)();
};

inline Bridge bridge{};

// Python has raised an exception, which it raises again when C++ has returned.
struct PythonRaised {};

}  // namespace grader
