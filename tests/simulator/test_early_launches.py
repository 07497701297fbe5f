"""Launches that may begin before the one ahead has ended, of kernels that wait for it and that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from built_programs import LIBRARY, call

from grader.records.gaps import Gap, GapKind
from grader.records.sentences import sentence
from grader.simulator.driver import Finding, Options, Simulator

if TYPE_CHECKING:
    from pathlib import Path

    from built_programs import Compile

SOURCE = """
__global__ void hasty(float* p) { p[threadIdx.x] += 1; }

// Not inlined: the wait is in the code of another function than the kernel.
__noinline__ __device__ void wait() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
__global__ void patient(float* p) {
  wait();
  p[threadIdx.x] += 1;
}

__global__ void helpful(float* p) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  p[threadIdx.x] += 1;
}

// 0 if two launches have added 2 everywhere.
static int launched(void (*kernel)(float*), cudaLaunchAttribute attribute) {
  float* data;
  float host[32] = {};
  cudaMalloc(&data, sizeof host);
  cudaMemset(data, 0, sizeof host);
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  for (int launch = 0; launch < 2; ++launch) {
    if (const auto error = cudaLaunchKernelEx(&config, kernel, data)) return error;
  }
  cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
  for (const float value : host) if (value != 2) return -1;
  return 0;
}
static int serialized(void (*kernel)(float*), int allowed) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = allowed;
  return launched(kernel, attribute);
}

extern "C" int hasty_early() { return serialized(hasty, 1); }
extern "C" int hasty_in_turn() { return serialized(hasty, 0); }
extern "C" int patient_early() { return serialized(patient, 1); }
extern "C" int helpful_early() { return serialized(helpful, 1); }
extern "C" int all_early() { return hasty_early() | patient_early() | helpful_early(); }
extern "C" int hinted() {
  cudaLaunchAttribute policy = {}, priority = {}, carveout = {};
  policy.id = cudaLaunchAttributeAccessPolicyWindow;
  priority.id = cudaLaunchAttributePriority;
  priority.val.priority = -1;
  carveout.id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  carveout.val.sharedMemCarveout = 50;
  for (const auto& attribute : {policy, priority, carveout}) {
    if (const int error = launched(hasty, attribute)) return error;
  }
  return 0;
}
extern "C" int clustered() {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {1, 1, 1};
  return launched(hasty, attribute);
}
"""
NEWER = ("-gencode", "arch=compute_90,code=compute_90", *LIBRARY[2:])


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "early.so", *LIBRARY)


@pytest.fixture(scope="module")
def newer(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "early_90.so", *NEWER)


def findings(library: Path, function: str, options: Options | None = None) -> tuple[Finding, ...]:
    """Those of a function, which must have computed what it should."""
    with Simulator(options or Options()) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        assert simulator.unsupported() == ()
        return simulator.take_findings()


def test_an_early_launch_that_nothing_holds_back_is_found_once(library: Path) -> None:
    (finding,) = findings(library, "hasty_early")
    assert (finding.tool, finding.kind, finding.file, finding.line) == ("racecheck", "early_launch", "", 0)
    assert "hasty" in finding.kernel
    assert "never waits" in str(sentence(finding))


def test_every_kernel_has_a_finding_of_its_own(library: Path) -> None:
    kernels = [finding.kernel for finding in findings(library, "all_early")]
    assert len(kernels) == len(set(kernels)) == 3


def test_a_launch_that_is_not_allowed_to_be_early_is_not_found(library: Path) -> None:
    assert findings(library, "hasty_in_turn") == ()


def test_a_kernel_that_waits_is_right(newer: Path) -> None:
    assert findings(newer, "patient_early") == ()


def test_letting_the_next_launch_begin_is_no_wait(newer: Path) -> None:
    assert [finding.kind for finding in findings(newer, "helpful_early")] == ["early_launch"]


def test_who_looks_for_no_races_does_not_hear_of_it(library: Path) -> None:
    assert findings(library, "hasty_early", Options(racecheck=False)) == ()


def test_attributes_that_change_no_result_change_nothing(library: Path) -> None:
    assert findings(library, "hinted") == ()


def test_other_attributes_are_named_as_unknown(library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, "clustered") != 0
        simulator.synchronize()
        assert simulator.unsupported() == (
            Gap(GapKind.CALL, "cudaLaunchKernelExC_with_clusters_which_need_sm_90"),
        )
