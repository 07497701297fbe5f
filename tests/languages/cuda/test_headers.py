from __future__ import annotations

import pytest

from grader.languages.cuda.headers import missing

HEADERS = ("softmax_kernel.cu", "row.cuh", "inc/tile.cuh", "../inc/warp.cuh")


def log(name: str, includer: str = "softmax_kernel.cu", quotes: str = '""') -> str:
    line = f"   21 | #include {quotes[0]}{name}{quotes[1]}"
    return f"{includer}:21:10: fatal error: {name}: No such file or directory\n{line}\n      |   ^~~~"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (log("includes/row.cuh"), 'Write #include "row.cuh".'),
        (log("/home/doe/hw3/row.cuh"), 'Write #include "row.cuh".'),
        (log("C:\\Users\\Jane Doe\\tile.cuh"), 'Write #include "inc/tile.cuh".'),
        (log("row.cuh", "inc/tile.cuh"), 'Write #include "../row.cuh".'),
        (
            log("row.cuh", "../lost.cuh"),
            "row.cuh is not where the compiler looks for it. Put it beside ../lost",
        ),
        (log("row.cuh", quotes="<>"), 'Write #include "row.cuh".'),
        (log("../include/sum.cuh"), "../include/sum.cuh was not found near softmax_kernel.cu"),
        (log("/home/doe/sum.cuh"), 'Put the header beside softmax_kernel.cu and write #include "sum.cuh".'),
        (log("C:\\hw3\\sum.cuh"), 'Put the header beside softmax_kernel.cu and write #include "sum.cuh".'),
        (log("../sum.cuh", "inc/tile.cuh"), "../sum.cuh was not found beside softmax_kernel.cu or near it."),
        (log("sum.cuh"), "sum.cuh was not found beside softmax_kernel.cu or near it. Hand in the folder"),
        (log("warp.cuh"), 'Write #include "../inc/warp.cuh".'),
        (log("nccl/nccl.h", quotes="<>"), "the header <nccl/nccl.h> is not available here. Do without it"),
    ],
)
def test_a_header_that_is_not_found_is_told_with_what_to_do(said: str, advice: str) -> None:
    assert advice in missing(said, "softmax_kernel.cu", HEADERS)


def test_other_errors_are_of_no_header() -> None:
    assert missing("softmax_kernel.cu(2): error: expected a ';'", "softmax_kernel.cu", HEADERS) == ""
