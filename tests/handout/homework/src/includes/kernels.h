#pragma once
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <curand_kernel.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
