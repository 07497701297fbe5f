"""CUB and thrust do nothing wrong, however much it looks like it: no finding, whatever the order."""

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
    ],
)
def test_libraries_run_right_and_clean(function: str, options: Options, library: Path) -> None:
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize(30)
        assert simulator.unsupported() == ()
        assert simulator.take_findings() == ()
