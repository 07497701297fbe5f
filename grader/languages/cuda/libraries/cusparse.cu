// cuSPARSE for the simulator: products of a sparse matrix in CSR, CSC or COO with a dense vector or matrix, by kernels
// that are simple, and watched by its checks as those of a student are. A vector is a dense matrix of one column.
//
// A matrix whose compressed rows are the rows of the result is gathered: a thread sums each element of the result, in
// the order of the entries. Otherwise entries are scattered by atomics, in any order. NVIDIA's library promises
// neither.

#include <cusparse.h>
#include <simulator_lacks.h>

struct cusparseContext {
  cudaStream_t stream = nullptr;
  cusparsePointerMode_t pointers = CUSPARSE_POINTER_MODE_HOST;
};

enum class Format { csr, csc, coo };

struct cusparseSpMatDescr {
  Format format;
  int64_t rows, columns, count;
  const void *offsets, *indices, *values;  // for COO, the indices of rows are its offsets
  cusparseIndexType_t offset_type, index_type;
  cusparseIndexBase_t base;
  cudaDataType type;
};

struct cusparseDnMatDescr {
  int64_t rows, columns, leading;
  void* values;
  cudaDataType type;
  cusparseOrder_t order;
};

struct cusparseDnVecDescr {
  cusparseDnMatDescr matrix;
};

namespace cusparse {

constexpr int block = 256;

// A factor that the caller has on the host, or on the device.
template <typename T>
struct Scalar {
  T value;
  const T* place;
  __device__ T get() const { return place != nullptr ? *place : value; }
};

// A dense matrix, which may be read transposed.
template <typename T>
struct Dense {
  T* values;
  int64_t row, column;  // steps, in elements
  __device__ T& at(int64_t i, int64_t j) const { return values[i * row + j * column]; }
};

// The entries of a sparse matrix; those of major row i are from offsets[i] on.
template <typename Offset, typename Index, typename T>
struct Sparse {
  const Offset* offsets;
  const Index* indices;
  const T* values;
  int64_t base;
};

template <typename T>
__global__ void scale(int64_t rows, Scalar<T> beta, Dense<T> c) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, j = blockIdx.y;
  if (i >= rows) return;
  const T factor = beta.get();
  c.at(i, j) = factor == T(0) ? T(0) : factor * c.at(i, j);  // what is not used may be NaN
}

template <typename Offset, typename Index, typename T>
__global__ void gather(int64_t rows, Sparse<Offset, Index, T> a, Scalar<T> alpha, Dense<const T> b, Scalar<T> beta,
                       Dense<T> c) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, j = blockIdx.y;
  if (i >= rows) return;
  T sum = 0;
  for (int64_t e = a.offsets[i] - a.base; e < a.offsets[i + 1] - a.base; ++e)
    sum += a.values[e] * b.at(a.indices[e] - a.base, j);
  const T factor = beta.get();
  c.at(i, j) = factor == T(0) ? alpha.get() * sum : alpha.get() * sum + factor * c.at(i, j);
}

template <typename Offset, typename Index, typename T>
__global__ void scatter(int64_t rows, Sparse<Offset, Index, T> a, Scalar<T> alpha, Dense<const T> b, Dense<T> c) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, j = blockIdx.y;
  if (i >= rows) return;
  for (int64_t e = a.offsets[i] - a.base; e < a.offsets[i + 1] - a.base; ++e)
    atomicAdd(&c.at(a.indices[e] - a.base, j), alpha.get() * a.values[e] * b.at(i, j));
}

// Of entries with both indices; of a transposed matrix these change places.
template <typename Index, typename T>
__global__ void scatter_entries(int64_t count, Sparse<Index, Index, T> a, bool transposed, Scalar<T> alpha,
                                Dense<const T> b, Dense<T> c) {
  const int64_t e = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, j = blockIdx.y;
  if (e >= count) return;
  const int64_t row = a.offsets[e] - a.base, column = a.indices[e] - a.base;
  atomicAdd(&c.at(transposed ? column : row, j), alpha.get() * a.values[e] * b.at(transposed ? row : column, j));
}

}  // namespace cusparse

namespace {

using namespace cusparse;

cusparseStatus_t launched() {
  return cudaGetLastError() == cudaSuccess ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}

dim3 blocks(int64_t rows, int64_t columns) { return {unsigned((rows + block - 1) / block), unsigned(columns)}; }

template <typename T>
Scalar<T> scalar(cusparseHandle_t handle, const void* at) {
  if (handle->pointers == CUSPARSE_POINTER_MODE_HOST) return {*static_cast<const T*>(at), nullptr};
  return {T(0), static_cast<const T*>(at)};
}

template <typename T>
Dense<T> dense(const cusparseDnMatDescr& matrix, bool transposed = false) {
  const bool by_rows = (matrix.order == CUSPARSE_ORDER_ROW) != transposed;
  return {static_cast<T*>(matrix.values), by_rows ? matrix.leading : 1, by_rows ? 1 : matrix.leading};
}

// C = alpha op(A) op(B) + beta C.
template <typename Offset, typename Index, typename T>
cusparseStatus_t multiply(cusparseHandle_t handle, bool ta, bool tb, const void* alpha, const cusparseSpMatDescr& a,
                          const cusparseDnMatDescr& b, const void* beta, const cusparseDnMatDescr& c) {
  const Sparse<Offset, Index, T> entries{static_cast<const Offset*>(a.offsets), static_cast<const Index*>(a.indices),
                                         static_cast<const T*>(a.values), a.base};
  const auto to = dense<T>(c);
  const auto from = dense<const T>(b, tb);
  const auto factor = scalar<T>(handle, alpha), kept = scalar<T>(handle, beta);
  const int64_t major = a.format == Format::csc ? a.columns : a.rows;
  if (c.rows == 0 || c.columns == 0) return CUSPARSE_STATUS_SUCCESS;
  if (a.format != Format::coo && ta == (a.format == Format::csc)) {
    gather<<<blocks(major, c.columns), block, 0, handle->stream>>>(major, entries, factor, from, kept, to);
    return launched();
  }
  scale<<<blocks(c.rows, c.columns), block, 0, handle->stream>>>(c.rows, kept, to);
  if (a.count == 0) return launched();
  if constexpr (sizeof(Offset) == sizeof(Index)) {
    if (a.format == Format::coo) {
      scatter_entries<<<blocks(a.count, c.columns), block, 0, handle->stream>>>(a.count, entries, ta, factor, from, to);
      return launched();
    }
  }
  scatter<<<blocks(major, c.columns), block, 0, handle->stream>>>(major, entries, factor, from, to);
  return launched();
}

template <typename Offset, typename Index>
cusparseStatus_t of_type(cusparseHandle_t handle, bool ta, bool tb, const void* alpha, const cusparseSpMatDescr& a,
                         const cusparseDnMatDescr& b, const void* beta, const cusparseDnMatDescr& c) {
  return a.type == CUDA_R_32F ? multiply<Offset, Index, float>(handle, ta, tb, alpha, a, b, beta, c)
                              : multiply<Offset, Index, double>(handle, ta, tb, alpha, a, b, beta, c);
}

cusparseStatus_t checked(cusparseHandle_t handle, bool ta, bool tb, const void* alpha, const cusparseSpMatDescr* a,
                         const cusparseDnMatDescr* b, const void* beta, const cusparseDnMatDescr* c,
                         cudaDataType compute) {
  if (handle == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (a == nullptr || b == nullptr || c == nullptr || alpha == nullptr || beta == nullptr)
    return CUSPARSE_STATUS_INVALID_VALUE;
  const int64_t rows = ta ? a->columns : a->rows, inner = ta ? a->rows : a->columns;
  if (rows != c->rows || inner != (tb ? b->columns : b->rows) || c->columns != (tb ? b->rows : b->columns))
    return CUSPARSE_STATUS_INVALID_VALUE;
  if (compute != CUDA_R_32F && compute != CUDA_R_64F)
    return lacks("cusparse_types_other_than_float_and_double", CUSPARSE_STATUS_NOT_SUPPORTED);
  const bool alike = a->type == compute && b->type == compute && c->type == compute;
  return alike ? CUSPARSE_STATUS_SUCCESS : lacks("cusparse_mixed_types", CUSPARSE_STATUS_NOT_SUPPORTED);
}

cusparseStatus_t product(cusparseHandle_t handle, bool ta, bool tb, const void* alpha, const cusparseSpMatDescr* a,
                         const cusparseDnMatDescr* b, const void* beta, const cusparseDnMatDescr* c,
                         cudaDataType compute) {
  const auto status = checked(handle, ta, tb, alpha, a, b, beta, c, compute);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  const bool wide = a->offset_type == CUSPARSE_INDEX_64I;
  if (a->index_type == CUSPARSE_INDEX_64I) {
    return wide ? of_type<int64_t, int64_t>(handle, ta, tb, alpha, *a, *b, beta, *c)
                : of_type<int32_t, int64_t>(handle, ta, tb, alpha, *a, *b, beta, *c);
  }
  return wide ? of_type<int64_t, int32_t>(handle, ta, tb, alpha, *a, *b, beta, *c)
              : of_type<int32_t, int32_t>(handle, ta, tb, alpha, *a, *b, beta, *c);
}

cusparseStatus_t create(cusparseConstSpMatDescr_t* to, const cusparseSpMatDescr& matrix) {
  const auto known = [](cusparseIndexType_t type) { return type == CUSPARSE_INDEX_32I || type == CUSPARSE_INDEX_64I; };
  if (to == nullptr || matrix.rows < 0 || matrix.columns < 0 || matrix.count < 0) return CUSPARSE_STATUS_INVALID_VALUE;
  if (!known(matrix.offset_type) || !known(matrix.index_type))
    return lacks("cusparse_indices_of_16_bits", CUSPARSE_STATUS_NOT_SUPPORTED);
  *to = new cusparseSpMatDescr(matrix);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t create(cusparseConstDnMatDescr_t* to, const cusparseDnMatDescr& matrix) {
  const auto least = matrix.order == CUSPARSE_ORDER_ROW ? matrix.columns : matrix.rows;
  if (to == nullptr || matrix.rows < 0 || matrix.columns < 0 || matrix.leading < least)
    return CUSPARSE_STATUS_INVALID_VALUE;
  *to = new cusparseDnMatDescr(matrix);
  return CUSPARSE_STATUS_SUCCESS;
}

const cusparseDnMatDescr* matrix_of(cusparseConstDnVecDescr_t vector) {
  return vector == nullptr ? nullptr : &vector->matrix;
}

cusparseStatus_t no_buffer(size_t* bytes) {
  *bytes = 0;
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  if (handle == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
  *handle = new cusparseContext;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  delete handle;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseGetVersion(cusparseHandle_t, int* version) {
  *version = 12600;
  return CUSPARSE_STATUS_SUCCESS;
}

#define PROPERTY(setter, getter, type, member)                     \
  cusparseStatus_t setter(cusparseHandle_t handle, type value) {   \
    if (handle == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED; \
    handle->member = value;                                        \
    return CUSPARSE_STATUS_SUCCESS;                                \
  }                                                                \
  cusparseStatus_t getter(cusparseHandle_t handle, type* value) {  \
    if (handle == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED; \
    *value = handle->member;                                       \
    return CUSPARSE_STATUS_SUCCESS;                                \
  }
PROPERTY(cusparseSetStream, cusparseGetStream, cudaStream_t, stream)
PROPERTY(cusparseSetPointerMode, cusparseGetPointerMode, cusparsePointerMode_t, pointers)

const char* cusparseGetErrorName(cusparseStatus_t status) {
  switch (status) {
#define NAMED(name) \
  case name: return #name;
    NAMED(CUSPARSE_STATUS_SUCCESS)
    NAMED(CUSPARSE_STATUS_NOT_INITIALIZED)
    NAMED(CUSPARSE_STATUS_ALLOC_FAILED)
    NAMED(CUSPARSE_STATUS_INVALID_VALUE)
    NAMED(CUSPARSE_STATUS_ARCH_MISMATCH)
    NAMED(CUSPARSE_STATUS_MAPPING_ERROR)
    NAMED(CUSPARSE_STATUS_EXECUTION_FAILED)
    NAMED(CUSPARSE_STATUS_INTERNAL_ERROR)
    NAMED(CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED)
    NAMED(CUSPARSE_STATUS_ZERO_PIVOT)
    NAMED(CUSPARSE_STATUS_NOT_SUPPORTED)
    NAMED(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
  }
  return "unknown cuSPARSE status";
}

const char* cusparseGetErrorString(cusparseStatus_t status) { return cusparseGetErrorName(status); }

cusparseStatus_t cusparseCreateConstCsr(cusparseConstSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t count,
                                        const void* offsets, const void* indices, const void* values,
                                        cusparseIndexType_t offset_type, cusparseIndexType_t index_type,
                                        cusparseIndexBase_t base, cudaDataType type) {
  return create(matrix,
                {Format::csr, rows, columns, count, offsets, indices, values, offset_type, index_type, base, type});
}

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t count,
                                   void* offsets, void* indices, void* values, cusparseIndexType_t offset_type,
                                   cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type) {
  return create(const_cast<cusparseConstSpMatDescr_t*>(matrix),
                {Format::csr, rows, columns, count, offsets, indices, values, offset_type, index_type, base, type});
}

cusparseStatus_t cusparseCreateCsc(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t count,
                                   void* offsets, void* indices, void* values, cusparseIndexType_t offset_type,
                                   cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type) {
  return create(const_cast<cusparseConstSpMatDescr_t*>(matrix),
                {Format::csc, rows, columns, count, offsets, indices, values, offset_type, index_type, base, type});
}

cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t count,
                                   void* row_indices, void* indices, void* values, cusparseIndexType_t index_type,
                                   cusparseIndexBase_t base, cudaDataType type) {
  return create(const_cast<cusparseConstSpMatDescr_t*>(matrix),
                {Format::coo, rows, columns, count, row_indices, indices, values, index_type, index_type, base, type});
}

cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateConstDnVec(cusparseConstDnVecDescr_t* vector, int64_t size, const void* values,
                                          cudaDataType type) {
  if (vector == nullptr || size < 0) return CUSPARSE_STATUS_INVALID_VALUE;
  *vector = new cusparseDnVecDescr{{size, 1, size, const_cast<void*>(values), type, CUSPARSE_ORDER_COL}};
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* vector, int64_t size, void* values, cudaDataType type) {
  return cusparseCreateConstDnVec(const_cast<cusparseConstDnVecDescr_t*>(vector), size, values, type);
}

cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t vector, void* values) {
  if (vector == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
  vector->matrix.values = values;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) {
  delete vector;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* matrix, int64_t rows, int64_t columns,
                                          int64_t leading, const void* values, cudaDataType type,
                                          cusparseOrder_t order) {
  return create(matrix, {rows, columns, leading, const_cast<void*>(values), type, order});
}

cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t leading,
                                     void* values, cudaDataType type, cusparseOrder_t order) {
  return create(const_cast<cusparseConstDnMatDescr_t*>(matrix), {rows, columns, leading, values, type, order});
}

cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
                                         cusparseConstDnVecDescr_t, const void*, cusparseDnVecDescr_t, cudaDataType,
                                         cusparseSpMVAlg_t, size_t* bytes) {
  return no_buffer(bytes);
}

cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
                                         cusparseConstDnVecDescr_t, const void*, cusparseDnVecDescr_t, cudaDataType,
                                         cusparseSpMVAlg_t, void*) {
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t operation, const void* alpha,
                              cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void* beta,
                              cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t, void*) {
  return product(handle, operation != CUSPARSE_OPERATION_NON_TRANSPOSE, false, alpha, a, matrix_of(x), beta,
                 matrix_of(y), compute);
}

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t, cusparseConstDnMatDescr_t, const void*,
                                         cusparseDnMatDescr_t, cudaDataType, cusparseSpMMAlg_t, size_t* bytes) {
  return no_buffer(bytes);
}

cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t, cusparseConstDnMatDescr_t, const void*,
                                         cusparseDnMatDescr_t, cudaDataType, cusparseSpMMAlg_t, void*) {
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t of_a, cusparseOperation_t of_b,
                              const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                              const void* beta, cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpMMAlg_t,
                              void*) {
  return product(handle, of_a != CUSPARSE_OPERATION_NON_TRANSPOSE, of_b != CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, a,
                 b, beta, c, compute);
}

}  // extern "C"
