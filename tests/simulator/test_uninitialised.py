"""What nothing has written may be copied, as padding is, and is an error where it decides something."""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, call, marked_lines

from grader.simulator.driver import Options, Order, Simulator

SOURCE = """
// As the pairs of libcu++ are copied.
using Word = long long;
__global__ void number_in_front(Word* words) { reinterpret_cast<int*>(words + threadIdx.x)[0] = 1; }
__global__ void number_behind(Word* words) { reinterpret_cast<int*>(words + threadIdx.x)[1] = 1; }
__global__ void copy(const Word* words, Word* copied) { copied[threadIdx.x] = words[31 - threadIdx.x]; }

__global__ void one_of_two(int2* pairs) { pairs[threadIdx.x].x = threadIdx.x; }
__global__ void swap_two(const int2* pairs, int2* copied) {
  const int2 pair = pairs[threadIdx.x];
  copied[threadIdx.x] = make_int2(pair.y, pair.x);
}

template <class T>
int launched(void (*write)(T*), void (*read)(const T*, T*)) {
  T *from, *to;
  cudaMalloc(&from, 32 * sizeof(T));
  cudaMalloc(&to, 32 * sizeof(T));
  write<<<1, 32>>>(from);
  read<<<1, 32>>>(from, to);
  return cudaDeviceSynchronize();
}
extern "C" int padding() { return launched(number_in_front, copy); }
extern "C" int missing() { return launched(number_behind, copy); }
extern "C" int half_a_pair() { return launched(one_of_two, swap_two); }

// Structures with padding behind and between their members.
struct Best { float value; int place; bool valid; };
struct Tagged { char tag; int number; };
struct Wide { double value; short kind; };
struct Small { short number; char tag; };
struct alignas(16) Row { float x, y, z, w; int number; };
__device__ void set(Best& b, int n) { b.value = n; b.place = n; b.valid = n % 2; }
__device__ void set(Tagged& t, int n) { t.tag = n; t.number = n; }
__device__ void set(Wide& w, int n) { w.value = n; w.kind = n; }
__device__ void set(Small& s, int n) { s.number = n; s.tag = n; }
__device__ void set(Row& r, int n) { r.x = r.y = r.z = r.w = n; r.number = n; }
__device__ int sum(const Best& b) { return b.valid ? b.value + b.place : 0; }
__device__ int sum(const Tagged& t) { return t.tag + t.number; }
__device__ int sum(const Wide& w) { return w.value + w.kind; }
__device__ int sum(const Small& s) { return s.number + s.tag; }
__device__ int sum(const Row& r) { return r.x + r.y + r.z + r.w + r.number; }

template <class T> __global__ void fill(T* all) { set(all[threadIdx.x], threadIdx.x); }
template <class T> __global__ void pass_on(T* all) {
  __shared__ T held[64];
  const int t = threadIdx.x;
  set(held[32 + t], t);
  held[t] = all[t];
  __syncwarp();
  const T other = t % 3 ? held[31 - t] : held[32 + t];
  __syncwarp();
  if (sum(other) > 5) held[t] = other;
  __syncwarp();
  all[t] = held[t];
}
template <class T> __global__ void add_up(const T* all, int* out) {
  T best = all[threadIdx.x];
  for (int n = 0; n < 32; ++n) {
    if (sum(all[n]) > sum(best)) best = all[n];
  }
  out[threadIdx.x] = sum(best);
}
template <class T> int copied() {
  T* all;
  int* out;
  cudaMalloc(&all, 32 * sizeof(T));
  cudaMalloc(&out, 32 * sizeof(int));
  fill<<<1, 32>>>(all);
  pass_on<<<1, 32>>>(all);
  pass_on<<<1, 32>>>(all);
  add_up<<<1, 32>>>(all, out);
  return cudaDeviceSynchronize();
}
extern "C" int copies_of_best() { return copied<Best>(); }
extern "C" int copies_of_tagged() { return copied<Tagged>(); }
extern "C" int copies_of_wide() { return copied<Wide>(); }
extern "C" int copies_of_small() { return copied<Small>(); }
extern "C" int copies_of_row() { return copied<Row>(); }

// Of 8 bytes the first two are written.
__device__ unsigned long long partly(const char* p) {
  unsigned long long value;
  asm volatile("ld.u64 %0, [%1];" : "=l"(value) : "l"(p));  // partly
  return value;
}
__device__ int none(const char* p) {
  int value;
  asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(p + 8));  // none
  return value;
}
__global__ void written_part(char* p, long long* out) {
  const unsigned long long value = partly(p);
  out[0] = (value & 0xffff) + (unsigned short)value + (value << 48 >> 50);
}
__global__ void thrown_away(char* p, long long* out) {
  const int value = none(p);
  int chosen;
  asm volatile("{ .reg .pred q; setp.lt.u32 q, %2, 32; selp.b32 %0, 7, %1, q; }"
               : "=r"(chosen) : "r"(value), "r"(threadIdx.x));
  out[threadIdx.x] = chosen;
}
__global__ void shuffled_away(char* p, long long* out) {
  int value = threadIdx.x ? none(p) : 5;
  out[threadIdx.x] = __shfl_sync(~0u, value, 0);
}
__global__ void other_part(char* p, long long* out) { out[0] = partly(p) >> 16 & 0xff; }
__global__ void arithmetic(char* p, long long* out) { out[0] = partly(p) + 1; }
__global__ void branch(char* p, long long* out) { if (none(p) > 3) __nanosleep(1); }
__global__ void address(char* p, long long* out) { out[1] = p[none(p) & 1]; }
__global__ void update(char* p, long long* out) { atomicAdd((int*)out, none(p)); }
__global__ void shuffled(char* p, long long* out) {
  int value = threadIdx.x == 3 ? none(p) : 5;
  out[threadIdx.x] = __shfl_sync(~0u, value, 3);
}
__global__ void vote(char* p, long long* out) { out[threadIdx.x] = __any_sync(~0u, none(p) > 3); }
__global__ void through_shared(char* p, long long* out) {
  __shared__ int held[32];
  held[threadIdx.x] = none(p);
  __syncwarp();
  out[threadIdx.x] = held[31 - threadIdx.x];
}
int followed(void (*kernel)(char*, long long*)) {
  char* p;
  long long* out;
  cudaMalloc(&p, 16);
  cudaMalloc(&out, 32 * sizeof *out);
  cudaMemset(p, 0, 2);
  cudaMemset(out, 0, 32 * sizeof *out);
  kernel<<<1, 32>>>(p, out);
  return cudaDeviceSynchronize();
}
// An exchange whose result nobody wants is a store; an addition is none.
__global__ void exchanged(int* p) {
  __shared__ int sum;
  if (threadIdx.x == 0) atomicExch(&sum, 0);
  if (threadIdx.x == 0) atomicExch(p, 0);
  __syncthreads();
  atomicAdd(&sum, 1);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(p, sum);
}
__global__ void added(int* p) {
  atomicAdd(p, 1);
}
int on_new_memory(void (*kernel)(int*)) {
  int* p;
  cudaMalloc(&p, sizeof *p);
  kernel<<<1, 32>>>(p);
  return cudaDeviceSynchronize();
}
extern "C" int run_exchanged() { return on_new_memory(exchanged); }
extern "C" int run_added() { return on_new_memory(added); }

// A variable that some threads have not set.
__global__ void half_set(const float* in, float* out, int n) {
  float value;
  if (threadIdx.x < n) value = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  if (threadIdx.x == 0) *out = value;
}
extern "C" int sum_of_half() {
  float *in, *out, sum;
  cudaMalloc(&in, 16 * sizeof *in);
  cudaMalloc(&out, sizeof *out);
  cudaMemset(in, 0, 16 * sizeof *in);
  half_set<<<1, 32>>>(in, out, 16);
  cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost);
  return sum != 0;
}

// cp.async that reads as many bytes as there are, and fills the rest with zeros.
__global__ void copied_row(const float* in, float* out, int bytes, int more) {
  __shared__ alignas(16) float row[4];
  const unsigned at = __cvta_generic_to_shared(row);
  const int read = bytes + more;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(in), "r"(read) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int n = 0; n < 4; ++n) out[n] = row[n];
}
int row_of(int bytes, int more) {
  char* in;
  float* out;
  cudaMalloc(&in, bytes);
  cudaMemset(in, 0, bytes);
  cudaMalloc(&out, 16);
  copied_row<<<1, 1>>>(reinterpret_cast<float*>(in), out, bytes, more);
  cudaDeviceSynchronize();
  return 0;
}
extern "C" int whole_row() { return row_of(16, 0); }
extern "C" int short_row() { return row_of(12, 0); }
extern "C" int odd_row() { return row_of(7, 0); }
extern "C" int row_past_the_end() { return row_of(12, 4); }
#define FOLLOWED(name) extern "C" int run_##name() { return followed(name); }
FOLLOWED(written_part) FOLLOWED(thrown_away) FOLLOWED(shuffled_away)
FOLLOWED(other_part) FOLLOWED(arithmetic) FOLLOWED(branch) FOLLOWED(address) FOLLOWED(update)
FOLLOWED(shuffled) FOLLOWED(vote) FOLLOWED(through_shared)
"""
LINES = marked_lines(SOURCE)


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "uninitialised.so", *LIBRARY)


def found(library: Path, function: str, options: Options | None = None) -> list[tuple[str, set[int]]]:
    """Kind and line of each finding."""
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        return [(finding.kind, {finding.line}) for finding in simulator.take_findings()]


@pytest.mark.parametrize(
    ("function", "kinds"),
    [("padding", []), ("missing", ["uninit_global"]), ("half_a_pair", ["uninit_global"])],
)
def test_padding_is_told_from_what_is_missing(function: str, kinds: list[str], library: Path) -> None:
    assert [kind for kind, _line in found(library, function)] == kinds


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("structure", ["best", "tagged", "wide", "small", "row"])
def test_structures_are_copied_with_their_padding(structure: str, options: Options, library: Path) -> None:
    assert found(library, f"copies_of_{structure}", options) == []


@pytest.mark.parametrize("kernel", ["written_part", "thrown_away", "shuffled_away"])
def test_what_decides_nothing_is_no_error(kernel: str, library: Path) -> None:
    assert found(library, f"run_{kernel}") == []


@pytest.mark.parametrize(
    ("kernel", "load"),
    [
        ("other_part", "partly"),
        ("arithmetic", "partly"),
        *(
            (kernel, "none")
            for kernel in ("branch", "address", "update", "shuffled", "vote", "through_shared")
        ),
    ],
)
def test_what_decides_something_is_told_where_it_was_loaded(kernel: str, load: str, library: Path) -> None:
    assert found(library, f"run_{kernel}") == [("uninit_global", LINES[load])]


def test_an_exchange_that_nobody_looks_at_reads_nothing(library: Path) -> None:
    assert found(library, "run_exchanged") == []
    assert [kind for kind, _line in found(library, "run_added")] == ["uninit_global"]


def test_a_variable_that_is_not_set_is_no_zero_in_the_reversed_order(library: Path) -> None:
    for order, wrong in ((Order.PROGRAM, 0), (Order.REVERSED, 1)):
        with Simulator(Options(order=order)) as simulator:
            simulator.load(library)
            assert call(simulator, library, "sum_of_half") == wrong


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize(
    ("function", "kinds"),
    [("whole_row", []), ("short_row", []), ("odd_row", []), ("row_past_the_end", ["global_oob"])],
)
def test_an_asynchronous_copy_reads_what_it_is_told_to_read(
    function: str, kinds: list[str], options: Options, library: Path
) -> None:
    assert [kind for kind, _line in found(library, function, options)] == kinds
