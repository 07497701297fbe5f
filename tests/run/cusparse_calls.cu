// Calls of cuSPARSE on a small matrix; prints what comes out, and the call with its status where one does not succeed.

#include <cusparse.h>

#include <cmath>
#include <cstdio>

#include "device_array.h"

void ok(cusparseStatus_t status, const char* call) {
  if (status != CUSPARSE_STATUS_SUCCESS) std::printf("%s: %s\n", call, cusparseGetErrorName(status));
}
#define OK(call) ok(call, #call)

cusparseHandle_t handle;

// y = alpha op(A) x + beta y
template <typename T>
void multiply(const char* name, cusparseSpMatDescr_t a, bool transposed, std::vector<T> from, std::vector<T> to,
              T alpha, T beta, cudaDataType type) {
  Device<T> x(from), y(to);
  cusparseDnVecDescr_t of_x, of_y;
  OK(cusparseCreateDnVec(&of_x, x.n, x.at, type));
  OK(cusparseCreateDnVec(&of_y, y.n, y.at, type));
  const auto operation = transposed ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
  size_t bytes;
  void* buffer;
  OK(cusparseSpMV_bufferSize(handle, operation, &alpha, a, of_x, &beta, of_y, type, CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
  cudaMalloc(&buffer, bytes);
  OK(cusparseSpMV(handle, operation, &alpha, a, of_x, &beta, of_y, type, CUSPARSE_SPMV_ALG_DEFAULT, buffer));
  y.print(name);
  cudaFree(buffer);
  OK(cusparseDestroyDnVec(of_x));
  OK(cusparseDestroyDnVec(of_y));
}

int main() {
  OK(cusparseCreate(&handle));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  OK(cusparseSetStream(handle, stream));

  //     1 0 2 0
  // A = 0 3 0 0
  //     4 0 5 6
  Device<int> offsets({0, 2, 3, 6}), columns({0, 2, 1, 0, 2, 3});
  Device<float> values({1, 2, 3, 4, 5, 6});
  cusparseSpMatDescr_t csr, csc, coo, wide;
  OK(cusparseCreateCsr(&csr, 3, 4, 6, offsets.at, columns.at, values.at, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                       CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  multiply<float>("csr", csr, false, {1, 2, 3, 4}, {NAN, NAN, NAN}, 1, 0, CUDA_R_32F);
  multiply<float>("alpha, beta", csr, false, {1, 2, 3, 4}, {1, 1, 1}, 2, 1, CUDA_R_32F);
  multiply<float>("transposed", csr, true, {1, 2, 3}, {1, 1, 1, 1}, 1, 2, CUDA_R_32F);
  multiply<float>("transposed, beta 0", csr, true, {1, 2, 3}, {NAN, NAN, NAN, NAN}, 1, 0, CUDA_R_32F);

  Device<int> of_columns({0, 2, 3, 5, 6}), rows({0, 2, 1, 0, 2, 2});
  Device<float> by_columns({1, 4, 3, 2, 5, 6});
  OK(cusparseCreateCsc(&csc, 3, 4, 6, of_columns.at, rows.at, by_columns.at, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                       CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  multiply<float>("csc", csc, false, {1, 2, 3, 4}, {0, 0, 0}, 1, 0, CUDA_R_32F);
  multiply<float>("csc transposed", csc, true, {1, 2, 3}, {0, 0, 0, 0}, 1, 0, CUDA_R_32F);

  Device<int> of_entries({1, 1, 2, 3, 3, 3}), from_one({1, 3, 2, 1, 3, 4});
  OK(cusparseCreateCoo(&coo, 3, 4, 6, of_entries.at, from_one.at, values.at, CUSPARSE_INDEX_32I,
                       CUSPARSE_INDEX_BASE_ONE, CUDA_R_32F));
  multiply<float>("coo from one", coo, false, {1, 2, 3, 4}, {1, 1, 1}, 1, 1, CUDA_R_32F);
  multiply<float>("coo transposed", coo, true, {1, 2, 3}, {0, 0, 0, 0}, 1, 0, CUDA_R_32F);

  Device<int64_t> long_offsets({0, 2, 3, 6}), long_columns({0, 2, 1, 0, 2, 3});
  Device<double> doubles({1, 2, 3, 4, 5, 6});
  OK(cusparseCreateCsr(&wide, 3, 4, 6, long_offsets.at, long_columns.at, doubles.at, CUSPARSE_INDEX_64I,
                       CUSPARSE_INDEX_64I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  multiply<double>("64 bits", wide, false, {1, 2, 3, 4}, {0, 0, 0}, 1, 0, CUDA_R_64F);

  const float one = 1, zero = 0;
  Device<float> b({1, 2, 3, 4, 0, 1, 0, 1}), c({0, 0, 0, 0, 0, 0});
  cusparseDnMatDescr_t of_b, turned, of_c, in_rows;
  OK(cusparseCreateDnMat(&of_b, 4, 2, 4, b.at, CUDA_R_32F, CUSPARSE_ORDER_COL));
  OK(cusparseCreateDnMat(&turned, 2, 4, 4, b.at, CUDA_R_32F, CUSPARSE_ORDER_ROW));
  OK(cusparseCreateDnMat(&of_c, 3, 2, 3, c.at, CUDA_R_32F, CUSPARSE_ORDER_COL));
  OK(cusparseCreateDnMat(&in_rows, 3, 2, 2, c.at, CUDA_R_32F, CUSPARSE_ORDER_ROW));
  const auto plain = CUSPARSE_OPERATION_NON_TRANSPOSE, transposed = CUSPARSE_OPERATION_TRANSPOSE;
  OK(cusparseSpMM(handle, plain, plain, &one, csr, of_b, &zero, of_c, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, nullptr));
  c.print("matrix");
  OK(cusparseSpMM(handle, plain, transposed, &one, csr, turned, &zero, in_rows, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT,
                  nullptr));
  c.print("matrix by rows");
  OK(cusparseSpMM(handle, plain, plain, &one, csr, of_c, &zero, of_c, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, nullptr));

  for (const auto matrix : {csr, csc, coo, wide}) OK(cusparseDestroySpMat(matrix));
  for (const auto matrix : {of_b, turned, of_c, in_rows}) OK(cusparseDestroyDnMat(matrix));
  OK(cusparseDestroy(handle));
  cudaStreamDestroy(stream);
}
