// cuBLAS for the simulator: kernels that are simple, and watched by its checks as those of a student are. Matrices are
// column-major. What is summed is summed in the order of its elements, which NVIDIA's library does not promise.

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <simulator_lacks.h>

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  void* result = nullptr;  // on the device, for one that goes to the host
};

namespace cublas {

constexpr int block = 256;
constexpr int tile = 16;

// A factor that the caller has on the host, or on the device.
template <typename T>
struct Scalar {
  T value;
  const T* place;
  __device__ T get() const { return place != nullptr ? *place : value; }
};

template <typename T>
Scalar<T> scalar(cublasHandle_t handle, const T* at) {
  if (handle->pointers == CUBLAS_POINTER_MODE_HOST) return {*at, nullptr};
  return {T(0), at};
}

// Where element i of a vector lies: with a negative increment it begins at its end.
__device__ size_t at(int i, int n, int increment) {
  return increment >= 0 ? size_t(i) * increment : size_t(n - 1 - i) * -increment;
}

template <typename T>
__global__ void axpy(int n, Scalar<T> alpha, const T* x, int incx, T* y, int incy) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[at(i, n, incy)] += alpha.get() * x[at(i, n, incx)];
}

template <typename T>
__global__ void scal(int n, Scalar<T> alpha, T* x, int incx) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[at(i, n, incx)] *= alpha.get();
}

template <typename T>
__global__ void copy(int n, const T* x, int incx, T* y, int incy) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[at(i, n, incy)] = x[at(i, n, incx)];
}

// The sum over the threads of the only block, in thread 0.
template <typename T>
__device__ T sum(T mine) {
  __shared__ T sums[block];
  sums[threadIdx.x] = mine;
  for (int half = block / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}

template <typename T>
__global__ void dot(int n, const T* x, int incx, const T* y, int incy, T* result) {
  T mine = 0;
  for (int i = threadIdx.x; i < n; i += block) mine += x[at(i, n, incx)] * y[at(i, n, incy)];
  mine = sum(mine);
  if (threadIdx.x == 0) *result = mine;
}

// In double precision, where no square of a float overflows or vanishes.
template <typename T>
__global__ void nrm2(int n, const T* x, int incx, T* result) {
  double mine = 0;
  for (int i = threadIdx.x; i < n; i += block) {
    const double element = x[at(i, n, incx)];
    mine += element * element;
  }
  mine = sum(mine);
  if (threadIdx.x == 0) *result = T(sqrt(mine));
}

template <typename T>
__global__ void asum(int n, const T* x, int incx, T* result) {
  T mine = 0;
  for (int i = threadIdx.x; i < n; i += block) mine += abs(x[at(i, n, incx)]);
  mine = sum(mine);
  if (threadIdx.x == 0) *result = mine;
}

// The first of the largest, counted from 1.
template <typename T>
__global__ void amax(int n, const T* x, int incx, int* result) {
  __shared__ T largest[block];
  __shared__ int places[block];
  T mine = -1;
  int place = n;
  for (int i = threadIdx.x; i < n; i += block)
    if (const T size = abs(x[at(i, n, incx)]); size > mine) {
      mine = size;
      place = i;
    }
  largest[threadIdx.x] = mine;
  places[threadIdx.x] = place;
  for (int half = block / 2; half > 0; half /= 2) {
    __syncthreads();
    const int other = threadIdx.x + half;
    if (threadIdx.x < half && (largest[other] > largest[threadIdx.x] ||
                               (largest[other] == largest[threadIdx.x] && places[other] < places[threadIdx.x]))) {
      largest[threadIdx.x] = largest[other];
      places[threadIdx.x] = places[other];
    }
  }
  if (threadIdx.x == 0) *result = places[0] + 1;
}

template <typename T>
__global__ void gemv(bool transposed, int m, int n, Scalar<T> alpha, const T* a, int lda, const T* x, int incx,
                     Scalar<T> beta, T* y, int incy) {
  const int rows = transposed ? n : m, columns = transposed ? m : n;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  T dot = 0;
  for (int j = 0; j < columns; ++j) {
    dot += a[transposed ? size_t(i) * lda + j : size_t(j) * lda + i] * x[at(j, columns, incx)];
  }
  T& to = y[at(i, rows, incy)];
  const T factor = beta.get();
  to = factor == T(0) ? alpha.get() * dot : alpha.get() * dot + factor * to;  // what is not used may be NaN
}

template <typename T>
__global__ void ger(int m, int n, Scalar<T> alpha, const T* x, int incx, const T* y, int incy, T* a, int lda) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < m && j < n) a[size_t(j) * lda + i] += alpha.get() * x[at(i, m, incx)] * y[at(j, n, incy)];
}

// Batch blockIdx.z of C = alpha op(A) op(B) + beta C; products are summed as the type of alpha.
template <typename In, typename Out, typename T>
__global__ void gemm(bool transa, bool transb, int m, int n, int k, Scalar<T> alpha, const In* a, int lda,
                     long long stridea, const In* b, int ldb, long long strideb, Scalar<T> beta, Out* c, int ldc,
                     long long stridec) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  const In* const as = a + blockIdx.z * stridea + (transa ? size_t(i) * lda : i);
  const In* const bs = b + blockIdx.z * strideb + (transb ? j : size_t(j) * ldb);
  const size_t nexta = transa ? 1 : lda, nextb = transb ? ldb : 1;
  T dot = 0;
  for (int l = 0; l < k; ++l) dot += T(as[l * nexta]) * T(bs[l * nextb]);
  Out& to = c[blockIdx.z * stridec + size_t(j) * ldc + i];
  const T factor = beta.get();
  to = Out(factor == T(0) ? alpha.get() * dot : alpha.get() * dot + factor * T(to));
}

template <typename T>
__global__ void geam(bool transa, bool transb, int m, int n, Scalar<T> alpha, const T* a, int lda, Scalar<T> beta,
                     const T* b, int ldb, T* c, int ldc) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  const T first = alpha.get(), second = beta.get();
  T sum = 0;
  if (first != T(0)) sum += first * a[transa ? size_t(i) * lda + j : size_t(j) * lda + i];
  if (second != T(0)) sum += second * b[transb ? size_t(i) * ldb + j : size_t(j) * ldb + i];
  c[size_t(j) * ldc + i] = sum;
}

}  // namespace cublas

namespace {

using cublas::block;
using cublas::scalar;
using cublas::tile;

unsigned blocks(int n) { return (n + block - 1) / block; }

dim3 tiles(int m, int n, int batches = 1) { return dim3((m + tile - 1) / tile, (n + tile - 1) / tile, batches); }

// What the last launch came to.
cublasStatus_t launched() {
  return cudaPeekAtLastError() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

// Lets `launch` write a result on the device, and brings it to the host if the caller wants it there.
template <typename T, typename Launch>
cublasStatus_t reduced(cublasHandle_t handle, T* result, Launch launch) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointers == CUBLAS_POINTER_MODE_DEVICE) {
    launch(result);
    return launched();
  }
  if (handle->result == nullptr && cudaMalloc(&handle->result, sizeof(double)) != cudaSuccess)
    return CUBLAS_STATUS_ALLOC_FAILED;
  launch(static_cast<T*>(handle->result));
  if (const auto status = launched(); status != CUBLAS_STATUS_SUCCESS) return status;
  if (cudaMemcpyAsync(result, handle->result, sizeof(T), cudaMemcpyDeviceToHost, handle->stream) != cudaSuccess ||
      cudaStreamSynchronize(handle->stream) != cudaSuccess)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  cublas::axpy<<<blocks(n), block, 0, handle->stream>>>(n, scalar(handle, alpha), x, incx, y, incy);
  return launched();
}

template <typename T>
cublasStatus_t scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
  cublas::scal<<<blocks(n), block, 0, handle->stream>>>(n, scalar(handle, alpha), x, incx);
  return launched();
}

template <typename T>
cublasStatus_t copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  cublas::copy<<<blocks(n), block, 0, handle->stream>>>(n, x, incx, y, incy);
  return launched();
}

template <typename T>
cublasStatus_t gemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T* alpha, const T* a, int lda,
                    const T* x, int incx, const T* beta, T* y, int incy) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || lda < max(1, m) || incx == 0 || incy == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  cublas::gemv<<<blocks(trans == CUBLAS_OP_N ? m : n), block, 0, handle->stream>>>(
      trans != CUBLAS_OP_N, m, n, scalar(handle, alpha), a, lda, x, incx, scalar(handle, beta), y, incy);
  return launched();
}

template <typename T>
cublasStatus_t ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy,
                   T* a, int lda) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || lda < max(1, m) || incx == 0 || incy == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  cublas::ger<<<tiles(m, n), dim3(tile, tile), 0, handle->stream>>>(m, n, scalar(handle, alpha), x, incx, y, incy, a,
                                                                    lda);
  return launched();
}

template <typename In, typename Out, typename T>
cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
                    const T* alpha, const In* a, int lda, long long stridea, const In* b, int ldb, long long strideb,
                    const T* beta, Out* c, int ldc, long long stridec, int batches) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool ta = transa != CUBLAS_OP_N, tb = transb != CUBLAS_OP_N;
  if (m < 0 || n < 0 || k < 0 || batches < 0 || lda < max(1, ta ? k : m) || ldb < max(1, tb ? n : k) ||
      ldc < max(1, m) || alpha == nullptr || beta == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0 || batches == 0) return CUBLAS_STATUS_SUCCESS;
  cublas::gemm<<<tiles(m, n, batches), dim3(tile, tile), 0, handle->stream>>>(
      ta, tb, m, n, k, scalar(handle, alpha), a, lda, stridea, b, ldb, strideb, scalar(handle, beta), c, ldc, stridec);
  return launched();
}

template <typename T>
cublasStatus_t geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                    const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c, int ldc) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool ta = transa != CUBLAS_OP_N, tb = transb != CUBLAS_OP_N;
  if (m < 0 || n < 0 || lda < max(1, ta ? n : m) || ldb < max(1, tb ? n : m) || ldc < max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  cublas::geam<<<tiles(m, n), dim3(tile, tile), 0, handle->stream>>>(ta, tb, m, n, scalar(handle, alpha), a, lda,
                                                                     scalar(handle, beta), b, ldb, c, ldc);
  return launched();
}

// Columns of a matrix between the host and the device, or elements of a vector as a matrix of one row.
cublasStatus_t copy_rows(int rows, int columns, int size, const void* a, int lda, void* b, int ldb,
                         cudaMemcpyKind kind) {
  if (rows < 0 || columns < 0 || size <= 0 || lda <= 0 || ldb <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  const auto error =
      cudaMemcpy2D(b, size_t(ldb) * size, a, size_t(lda) * size, size_t(rows) * size, size_t(columns), kind);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto error = cudaFree(handle->result);
  delete handle;
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = 130000;
  return CUBLAS_STATUS_SUCCESS;
}

#define PROPERTY(setter, getter, type, member)                   \
  cublasStatus_t setter(cublasHandle_t handle, type value) {     \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED; \
    handle->member = value;                                      \
    return CUBLAS_STATUS_SUCCESS;                                \
  }                                                              \
  cublasStatus_t getter(cublasHandle_t handle, type* value) {    \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED; \
    *value = handle->member;                                     \
    return CUBLAS_STATUS_SUCCESS;                                \
  }
PROPERTY(cublasSetStream_v2, cublasGetStream_v2, cudaStream_t, stream)
PROPERTY(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t, pointers)
PROPERTY(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math)

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define NAMED(name) \
  case name: return #name;
    NAMED(CUBLAS_STATUS_SUCCESS)
    NAMED(CUBLAS_STATUS_NOT_INITIALIZED)
    NAMED(CUBLAS_STATUS_ALLOC_FAILED)
    NAMED(CUBLAS_STATUS_INVALID_VALUE)
    NAMED(CUBLAS_STATUS_ARCH_MISMATCH)
    NAMED(CUBLAS_STATUS_MAPPING_ERROR)
    NAMED(CUBLAS_STATUS_EXECUTION_FAILED)
    NAMED(CUBLAS_STATUS_INTERNAL_ERROR)
    NAMED(CUBLAS_STATUS_NOT_SUPPORTED)
    NAMED(CUBLAS_STATUS_LICENSE_ERROR)
  }
  return "unknown cuBLAS status";
}

const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy) {
  return copy_rows(1, n, size, x, incx, y, incy, cudaMemcpyHostToDevice);
}
cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy) {
  return copy_rows(1, n, size, x, incx, y, incy, cudaMemcpyDeviceToHost);
}
cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb) {
  return copy_rows(rows, columns, size, a, lda, b, ldb, cudaMemcpyHostToDevice);
}
cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb) {
  return copy_rows(rows, columns, size, a, lda, b, ldb, cudaMemcpyDeviceToHost);
}

#define DEFINE(X, largest, type)                                                                                       \
  cublasStatus_t cublas##X##axpy_v2(cublasHandle_t handle, int n, const type* alpha, const type* x, int incx, type* y, \
                                    int incy) {                                                                        \
    return axpy(handle, n, alpha, x, incx, y, incy);                                                                   \
  }                                                                                                                    \
  cublasStatus_t cublas##X##scal_v2(cublasHandle_t handle, int n, const type* alpha, type* x, int incx) {              \
    return scal(handle, n, alpha, x, incx);                                                                            \
  }                                                                                                                    \
  cublasStatus_t cublas##X##copy_v2(cublasHandle_t handle, int n, const type* x, int incx, type* y, int incy) {        \
    return copy(handle, n, x, incx, y, incy);                                                                          \
  }                                                                                                                    \
  cublasStatus_t cublas##X##dot_v2(cublasHandle_t handle, int n, const type* x, int incx, const type* y, int incy,     \
                                   type* result) {                                                                     \
    return reduced(handle, result,                                                                                     \
                   [=](type* to) { cublas::dot<<<1, block, 0, handle->stream>>>(n, x, incx, y, incy, to); });          \
  }                                                                                                                    \
  cublasStatus_t cublas##X##nrm2_v2(cublasHandle_t handle, int n, const type* x, int incx, type* result) {             \
    return reduced(handle, result, [=](type* to) { cublas::nrm2<<<1, block, 0, handle->stream>>>(n, x, incx, to); });  \
  }                                                                                                                    \
  cublasStatus_t cublas##X##asum_v2(cublasHandle_t handle, int n, const type* x, int incx, type* result) {             \
    return reduced(handle, result, [=](type* to) { cublas::asum<<<1, block, 0, handle->stream>>>(n, x, incx, to); });  \
  }                                                                                                                    \
  cublasStatus_t largest(cublasHandle_t handle, int n, const type* x, int incx, int* result) {                         \
    return reduced(handle, result, [=](int* to) { cublas::amax<<<1, block, 0, handle->stream>>>(n, x, incx, to); });   \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const type* alpha,   \
                                    const type* a, int lda, const type* x, int incx, const type* beta, type* y,        \
                                    int incy) {                                                                        \
    return gemv(handle, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);                                           \
  }                                                                                                                    \
  cublasStatus_t cublas##X##ger_v2(cublasHandle_t handle, int m, int n, const type* alpha, const type* x, int incx,    \
                                   const type* y, int incy, type* a, int lda) {                                        \
    return ger(handle, m, n, alpha, x, incx, y, incy, a, lda);                                                         \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,  \
                                    int n, int k, const type* alpha, const type* a, int lda, const type* b, int ldb,   \
                                    const type* beta, type* c, int ldc) {                                              \
    return gemm(handle, transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);                     \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemmStridedBatched(                                                                        \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,                  \
      const type* alpha, const type* a, int lda, long long int stridea, const type* b, int ldb, long long int strideb, \
      const type* beta, type* c, int ldc, long long int stridec, int batches) {                                        \
    return gemm(handle, transa, transb, m, n, k, alpha, a, lda, stridea, b, ldb, strideb, beta, c, ldc, stridec,       \
                batches);                                                                                              \
  }                                                                                                                    \
  cublasStatus_t cublas##X##geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,     \
                                 int n, const type* alpha, const type* a, int lda, const type* beta, const type* b,    \
                                 int ldb, type* c, int ldc) {                                                          \
    return geam(handle, transa, transb, m, n, alpha, a, lda, beta, b, ldb, c, ldc);                                    \
  }
DEFINE(S, cublasIsamax_v2, float)
DEFINE(D, cublasIdamax_v2, double)

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType atype, int lda, const void* b,
                            cudaDataType btype, int ldb, const void* beta, void* c, cudaDataType ctype, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  const auto call = [&](auto in, auto out, auto factor) {
    using In = decltype(in);
    using Out = decltype(out);
    using T = decltype(factor);
    return gemm(handle, transa, transb, m, n, k, static_cast<const T*>(alpha), static_cast<const In*>(a), lda, 0,
                static_cast<const In*>(b), ldb, 0, static_cast<const T*>(beta), static_cast<Out*>(c), ldc, 0, 1);
  };
  const auto unknown = [] { return lacks("cublasGemmEx_of_these_types", CUBLAS_STATUS_NOT_SUPPORTED); };
  if (atype != btype) return unknown();
  if (compute == CUBLAS_COMPUTE_64F)
    return atype == CUDA_R_64F && ctype == CUDA_R_64F ? call(0.0, 0.0, 0.0) : unknown();
  if (compute == CUBLAS_COMPUTE_16F) return unknown();
  if (atype == CUDA_R_32F && ctype == CUDA_R_32F) return call(0.0f, 0.0f, 0.0f);
  if (atype == CUDA_R_16F && ctype == CUDA_R_16F) return call(__half(), __half(), 0.0f);
  if (atype == CUDA_R_16F && ctype == CUDA_R_32F) return call(__half(), 0.0f, 0.0f);
  return unknown();
}

}  // extern "C"
