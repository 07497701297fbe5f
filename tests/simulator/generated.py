"""Programs made from patterns: each with what it needs in order, and each with one thing left out.

    python tests/simulator/generated.py

A pattern is a kernel template over the type of its values, the memory that they are in, and whether it is
right. A wrong one lacks a barrier, an atomic, a buffer or an event, and its race must be found; a right one
must have no finding. All are functions of one library. Patterns in steps are written once for all scopes.

The command runs all programs on the simulator, writes what it saw to ``generated_sim.json``, and prints the
table; ``corpus.py --table`` puts it into ``docs/corpus.md``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import handed_over
from handed_over import TYPES, HandedOver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.simulator.driver import Options

SOURCE = """
#include <cooperative_groups.h>
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
  if (Right) __threadfence();
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

// The same patterns in steps. A member of a group takes part in each step with what others left in the one
// before. `m` holds two values for each of `n` members; `h` is half of them, so that partners are far apart.
#define STEPS(name, count) \
  template <class X> struct name { \
    static constexpr int steps = count; \
    static __device__ void step(int k, X* m, X* out, int i, int n, int h) {
#define END } };
STEPS(exchange, 2)
  if (k == 0) m[i] = Value<X>::of(i + 3);
  else out[i] = m[i ^ h];
END
STEPS(reduction, 2)
  if (k == 0 && i < h) m[i] = add(m[i], m[i + h]);
  if (k == 1 && i < h / 2) out[i] = add(m[i], m[i + h / 2]);
END
STEPS(scan, 2)
  if (k == 0) m[n + i] = i >= h ? add(m[i], m[i - h]) : add(m[i], m[i]);
  else out[i] = i >= h / 2 ? add(m[n + i], m[n + i - h / 2]) : m[n + i];
END
STEPS(stencil, 2)
  if (k == 0) out[i] = add(m[i], m[(i + h) % n]);
  else m[i] = add(out[i], out[i]);
END
STEPS(transpose, 2)
  const int rows = n < 128 ? 4 : 16;
  if (k == 0) m[i % rows * (n / rows) + i / rows] = Value<X>::of(3 * i + 1);
  else out[i] = m[i];
END
STEPS(gather, 2)
  if (k == 0) m[i] = Value<X>::of(i + 5);
  else out[i] = m[(i * 45 + h) % n];
END
STEPS(double_buffer, 3)
  if (k == 0) m[n + i] = add(m[i], m[(i + h) % n]);
  else if (k == 1) m[i] = add(m[n + i], m[n + (i + h) % n]);
  else out[i] = add(m[i], m[(i + h) % n]);
END
STEPS(histogram, 3)
  if (k == 0) m[i] = Value<X>::of(0);
  else if (k == 1) m[(i * 3 + h) % n] = add(m[(i * 3 + h) % n], Value<X>::of(i));
  else out[i] = m[(i + h) % n];
END
STEPS(queue, 2)
  if (k == 0 && i < h) m[i] = Value<X>::of(i + 1);
  if (k == 1 && i >= h) out[i] = m[i - h];
END
STEPS(push, 2)
  if (k == 0) m[n + (i * 5 + h) % n] = Value<X>::of(i + 1);
  else out[i] = m[n + i];
END
STEPS(pull, 2)
  if (k == 0) m[i] = add(m[i], m[i]);
  else out[i] = add(m[(i * 5 + h) % n], m[(i * 7 + h) % n]);
END
STEPS(list, 2)
  if (k == 0) m[i] = Value<X>::of((i + h) % n);
  else out[i] = m[Value<X>::in(m[i ^ h]) % n];
END
STEPS(broadcast, 2)
  if (k == 0 && i == h) m[0] = Value<X>::of(9);
  if (k == 1) out[i] = add(m[0], m[0]);
END
STEPS(compaction, 2)
  if (k == 0 && i % 2) m[n + i / 2] = add(m[i], m[i]);
  if (k == 1 && i < h) out[i] = m[n + i];
END

enum Scope { lane, warp, between, grid };
template <class X, template <class> class P, Scope scope, bool Shared, bool Right>
__global__ void in_steps(X* p, X* q, int* arrived) {
  constexpr int n = scope == lane ? 32 : scope == warp ? block : blocks * block;
  __shared__ X tile[Shared ? 2 * block : 1];
  const int group = scope == lane ? B * block / 32 + T / 32 : scope == warp ? B : 0;
  const int i = scope == lane ? T % 32 : scope == warp ? T : B * block + T;
  X* const m = Shared ? tile + (scope == lane ? T / 32 * 64 : 0) : p + 2 * n * group;
  if (scope < between) {
    m[i] = Value<X>::of(7 * i + 1);
    m[i + n] = Value<X>::of(5 * i + 2);
    __syncthreads();
  }
  for (int k = 0; k < P<X>::steps; ++k) {
    P<X>::step(k, m, q + n * group, i, n, n / 2);
    if (scope == lane) {
      LANES;
    } else if (scope == warp) {
      WARPS;
    } else if (scope == between) {
      __syncthreads();
      if (Right && T == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < (k + 1) * blocks) {}
        __threadfence();
      }
      __syncthreads();
    } else if (Right) {
      cooperative_groups::this_grid().sync();
    } else {
      __syncthreads();
    }
  }
}
template <class X, template <class> class P> __global__ void one_step(X* p, X* q, int k) {
  constexpr int n = blocks * block;
  P<X>::step(k, p, q, B * block + T, n, n / 2);
}

struct Buffers {
  static constexpr size_t size = 1 << 15;
  void *p, *q;
  int* n;
  Buffers() {
    cudaMalloc(&p, size);
    cudaMalloc(&q, size);
    cudaMalloc(&n, 64 * sizeof(int));
    cudaMemset(p, 3, size);
    cudaMemset(q, 5, size);
    cudaMemset(n, 0, 64 * sizeof(int));
    cudaDeviceSynchronize();
  }
  // The error of what has been launched; both buffers are summed up in `numbers`.
  int finish();
};
extern "C" {
unsigned long long numbers;
}
int Buffers::finish() {
  const int error = cudaDeviceSynchronize();
  static unsigned char seen[2 * size];
  cudaMemcpy(seen, p, size, cudaMemcpyDeviceToHost);
  cudaMemcpy(seen + size, q, size, cudaMemcpyDeviceToHost);
  numbers = 14695981039346656037ull;
  for (unsigned char c : seen) numbers = (numbers ^ c) * 1099511628211ull;
  cudaFree(p);
  cudaFree(q);
  cudaFree(n);
  return error;
}
template <class X> int in_one(void (*kernel)(X*, X*, int*)) {
  Buffers b;
  kernel<<<blocks, block>>>((X*)b.p, (X*)b.q, b.n);
  return b.finish();
}
template <class X> int together(void (*kernel)(X*, X*, int*)) {
  Buffers b;
  void* arguments[] = {&b.p, &b.q, &b.n};
  cudaLaunchCooperativeKernel((void*)kernel, dim3(blocks), dim3(block), arguments, 0, nullptr);
  return b.finish();
}
struct Streams {
  cudaStream_t first, second;
  cudaEvent_t done;
  Streams() {
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreate(&done);
  }
  ~Streams() {
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaEventDestroy(done);
  }
};
template <class X> int in_two(void (*kernel)(X*, X*, int*), bool waits) {
  Buffers b;
  Streams s;
  kernel<<<blocks, block, 0, s.first>>>((X*)b.p, (X*)b.q, nullptr);
  cudaEventRecord(s.done, s.first);
  if (waits) cudaStreamWaitEvent(s.second, s.done, 0);
  kernel<<<blocks, block, 0, s.second>>>((X*)b.p, (X*)b.q, b.n);
  return b.finish();
}
template <class X, template <class> class P> int in_turns(bool waits) {
  Buffers b;
  Streams s;
  for (int k = 0; k < P<X>::steps; ++k) {
    const cudaStream_t mine = k % 2 ? s.second : s.first;
    if (waits && k) cudaStreamWaitEvent(mine, s.done, 0);
    one_step<X, P><<<blocks, block, 0, mine>>>((X*)b.p, (X*)b.q, k);
    cudaEventRecord(s.done, mine);
  }
  return b.finish();
}
"""

WITHIN = (
    *("lanes_exchange", "lanes_gather", "lanes_shift", "lanes_reduce", "warps_exchange", "warps_reduce"),
    *("warps_scan", "warps_stencil", "warps_transpose", "warps_gather", "warps_two_buffers"),
)
BETWEEN = (
    *("blocks_one_place", "blocks_histogram", "blocks_halo", "blocks_transpose", "blocks_push"),
    *("blocks_pull", "blocks_queue", "blocks_last", "blocks_lock", "blocks_flag"),
)
STREAMS = ("streams_produce", "streams_halves")
SCOPES = {"lane": "lanes", "warp": "warps", "block": "blocks", "grid": "grids", "stream": "streams"}
STEPS = tuple(re.findall(r"^STEPS\((\w+), ", SOURCE, re.MULTILINE))
RECORD = Path(__file__).with_name("generated_sim.json")
CALL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
numbers = ctypes.c_ulonglong.in_dll(library, "numbers")
for line in sys.stdin:
    print(getattr(library, line.strip())(), numbers.value, flush=True)
"""


@dataclass(frozen=True)
class Generated:
    """One program.

    Attributes:
        pattern: what its kernel does.
        scope: between whom the race is: lanes of a warp, warps of a block, blocks, blocks of a grid that
            synchronises, streams.
        size: bytes of a value.
        shared: whether the values are in shared memory.
        kind: of its race, empty if it is right.
    """

    pattern: str
    scope: str
    size: int
    shared: bool
    kind: str

    @property
    def name(self) -> str:
        memory = "shared" if self.shared else "global"
        return f"{self.pattern}_{self.scope}_{self.size}_{memory}_{'wrong' if self.kind else 'right'}"

    @property
    def twin(self) -> Generated:
        """The right program that is like this one."""
        return replace(self, kind="")

    @property
    def beside(self) -> frozenset[str]:
        """Kinds of findings that are right beside the race."""
        return frozenset()

    @property
    def function(self) -> str:
        """The C++ function that runs it and returns CUDA's error."""
        right, shared = str(not self.kind).lower(), str(self.shared).lower()
        value = TYPES[self.size]
        if self.pattern not in STEPS:
            kernel = f"{self.pattern}<{value}, {shared}, {right}>"
            in_turn = str(self.pattern == "streams_produce" and not self.kind).lower()
            started = f"in_two({kernel}, {in_turn})" if self.scope == "stream" else f"in_one({kernel})"
        elif self.scope == "stream":
            started = f"in_turns<{value}, {self.pattern}>({right})"
        else:
            scope = "between" if self.scope == "block" else self.scope
            kernel = f"in_steps<{value}, {self.pattern}, {scope}, {shared}, {right}>"
            started = f"{'together' if self.scope == 'grid' else 'in_one'}({kernel})"
        return f'extern "C" int {self.name}() {{ return {started}; }}'


@dataclass(frozen=True)
class Seen:
    """What a simulator saw of a program: kinds of findings, and a sum of what it left in memory."""

    kinds: frozenset[str]
    numbers: int


def _kind(scope: str, *, shared: bool) -> str:
    if scope == "stream":
        return "race_stream"
    if not shared:
        return "race_global"
    return "race_warp" if scope == "lane" else "race_shared"


Program = Generated | HandedOver


def generate() -> list[Program]:
    """All programs, in a fixed order."""
    plural = {several: scope for scope, several in SCOPES.items()}
    by_hand = [(name, plural[name.partition("_")[0]]) for name in (*WITHIN, *BETWEEN, *STREAMS)]
    steps: list[Program] = [
        Generated(pattern, scope, size, shared, kind)
        for pattern, scope in (*by_hand, *itertools.product(STEPS, SCOPES))
        for shared in ((False, True) if scope in ("lane", "warp") else (False,))
        for size in TYPES
        for kind in ("", _kind(scope, shared=shared))
    ]
    return steps + handed_over.generate()


def source(programs: Sequence[Program]) -> str:
    """One library with a function of each program's name."""
    return SOURCE + handed_over.SOURCE + "\n".join(program.function for program in programs) + "\n"


def run(library: Path, programs: Sequence[Program], options: Options) -> dict[str, Seen]:
    """What a simulator sees of each program, by name; all are called in one process.

    Raises:
        RuntimeError: a program ended with an error.
    """
    from grader.simulator.driver import LIBRARIES, SOCKET_VARIABLE, Simulator  # noqa: PLC0415 (not on a GPU)

    seen = {}
    with Simulator(options) as simulator:
        simulator.load(library)
        with simulator.client_socket() as channel:
            environment = {"LD_LIBRARY_PATH": str(LIBRARIES), SOCKET_VARIABLE: str(channel.fileno())}
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", CALL, str(library)],
                env={**os.environ, **environment},
                pass_fds=[channel.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            for program in programs:
                process.stdin.write(f"{program.name}\n")
                process.stdin.flush()
                error, _, numbers = process.stdout.readline().partition(" ")
                if error != "0":
                    raise RuntimeError(f"{program.name} ended with {error or 'its process'}")
                kinds = frozenset(finding.kind for finding in simulator.take_findings())
                seen[program.name] = Seen(kinds, int(numbers))
    return seen


def build(programs: Sequence[Program], folder: Path) -> Path:
    """The library of some programs, for the simulator."""
    from built_programs import LIBRARY  # noqa: PLC0415 (not on a GPU)

    file = folder / f"{programs[0].name}.cu"
    file.write_text(source(programs))
    built = file.with_suffix(".so")
    subprocess.run(["nvcc", "-O1", *LIBRARY, "-o", built, file], check=True)
    return built


@dataclass
class Row:
    """What the simulator saw of the programs of one pattern, scope and memory.

    Attributes:
        racy: programs with a race.
        found: of these, those whose race it reports in one of two orders of blocks and warps.
        changed: of these, those that leave other numbers than their right twin in one of the orders.
        clean: programs without a race.
        missed: names of racy programs that are not found.
        reported: names of programs with a finding that is not planted.
    """

    racy: int = 0
    found: int = 0
    changed: int = 0
    clean: int = 0
    missed: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)


def examine(programs: Sequence[Program], folder: Path) -> list[dict[str, Seen]]:
    """What is seen of the programs in each of the two orders of blocks and warps."""
    from grader.simulator.driver import Options, Order  # noqa: PLC0415 (not on a GPU)

    library = build(programs, folder)
    return [run(library, programs, Options(order=order)) for order in (Order.PROGRAM, Order.REVERSED)]


def add(rows: dict[str, Row], programs: Sequence[Program], runs: Sequence[Mapping[str, Seen]]) -> None:
    """Add what the runs saw of the programs to the rows, whose keys tell pattern, scope and memory."""
    for program in programs:
        key = f"{program.pattern} {program.scope} {'shared' if program.shared else 'global'}"
        row = rows.setdefault(key, Row())
        kinds = {kind for seen in runs for kind in seen[program.name].kinds}
        if program.kind:
            right = runs[0][program.twin.name].numbers
            row.racy += 1
            row.found += program.kind in kinds
            row.changed += any(seen[program.name].numbers != right for seen in runs)
        else:
            row.clean += 1
        if program.kind and program.kind not in kinds:
            row.missed.append(program.name)
        if kinds - {program.kind} - program.beside:
            row.reported.append(program.name)


def read(path: Path) -> dict[str, Row]:
    """The rows that a file holds."""
    return {key: Row(**row) for key, row in json.loads(path.read_text()).items()}


def table(rows: Mapping[str, Row]) -> str:
    """The rows as Markdown, a line for each scope and memory."""
    text = [
        "| between | memory | patterns | racy | found | numbers differ, too | right | reported |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    places: dict[tuple[str, str], list[Row]] = {}
    for key, row in rows.items():
        _, scope, memory = key.split()
        places.setdefault((scope, memory), []).append(row)
    for scope, memory in sorted(places, key=lambda place: (list(SCOPES).index(place[0]), place[1])):
        mine = places[scope, memory]
        cells = [
            *(
                SCOPES[scope],
                memory,
                len(mine),
                sum(row.racy for row in mine),
                sum(row.found for row in mine),
            ),
            *(sum(row.changed for row in mine), sum(row.clean for row in mine)),
            sum(len(row.reported) for row in mine),
        ]
        text.append(f"| {' | '.join(map(str, cells))} |")
    racy, found = sum(row.racy for row in rows.values()), sum(row.found for row in rows.values())
    clean = sum(row.clean for row in rows.values())
    text += ["", f"In all {racy} racy programs, of which {found} are found, and {clean} right ones."]
    return "\n".join(text) + "\n"


def main() -> int:
    """Run all programs on the simulator; 1 if it misses a race or reports one that is not there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, default=RECORD, help="where the rows go")
    arguments = parser.parse_args()
    rows: dict[str, Row] = {}
    parts = [[program for program in generate() if program.size == size] for size in TYPES]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for part, runs in zip(parts, pool.map(lambda part: examine(part, Path(folder)), parts), strict=True):
            add(rows, part, runs)
    content = {key: asdict(row) for key, row in rows.items()}
    arguments.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    sys.stdout.write(table(rows))
    wrong = [name for row in rows.values() for name in (*row.missed, *row.reported)]
    sys.stdout.write("".join(f"not as planted: {name}\n" for name in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
