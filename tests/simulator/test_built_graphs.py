"""Graphs that a program builds node by node, and copies of pageable memory in graphs of both kinds.

Each function returns 0, or the line of the first check that failed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from built_programs import LIBRARY, Compile, call

from grader.records.gaps import Gap, GapKind
from grader.simulator.driver import Options, Simulator

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
#include <cstring>
#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)
#define OK(call) CHECK((call) == cudaSuccess)
constexpr int n = 1000;
__global__ void scale(float* p, float by) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) p[t] *= by;  // scale
}
__global__ void add(float* p, const float* q) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) p[t] += q[t];  // add
}
static float in[n], out[n];
static int calls;
static void count(void* by) { calls += *static_cast<int*>(by); }

// in -> p; 2 -> q by words; p *= 3 and q *= 5, in any order; p += q; p -> out; a host function.
struct Graph {
  cudaGraph_t graph;
  cudaGraphNode_t copy, set, first, second, sum, back, host;
  cudaKernelNodeParams of_first = {}, of_second = {}, of_sum = {};
  float *p, *q, three = 3, five = 5;
  int one = 1;
  void *first_arguments[2] = {&p, &three}, *second_arguments[2] = {&q, &five}, *sum_arguments[2] = {&p, &q};
  cudaError_t build(bool ordered) {
    cudaMalloc(&p, sizeof in);
    cudaMalloc(&q, sizeof in);
    cudaGraphCreate(&graph, 0);
    cudaMemcpy3DParms box = {};
    box.srcPtr = make_cudaPitchedPtr(in, sizeof in, n, 1);
    box.dstPtr = make_cudaPitchedPtr(p, sizeof in, n, 1);
    box.extent = make_cudaExtent(sizeof in, 1, 1);
    box.kind = cudaMemcpyHostToDevice;
    if (const auto code = cudaGraphAddMemcpyNode(&copy, graph, nullptr, 0, &box)) return code;
    cudaMemsetParams fill = {};
    fill.dst = q;
    fill.elementSize = 4;
    fill.value = 0x40000000;  // 2.0f
    fill.width = n;
    fill.height = 1;
    if (const auto code = cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &fill)) return code;
    of_first.func = of_second.func = reinterpret_cast<void*>(scale);
    of_sum.func = reinterpret_cast<void*>(add);
    of_first.gridDim = of_second.gridDim = of_sum.gridDim = dim3(8);
    of_first.blockDim = of_second.blockDim = of_sum.blockDim = dim3(128);
    of_first.kernelParams = first_arguments;
    of_second.kernelParams = second_arguments;
    of_sum.kernelParams = sum_arguments;
    if (const auto code = cudaGraphAddKernelNode(&first, graph, &copy, 1, &of_first)) return code;
    if (const auto code = cudaGraphAddKernelNode(&second, graph, &set, 1, &of_second)) return code;
    const cudaGraphNode_t both[2] = {first, second};
    if (const auto code = cudaGraphAddKernelNode(&sum, graph, both, ordered ? 2 : 1, &of_sum)) return code;
    const auto kind = cudaMemcpyDeviceToHost;
    auto code = cudaGraphAddMemcpyNode1D(&back, graph, &sum, 1, out, p, sizeof out, kind);
    if (code) return code;
    const cudaHostNodeParams function = {count, &one};
    return cudaGraphAddHostNode(&host, graph, &back, 1, &function);
  }
  void end() {
    cudaGraphDestroy(graph);
    cudaFree(p);
    cudaFree(q);
  }
};
static bool every(float value) {
  for (const float x : out) if (x != value) return false;
  return true;
}
static void fill_in(float value) { for (float& x : in) x = value; }

extern "C" {
int launches() {
  Graph g;
  OK(g.build(true));
  g.three = 100;  // arguments were copied when the node was added
  cudaGraphExec_t executable;
  OK(cudaGraphInstantiate(&executable, g.graph, 0));
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 1; round <= 3; ++round) {
    fill_in(round);
    OK(cudaGraphLaunch(executable, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(every(3 * round + 10));
    CHECK(calls == round);
  }
  OK(cudaGraphExecDestroy(executable));
  g.end();
  return 0;
}
int looks_at_nodes() {
  Graph g;
  OK(g.build(true));
  size_t count = 0;
  OK(cudaGraphGetNodes(g.graph, nullptr, &count));
  CHECK(count == 7);
  cudaGraphNode_t roots[3] = {};
  count = 3;
  OK(cudaGraphGetRootNodes(g.graph, roots, &count));
  CHECK(count == 2 && roots[0] == g.copy && roots[1] == g.set && roots[2] == nullptr);
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(g.back, &type));
  CHECK(type == cudaGraphNodeTypeMemcpy);
  OK(cudaGraphNodeGetType(g.host, &type));
  CHECK(type == cudaGraphNodeTypeHost);
  cudaKernelNodeParams params;
  OK(cudaGraphKernelNodeGetParams(g.first, &params));
  CHECK(params.gridDim.x == 8 && *static_cast<float*>(params.kernelParams[1]) == 3);
  CHECK(cudaGraphKernelNodeGetParams(g.back, &params) == cudaErrorInvalidValue);
  cudaGraphNode_t node;
  Graph other;
  OK(other.build(true));
  CHECK(cudaGraphAddEmptyNode(&node, g.graph, &other.copy, 1) == cudaErrorInvalidValue);
  cudaGetLastError();
  g.end();
  other.end();
  return 0;
}
int changes() {
  Graph g;
  OK(g.build(true));
  cudaGraphExec_t executable;
  OK(cudaGraphInstantiate(&executable, g.graph, 0));
  fill_in(1);
  g.three = 4;
  OK(cudaGraphExecKernelNodeSetParams(executable, g.first, &g.of_first));
  OK(cudaGraphLaunch(executable, 0));
  OK(cudaDeviceSynchronize());
  CHECK(every(14));
  cudaGraph_t copy;  // which has 3 still
  OK(cudaGraphClone(&copy, g.graph));
  cudaGraphNode_t second;
  OK(cudaGraphNodeFindInClone(&second, g.second, copy));
  g.five = 7;
  OK(cudaGraphKernelNodeSetParams(second, &g.of_second));
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(executable, copy, &result));
  CHECK(result.result == cudaGraphExecUpdateSuccess);
  OK(cudaGraphLaunch(executable, 0));
  OK(cudaDeviceSynchronize());
  CHECK(every(17));
  OK(cudaGraphAddEmptyNode(&second, copy, nullptr, 0));
  OK(cudaGraphAddKernelNode(&second, copy, nullptr, 0, &g.of_second));
  CHECK(cudaGraphExecUpdate(executable, copy, &result) == cudaErrorGraphExecUpdateFailure);
  CHECK(cudaGetLastError() == cudaErrorGraphExecUpdateFailure);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(copy));
  g.end();
  return 0;
}
int nests() {
  Graph g;
  OK(g.build(true));
  cudaGraph_t outer;
  OK(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t child, again;
  OK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, g.graph));
  OK(cudaGraphAddKernelNode(&again, outer, &child, 1, &g.of_sum));
  OK(cudaGraphAddMemcpyNode1D(&again, outer, &again, 1, out, g.p, sizeof out, cudaMemcpyDeviceToHost));
  cudaGraphExec_t executable;
  OK(cudaGraphInstantiate(&executable, outer, 0));
  fill_in(1);
  OK(cudaGraphLaunch(executable, 0));
  OK(cudaDeviceSynchronize());
  CHECK(every(23));
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(outer));
  g.end();
  return 0;
}
int captures_pageable_copies() {
  float* p;
  OK(cudaMalloc(&p, sizeof in));
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  fill_in(1);
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMemcpyAsync(p, in, sizeof in, cudaMemcpyHostToDevice, stream));
  scale<<<8, 128, 0, stream>>>(p, 2);
  OK(cudaMemcpyAsync(out, p, sizeof out, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  size_t count = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &count));
  OK(cudaGraphDestroy(graph));
  for (int round = 1; round <= 3; ++round) {  // each launch reads the memory anew
    fill_in(round);
    OK(cudaGraphLaunch(executable, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(every(2 * round));
  }
  OK(cudaGraphExecDestroy(executable));
  OK(cudaFree(p));
  return 0;
}
int forgets_a_dependence() {
  Graph g;
  OK(g.build(false));
  cudaGraphExec_t executable;
  OK(cudaGraphInstantiate(&executable, g.graph, 0));
  OK(cudaGraphLaunch(executable, 0));
  OK(cudaDeviceSynchronize());
  return 0;
}
int lacks_events() {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaEvent_t event;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaEventCreate(&event));
  CHECK(cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, event) == cudaErrorNotSupported);
  return 0;
}
}
"""
RIGHT = ("launches", "looks_at_nodes", "changes", "nests", "captures_pageable_copies")


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "built_graphs.so", *LIBRARY)


@pytest.mark.parametrize("late", [False, True], ids=["program order", "late streams"])
@pytest.mark.parametrize("function", RIGHT)
def test_right_graphs_run_clean_and_leave_nothing(function: str, late: bool, library: Path) -> None:
    with Simulator(replace(Options(), late_streams=late, leak_check=True)) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        assert simulator.unsupported() == ()
        assert simulator.take_findings() == ()


def test_nodes_without_a_dependence_race_as_streams_do(library: Path) -> None:
    with Simulator(Options()) as simulator:
        simulator.load(library)
        assert call(simulator, library, "forgets_a_dependence") == 0
        assert simulator.synchronize()
        assert "race_stream" in {finding.kind for finding in simulator.take_findings()}


def test_a_kind_of_node_that_is_not_simulated_is_named(library: Path) -> None:
    with Simulator(Options()) as simulator:
        simulator.load(library)
        assert call(simulator, library, "lacks_events") == 0
        simulator.synchronize()
        assert simulator.unsupported() == (Gap(GapKind.CALL, "cudaGraphAddEventRecordNode"),)
