"""What is said of a kernel in Triton is in Triton's words, and fits the file that it is in."""

from __future__ import annotations

import pytest

from grader.records.findings import Finding
from grader.simulator.triton_words import in_words_of_triton

PAST = (
    "thread (3,0,0) of block (2,0,0) writes 4 bytes of global memory at 0x1000, which lies 8 bytes behind "
    "the end of an allocation of 20 bytes"
)


def _finding(message: str, kind: str = "global_oob", file: str = "kernel.py") -> Finding:
    return Finding("memcheck", kind, "kernel", file, 3, message)


def test_threads_and_blocks_are_programs() -> None:
    race = (
        "thread (1,0,0) of block (2,0,0) writes what thread (5,0,0) of block (2,0,0) has read: a "
        "__syncthreads() is missing"
    )
    assert in_words_of_triton(_finding(race, "race_global")).message == (
        "program (2,0,0) writes what another of its threads has read: a tl.debug_barrier() is missing"
    )


@pytest.mark.parametrize("descriptors", [True, False])
def test_a_store_by_a_descriptor_is_suspected_where_there_may_be_one(*, descriptors: bool) -> None:
    message = in_words_of_triton(_finding(PAST), descriptors=descriptors).message
    assert message.startswith("program (2,0,0) writes 4 bytes")
    assert "the mask of this access is missing" in message
    assert ("a store by a descriptor" in message) == descriptors


def test_a_finding_in_cuda_stays_as_it_is() -> None:
    assert in_words_of_triton(_finding(PAST, file="kernel.cu")).message == PAST
