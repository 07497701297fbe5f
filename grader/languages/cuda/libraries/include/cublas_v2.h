// The functions of cuBLAS that the simulator has, declared as NVIDIA declares them. NVIDIA's header comes before this
// one where it is installed.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdint.h>

typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;

typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLAS_COMPUTE_64F = 70
} cublasComputeType_t;

typedef struct cublasContext* cublasHandle_t;

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasDaxpy cublasDaxpy_v2
#define cublasSscal cublasSscal_v2
#define cublasDscal cublasDscal_v2
#define cublasScopy cublasScopy_v2
#define cublasDcopy cublasDcopy_v2
#define cublasSdot cublasSdot_v2
#define cublasDdot cublasDdot_v2
#define cublasSnrm2 cublasSnrm2_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasSasum cublasSasum_v2
#define cublasDasum cublasDasum_v2
#define cublasIsamax cublasIsamax_v2
#define cublasIdamax cublasIdamax_v2
#define cublasSgemv cublasSgemv_v2
#define cublasDgemv cublasDgemv_v2
#define cublasSger cublasSger_v2
#define cublasDger cublasDger_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDgemm cublasDgemm_v2

#ifdef __cplusplus
extern "C" {
#endif

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);

cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy);
cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy);
cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb);
cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb);

#define CUBLAS_DECLARE(X, amax, type)                                                                                  \
  cublasStatus_t cublas##X##axpy_v2(cublasHandle_t handle, int n, const type* alpha, const type* x, int incx, type* y, \
                                    int incy);                                                                         \
  cublasStatus_t cublas##X##scal_v2(cublasHandle_t handle, int n, const type* alpha, type* x, int incx);               \
  cublasStatus_t cublas##X##copy_v2(cublasHandle_t handle, int n, const type* x, int incx, type* y, int incy);         \
  cublasStatus_t cublas##X##dot_v2(cublasHandle_t handle, int n, const type* x, int incx, const type* y, int incy,     \
                                   type* result);                                                                      \
  cublasStatus_t cublas##X##nrm2_v2(cublasHandle_t handle, int n, const type* x, int incx, type* result);              \
  cublasStatus_t cublas##X##asum_v2(cublasHandle_t handle, int n, const type* x, int incx, type* result);              \
  cublasStatus_t amax(cublasHandle_t handle, int n, const type* x, int incx, int* result);                             \
  cublasStatus_t cublas##X##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const type* alpha,   \
                                    const type* a, int lda, const type* x, int incx, const type* beta, type* y,        \
                                    int incy);                                                                         \
  cublasStatus_t cublas##X##ger_v2(cublasHandle_t handle, int m, int n, const type* alpha, const type* x, int incx,    \
                                   const type* y, int incy, type* a, int lda);                                         \
  cublasStatus_t cublas##X##gemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,  \
                                    int n, int k, const type* alpha, const type* a, int lda, const type* b, int ldb,   \
                                    const type* beta, type* c, int ldc);                                               \
  cublasStatus_t cublas##X##gemmStridedBatched(                                                                        \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,                  \
      const type* alpha, const type* a, int lda, long long int stridea, const type* b, int ldb, long long int strideb, \
      const type* beta, type* c, int ldc, long long int stridec, int batches);                                         \
  cublasStatus_t cublas##X##geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,     \
                                 int n, const type* alpha, const type* a, int lda, const type* beta, const type* b,    \
                                 int ldb, type* c, int ldc);
CUBLAS_DECLARE(S, cublasIsamax_v2, float)
CUBLAS_DECLARE(D, cublasIdamax_v2, double)
#undef CUBLAS_DECLARE

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType atype, int lda, const void* b,
                            cudaDataType btype, int ldb, const void* beta, void* c, cudaDataType ctype, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm);

#ifdef __cplusplus
}
#endif
