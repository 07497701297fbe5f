"""Programs made from patterns: each with what it needs in order, and each with one thing left out.

A pattern is a kernel template over the type of its values, the memory that they are in, and whether it is
right. A wrong one lacks a barrier, an atomic, a buffer or an event, and its race must be found; a right one
must have no finding. All are functions of one library.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = """
#include <cstdint>
#define T threadIdx.x
#define B blockIdx.x
constexpr int block = 128, blocks = 4;

struct alignas(16) Wide { unsigned a, b, c, d; };
template <class X> struct Value {
  __device__ static X of(unsigned n) { return X(n); }
  __device__ static unsigned in(X x) { return unsigned(x); }
};
template <> struct Value<Wide> {
  __device__ static Wide of(unsigned n) { return {n, n + 1, n + 2, n + 3}; }
  __device__ static unsigned in(Wide x) { return x.a ^ x.d; }
};
template <class X> __device__ X add(X x, X y) { return Value<X>::of(Value<X>::in(x) + Value<X>::in(y) + 1); }

// The values of a block, in either memory, which begin as the numbers of its threads.
#define VALUES \\
  __shared__ X tile[Shared ? 2 * block : 1]; \\
  X* const m = Shared ? tile : p + 2 * block * B; \\
  X* const out = q + block * B; \\
  m[T] = Value<X>::of(7 * T + 1); \\
  m[T + block] = Value<X>::of(5 * T + 2); \\
  __syncthreads();
#define LANES if (Right) __syncwarp()
#define WARPS if (Right) __syncthreads(); else __syncwarp()
#define PATTERN template <class X, bool Shared, bool Right> __global__ void

PATTERN lanes_exchange(X* p, X* q, int*) {
  VALUES
  m[T] = Value<X>::of(T + 3);
  LANES;
  out[T] = m[T ^ 1];
}
PATTERN lanes_gather(X* p, X* q, int*) {
  VALUES
  const X x = m[T / 32 * 32 + T * 13 % 32];
  LANES;
  m[T] = add(x, x);
}
PATTERN lanes_shift(X* p, X* q, int*) {
  VALUES
  const X x = m[T % 32 ? T - 1 : T];
  LANES;
  m[T] = add(x, x);
}
PATTERN lanes_reduce(X* p, X* q, int*) {
  VALUES
  for (int step = 16; step; step /= 2) {
    if (T % 32 < step) m[T] = add(m[T], m[T + step]);
    LANES;
  }
  if (T % 32 == 0) out[T] = m[T];
}
PATTERN warps_exchange(X* p, X* q, int*) {
  VALUES
  m[T] = Value<X>::of(T + 3);
  WARPS;
  out[T] = m[T ^ 32];
}
PATTERN warps_reduce(X* p, X* q, int*) {
  VALUES
  for (int step = block / 2; step; step /= 2) {
    if (T < step) m[T] = add(m[T], m[T + step]);
    WARPS;
  }
  out[T] = m[0];
}
PATTERN warps_scan(X* p, X* q, int*) {
  VALUES
  for (int step = 1; step < block; step *= 2) {
    const X x = T >= step ? add(m[T], m[T - step]) : m[T];
    WARPS;
    m[T] = x;
    __syncthreads();
  }
  out[T] = m[T];
}
PATTERN warps_stencil(X* p, X* q, int*) {
  VALUES
  const X x = add(m[(T + 1) % block], m[(T + block - 1) % block]);
  WARPS;
  m[T] = x;
}
PATTERN warps_transpose(X* p, X* q, int*) {
  VALUES
  m[T % 8 * 16 + T / 8] = Value<X>::of(3 * T);
  WARPS;
  out[T] = m[T];
}
PATTERN warps_gather(X* p, X* q, int*) {
  VALUES
  const X x = m[T * 45 % block];
  WARPS;
  m[T] = add(x, x);
}
PATTERN warps_two_buffers(X* p, X* q, int*) {
  VALUES
  for (int turn = 0; turn < 4; ++turn) {
    X* const from = m + turn % 2 * block;
    X* const to = m + (turn + 1) % 2 * block;
    to[T] = add(from[T], from[(T + 37) % block]);
    WARPS;
  }
  __syncthreads();
  out[T] = m[T];
}

// Between blocks there is only global memory.
PATTERN blocks_one_place(X* p, X*, int*) {
  if (T == 0) p[Right ? B : 0] = Value<X>::of(B + 1);
}
PATTERN blocks_histogram(X* p, X*, int*) {
  X* const bin = p + (Right ? B * block : 0) + T * 3 % block;
  *bin = add(*bin, *bin);
}
PATTERN blocks_halo(X* p, X* q, int*) {
  X* const to = Right ? q : p;
  const int n = B * block + T;
  to[n] = add(p[n], p[(n + 1) % (blocks * block)]);
}
PATTERN blocks_transpose(X* p, X*, int*) {
  p[T * blocks + (Right ? B : B / 2)] = Value<X>::of(7 * T + B);
}
PATTERN blocks_push(X* p, X*, int*) {
  const int n = B * block + T;
  p[(Right ? n : n % 300) * 5 % (blocks * block)] = Value<X>::of(n + 1);
}
PATTERN blocks_pull(X* p, X* q, int*) {
  const int n = B * block + T;
  (Right ? q : p)[n] = add(p[n * 5 % (blocks * block)], p[n]);
}
PATTERN blocks_queue(X* p, X*, int* count) {
  const int slot = Right ? atomicAdd(count, 1) : *count;
  if (!Right) *count = slot + 1;
  p[slot] = Value<X>::of(B * block + T);
}
PATTERN blocks_last(X* p, X* q, int* count) {
  __shared__ bool last;
  q[B * block + T] = Value<X>::of(B * block + T);
  if (Right) __threadfence();
  __syncthreads();
  if (T == 0) last = atomicAdd(count, 1) == blocks - 1;
  __syncthreads();
  if (!last) return;
  for (int n = 0; n < blocks; ++n) p[T] = add(p[T], q[n * block + T]);
}
PATTERN blocks_lock(X* p, X*, int* lock) {
  if (T) return;
  if (Right) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
  }
  *p = add(*p, Value<X>::of(B));
  if (Right) {
    __threadfence();
    atomicExch(lock, 0);
  }
}
PATTERN blocks_flag(X* p, X* q, int* flag) {
  if (B == 0) {
    p[T] = Value<X>::of(T + 1);
    if (Right) __threadfence();
    __syncthreads();
    if (T == 0) *static_cast<volatile int*>(flag) = 1;
  } else {
    while (*static_cast<volatile int*>(flag) == 0) {}
    __threadfence();
    q[B * block + T] = p[T];
  }
}

// Launched in two streams.
PATTERN streams_produce(X* p, X* q, int* turn) {
  const int n = B * block + T;
  if (!turn) p[n] = Value<X>::of(n + 1); else q[n] = p[n];
}
PATTERN streams_halves(X* p, X*, int* turn) {
  constexpr int all = blocks * block, half = all / 2 + 3;
  const int n = B * block + T;
  if (turn ? n >= half - !Right : n < half) p[n] = add(p[n], p[n]);
}

struct Buffers {
  void *p, *q;
  int* n;
  Buffers() {
    cudaMalloc(&p, 1 << 15);
    cudaMalloc(&q, 1 << 15);
    cudaMalloc(&n, sizeof(int));
    cudaMemset(p, 3, 1 << 15);
    cudaMemset(q, 5, 1 << 15);
    cudaMemset(n, 0, sizeof(int));
    cudaDeviceSynchronize();
  }
};
template <class X> int in_one(void (*kernel)(X*, X*, int*)) {
  Buffers b;
  kernel<<<blocks, block>>>((X*)b.p, (X*)b.q, b.n);
  return cudaDeviceSynchronize();
}
template <class X> int in_two(void (*kernel)(X*, X*, int*), bool waits) {
  Buffers b;
  cudaStream_t first, second;
  cudaEvent_t done;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreate(&done);
  kernel<<<blocks, block, 0, first>>>((X*)b.p, (X*)b.q, nullptr);
  cudaEventRecord(done, first);
  if (waits) cudaStreamWaitEvent(second, done, 0);
  kernel<<<blocks, block, 0, second>>>((X*)b.p, (X*)b.q, b.n);
  return cudaDeviceSynchronize();
}
"""

TYPES = {1: "uint8_t", 2: "uint16_t", 4: "unsigned", 8: "unsigned long long", 16: "Wide"}
WITHIN = (
    *("lanes_exchange", "lanes_gather", "lanes_shift", "lanes_reduce", "warps_exchange", "warps_reduce"),
    *("warps_scan", "warps_stencil", "warps_transpose", "warps_gather", "warps_two_buffers"),
)
BETWEEN = (
    *("blocks_one_place", "blocks_histogram", "blocks_halo", "blocks_transpose", "blocks_push"),
    *("blocks_pull", "blocks_queue", "blocks_last", "blocks_lock", "blocks_flag"),
)
STREAMS = ("streams_produce", "streams_halves")


@dataclass(frozen=True)
class Generated:
    """One program: ``size`` in bytes of a value; ``kind`` of its race, empty if it is right."""

    pattern: str
    size: int
    shared: bool
    kind: str

    @property
    def name(self) -> str:
        memory = "shared" if self.shared else "global"
        return f"{self.pattern}_{self.size}_{memory}_{'wrong' if self.kind else 'right'}"

    @property
    def function(self) -> str:
        right = "false" if self.kind else "true"
        kernel = f"{self.pattern}<{TYPES[self.size]}, {str(self.shared).lower()}, {right}>"
        in_turn = self.pattern == "streams_produce" and not self.kind
        started = (
            f"in_two({kernel}, {str(in_turn).lower()})" if self.pattern in STREAMS else f"in_one({kernel})"
        )
        return f'extern "C" int {self.name}() {{ return {started}; }}'


def _kind(pattern: str, *, shared: bool) -> str:
    scope = pattern.partition("_")[0]
    if scope == "streams":
        return "race_stream"
    if not shared:
        return "race_global"
    return "race_warp" if scope == "lanes" else "race_shared"


def generate() -> list[Generated]:
    """All programs, in a fixed order."""
    return [
        Generated(pattern, size, shared, kind)
        for pattern in (*WITHIN, *BETWEEN, *STREAMS)
        for shared in ((False, True) if pattern in WITHIN else (False,))
        for size in TYPES
        for kind in ("", _kind(pattern, shared=shared))
    ]


def source(programs: list[Generated]) -> str:
    """One library with a function of each program's name."""
    return SOURCE + "\n".join(program.function for program in programs) + "\n"
