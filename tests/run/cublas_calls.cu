// Calls of cuBLAS on small inputs; prints what comes out, and "calls <n>" for each that did not succeed.

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>

#include "device_array.h"

void ok(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) std::printf("%s: %s\n", call, cublasGetStatusString(status));
}
#define OK(call) ok(call, #call)

int main() {
  cublasHandle_t handle;
  OK(cublasCreate(&handle));
  const float one = 1, two = 2, zero = 0;

  Device<float> x({1, -2, 3, -4, 5, -6}), y({10, 20, 30, 40, 50, 60});
  OK(cublasSaxpy(handle, 6, &two, x.at, 1, y.at, 1));
  y.print("axpy");
  OK(cublasSaxpy(handle, 3, &one, x.at, 2, y.at, -1));  // y[2-i] += x[2i]
  y.print("strides");
  OK(cublasSscal(handle, 3, &two, y.at, 2));
  y.print("scal");
  OK(cublasScopy(handle, 6, x.at, 1, y.at, 1));
  y.print("copy");

  float dot, norm, absolute;
  int largest;
  OK(cublasSdot(handle, 6, x.at, 1, y.at, 1, &dot));
  OK(cublasSnrm2(handle, 2, x.at + 2, 1, &norm));
  OK(cublasSasum(handle, 6, x.at, 1, &absolute));
  OK(cublasIsamax(handle, 6, x.at, 1, &largest));
  std::printf("reductions %g %g %g %d\n", dot, norm, absolute, largest);
  Device<float> factor({3}), result({0});
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  OK(cublasSscal(handle, 6, factor.at, y.at, 1));
  OK(cublasSdot(handle, 6, x.at, 1, y.at, 1, result.at));
  result.print("device pointers");
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));

  // A = [1 3 5; 2 4 6], column-major.
  Device<float> a({1, 2, 3, 4, 5, 6}), v({1, 10, 100}), w({1, 10}), u({NAN, NAN, NAN});
  OK(cublasSgemv(handle, CUBLAS_OP_N, 2, 3, &one, a.at, 2, v.at, 1, &zero, u.at, 1));
  OK(cublasSgemv(handle, CUBLAS_OP_T, 2, 3, &one, a.at, 2, w.at, 1, &two, v.at, 1));
  u.print("gemv");
  v.print("gemv transposed");
  Device<float> c({1, 1, 1, 1, 7}), d(std::vector<float>(9, NAN));
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 3, &one, a.at, 2, a.at, 2, &two, c.at, 2));
  OK(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 3, 3, 2, &one, a.at, 2, a.at, 2, &zero, d.at, 3));
  c.print("gemm");
  d.print("gemm transposed");
  Device<float> batches(std::vector<float>(3, NAN));
  OK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, w.at, 1, 0, a.at, 2, 2, &zero,
                               batches.at, 1, 1, 3));
  batches.print("batches");
  Device<__half> ah({1, 2, 3, 4}), ch({0, 0, 0, 0});
  OK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, ah.at, CUDA_R_16F, 2, ah.at, CUDA_R_16F, 2, &zero,
                  ch.at, CUDA_R_16F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  ch.print("halves");
  Device<float> transposed(std::vector<float>(6, NAN));
  OK(cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, 3, 2, &two, a.at, 2, &zero, a.at, 3, transposed.at, 3));
  transposed.print("geam");
  Device<float> outer(std::vector<float>(4, 1));
  OK(cublasSger(handle, 2, 2, &one, w.at, 1, w.at, 1, outer.at, 2));
  outer.print("ger");
  Device<double> doubles({3, 4});
  double length;
  OK(cublasDnrm2(handle, 2, doubles.at, 1, &length));
  std::printf("double %g\n", length);
  std::vector<float> matrix{1, 2, 3, 4}, back(2);
  OK(cublasSetMatrix(1, 2, sizeof(float), matrix.data(), 2, a.at, 1));
  OK(cublasGetVector(2, sizeof(float), a.at, 1, back.data(), 1));
  std::printf("rows %g %g\n", back[0], back[1]);
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a.at, 1, a.at, 2, &two, c.at, 2));
  OK(cublasDestroy(handle));
}
