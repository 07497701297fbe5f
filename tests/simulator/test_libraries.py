"""CUB, thrust and cooperative groups do nothing wrong, much as it looks like it: no finding in any order."""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, call

from grader.simulator.driver import Options, Simulator


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(Path(__file__).parent / "programs" / "libraries.cu", "libraries.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize(
    "function",
    [
        "unique_in_place",
        "unique_copied",
        "sorted_by_a_comparator",
        "united",
        "largest",
        "many_reduced_by_key",
        "summed_by_two_warps",
    ],
)
def test_libraries_run_right_and_clean(function: str, options: Options, library: Path) -> None:
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        assert simulator.unsupported() == ()
        assert simulator.take_findings() == ()
