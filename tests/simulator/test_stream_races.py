"""Kernels and copies in several streams: what orders them, and what is found where nothing does.

Each function is run with streams in program order and as late as their events allow.
"""

import re
from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile, call, marked_lines

from grader.records.sentences import sentence
from grader.simulator.driver import Options, Simulator

SOURCE = """
#include <cuda_fp16.h>
#include <cstring>
constexpr int n = 4099;
__global__ void write(float* p, float x) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) p[t] = x;  // write
}
__global__ void add(const float* p, float* q) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) q[t] += p[t];  // add
}
__global__ void part(float* p, int from, int to) {
  const int t = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (t < to) p[t] += 1;  // part
}
__global__ void bytes(char* p, int from, int to) {
  const int t = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (t < to) p[t] += 1;
}
__global__ void count(int* p) { atomicAdd(p + threadIdx.x, 1); }

struct Streams {
  cudaStream_t a, b;
  cudaEvent_t event;
  float *p, *q;
  explicit Streams(unsigned flags = cudaStreamNonBlocking) {
    cudaStreamCreateWithFlags(&a, flags);
    cudaStreamCreateWithFlags(&b, flags);
    cudaEventCreate(&event);
    cudaMalloc(&p, n * sizeof(float));
    cudaMalloc(&q, n * sizeof(float));
    cudaMemset(p, 0, n * sizeof(float));
    cudaMemset(q, 0, n * sizeof(float));
    cudaDeviceSynchronize();
  }
  int end() { return cudaDeviceSynchronize(); }
  void produce(cudaStream_t s) { write<<<17, 256, 0, s>>>(p, 3); }
  void consume(cudaStream_t s) { add<<<17, 256, 0, s>>>(p, q); }
};
#define FUNCTION extern "C" int
FUNCTION no_event() { Streams s; s.produce(s.a); s.consume(s.b); return s.end(); }
FUNCTION event() {
  Streams s;
  s.produce(s.a); cudaEventRecord(s.event, s.a); cudaStreamWaitEvent(s.b, s.event, 0); s.consume(s.b);
  return s.end();
}
FUNCTION event_recorded_too_early() {
  Streams s;
  cudaEventRecord(s.event, s.a); s.produce(s.a); cudaStreamWaitEvent(s.b, s.event, 0); s.consume(s.b);
  return s.end();
}
FUNCTION event_not_recorded() {
  Streams s;
  s.produce(s.a); cudaStreamWaitEvent(s.b, s.event, 0); s.consume(s.b);
  return s.end();
}
FUNCTION through_a_third() {
  Streams s;
  cudaStream_t c;
  cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking);
  s.produce(s.a); cudaEventRecord(s.event, s.a); cudaStreamWaitEvent(c, s.event, 0);
  cudaEventRecord(s.event, c); cudaStreamWaitEvent(s.b, s.event, 0); s.consume(s.b);
  return s.end();
}
FUNCTION overwritten_after_reading() { Streams s; s.consume(s.a); s.produce(s.b); return s.end(); }
FUNCTION both_read() {
  Streams s;
  float* other;
  cudaMalloc(&other, n * sizeof(float));
  cudaMemset(other, 0, n * sizeof(float));
  cudaDeviceSynchronize();
  s.consume(s.a); add<<<17, 256, 0, s.b>>>(s.p, other);
  return s.end();
}
FUNCTION one_stream() { Streams s; s.produce(s.a); s.consume(s.a); return s.end(); }
FUNCTION host_waits_for_stream() {
  Streams s; s.produce(s.a); cudaStreamSynchronize(s.a); s.consume(s.b);
  return s.end();
}
FUNCTION host_waits_for_the_other() {
  Streams s; s.produce(s.a); cudaStreamSynchronize(s.b); s.consume(s.b);
  return s.end();
}
FUNCTION host_waits_for_event() {
  Streams s;
  s.produce(s.a); cudaEventRecord(s.event, s.a); cudaEventSynchronize(s.event); s.consume(s.b);
  return s.end();
}
FUNCTION default_stream_between() {
  Streams s(cudaStreamDefault); s.produce(s.a); s.consume(0); s.produce(s.b);
  return s.end();
}
FUNCTION default_stream_of_others() { Streams s; s.produce(s.a); s.consume(0); return s.end(); }
FUNCTION blocking_streams() { Streams s(cudaStreamDefault); s.produce(s.a); s.consume(s.b); return s.end(); }
FUNCTION destroyed_before_the_default_stream() {
  Streams s(cudaStreamDefault);
  s.produce(s.a);
  cudaStreamDestroy(s.a);
  s.consume(0);
  return s.end();
}
FUNCTION chunks() {
  Streams s;
  part<<<9, 256, 0, s.a>>>(s.p, 0, 2051); part<<<9, 256, 0, s.b>>>(s.p, 2051, n);
  return s.end();
}
FUNCTION chunks_that_overlap() {
  Streams s;
  part<<<9, 256, 0, s.a>>>(s.p, 0, 2052); part<<<9, 256, 0, s.b>>>(s.p, 2051, n);
  return s.end();
}
FUNCTION chunks_of_bytes() {
  Streams s;
  char* p = reinterpret_cast<char*>(s.p);
  bytes<<<9, 256, 0, s.a>>>(p, 0, 2051); bytes<<<9, 256, 0, s.b>>>(p, 2051, n);
  return s.end();
}
FUNCTION both_count() {
  Streams s;
  int* p = reinterpret_cast<int*>(s.p);
  count<<<4, 64, 0, s.a>>>(p); count<<<4, 64, 0, s.b>>>(p);
  return s.end();
}
FUNCTION copied_without_event() {
  Streams s;
  float* pinned;
  cudaMallocHost(&pinned, n * sizeof(float));
  memset(pinned, 0, n * sizeof(float));
  cudaMemcpyAsync(s.p, pinned, n * sizeof(float), cudaMemcpyHostToDevice, s.a); s.consume(s.b);
  return s.end();
}
FUNCTION copied_in_its_stream() {
  Streams s;
  float* pinned;
  cudaMallocHost(&pinned, n * sizeof(float));
  memset(pinned, 0, n * sizeof(float));
  cudaMemcpyAsync(s.p, pinned, n * sizeof(float), cudaMemcpyHostToDevice, s.a); s.consume(s.a);
  cudaMemcpyAsync(pinned, s.q, n * sizeof(float), cudaMemcpyDeviceToHost, s.a);
  return s.end();
}
FUNCTION fetched_too_early() {
  Streams s;
  float out[n];
  s.produce(s.a);
  cudaMemcpy(out, s.p, sizeof out, cudaMemcpyDeviceToHost);
  return s.end();
}
FUNCTION filled_by_the_default_stream() {
  Streams s;
  cudaMemset(s.p, 0, n * sizeof(float)); s.produce(s.a);
  return s.end();
}
FUNCTION graph_in_another_stream() {
  Streams s;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal);
  s.produce(s.a); s.consume(s.a);
  cudaStreamEndCapture(s.a, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, s.a); cudaGraphLaunch(executable, s.a);
  s.consume(s.b);
  return s.end();
}
FUNCTION graph_in_its_stream() {
  Streams s;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal);
  s.produce(s.a); s.consume(s.a);
  cudaStreamEndCapture(s.a, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, s.a);
  cudaEventRecord(s.event, s.a); cudaStreamWaitEvent(s.b, s.event, 0);
  s.consume(s.b);
  return s.end();
}
// The second branch reads what the first one has written: before the fork, or behind it.
int forked_graph(bool late_fork, bool joined) {
  Streams s;
  cudaEvent_t done;
  cudaEventCreate(&done);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal);
  if (late_fork) s.produce(s.a);
  cudaEventRecord(s.event, s.a); cudaStreamWaitEvent(s.b, s.event, 0);
  if (!late_fork) s.produce(s.a);
  if (joined) { cudaEventRecord(s.event, s.a); cudaStreamWaitEvent(s.b, s.event, 0); }
  s.consume(s.b);
  cudaEventRecord(done, s.b); cudaStreamWaitEvent(s.a, done, 0);
  s.produce(s.a);
  cudaStreamEndCapture(s.a, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, s.a); cudaGraphLaunch(executable, s.a);
  s.consume(s.a);
  return s.end();
}
FUNCTION branches_in_order() { return forked_graph(true, false); }
FUNCTION branches_that_join() { return forked_graph(false, true); }
FUNCTION branches_without_order() { return forked_graph(false, false); }
FUNCTION allocated_elsewhere() {
  Streams s;
  float* made;
  cudaMallocAsync(reinterpret_cast<void**>(&made), n * sizeof(float), s.a);
  write<<<17, 256, 0, s.b>>>(made, 1);
  cudaDeviceSynchronize();
  cudaGetLastError();
  return 0;
}
FUNCTION allocated_in_its_stream() {
  Streams s;
  float* made;
  cudaMallocAsync(reinterpret_cast<void**>(&made), n * sizeof(float), s.a);
  write<<<17, 256, 0, s.a>>>(made, 1);
  cudaEventRecord(s.event, s.a); cudaStreamWaitEvent(s.b, s.event, 0);
  add<<<17, 256, 0, s.b>>>(made, s.q);
  cudaFreeAsync(made, s.b);
  return s.end();
}
"""
LINES = marked_lines(SOURCE)
RIGHT = (
    *("event", "through_a_third", "both_read", "one_stream", "host_waits_for_stream", "host_waits_for_event"),
    *(
        "default_stream_between",
        "destroyed_before_the_default_stream",
        "chunks",
        "chunks_of_bytes",
        "both_count",
        "copied_in_its_stream",
    ),
    *("graph_in_its_stream", "branches_in_order", "branches_that_join", "allocated_in_its_stream"),
)
WRONG = {
    **dict.fromkeys(
        (
            *("no_event", "event_recorded_too_early", "event_not_recorded", "overwritten_after_reading"),
            *(
                "host_waits_for_the_other",
                "default_stream_of_others",
                "blocking_streams",
                "graph_in_another_stream",
                "branches_without_order",
            ),
        ),
        LINES["write"] | LINES["add"],
    ),
    "chunks_that_overlap": LINES["part"],
    "copied_without_event": LINES["add"],
    "fetched_too_early": LINES["write"],
    "filled_by_the_default_stream": LINES["write"],
}


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "streams.so", *LIBRARY)


def found_in(function: str, late: bool, library: Path) -> list[tuple[str, set[int]]]:
    with Simulator(Options(late_streams=late)) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize(10)
        findings = simulator.take_findings()
    return [
        (f.kind, {f.line, *map(int, re.findall(r"\(line (\d+)\)", str(sentence(f))))} - {0}) for f in findings
    ]


@pytest.mark.parametrize("late", [False, True], ids=["program order", "late streams"])
@pytest.mark.parametrize("function", RIGHT)
def test_ordered_streams_do_not_race(function: str, late: bool, library: Path) -> None:
    assert found_in(function, late, library) == []


@pytest.mark.parametrize("late", [False, True], ids=["program order", "late streams"])
@pytest.mark.parametrize("function", WRONG)
def test_a_race_of_streams_names_the_lines(function: str, late: bool, library: Path) -> None:
    found = found_in(function, late, library)
    assert found
    assert {kind for kind, _ in found} == {"race_stream"}
    assert set().union(*(lines for _, lines in found)) == WRONG[function]


def test_memory_that_another_stream_allocates_is_waited_for(library: Path) -> None:
    assert ("race_stream", LINES["write"]) in found_in("allocated_elsewhere", False, library)
