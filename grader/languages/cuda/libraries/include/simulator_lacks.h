// Tells the simulator that a library of ours lacks what was asked of it, so that the case is undecided.
#pragma once

#include <cuda_runtime_api.h>

extern "C" cudaError_t __cudaSimulatorLacks(const char* call) __attribute__((weak));  // in its runtime alone

template <typename Status>
Status lacks(const char* call, Status status) {
  if (__cudaSimulatorLacks != nullptr) __cudaSimulatorLacks(call);
  return status;
}
