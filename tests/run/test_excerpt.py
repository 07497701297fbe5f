"""The lines around a place: the right ones, and none where the place is not the student's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.records.findings import Finding, Line, Place, facts
from grader.run.excerpt import AROUND, MOST_CHARACTERS, excerpt, place_of

SOURCES = {"k.cu": "\n".join(f"line {number}" for number in range(1, 21)).encode()}


def test_a_place_is_shown_with_the_lines_around_it() -> None:
    found = excerpt(SOURCES, "/tmp/build-x/k.cu", 10)
    assert found is not None
    assert found.lines[10 - found.first] == "line 10"
    assert (found.first, len(found.lines)) == (10 - AROUND, 2 * AROUND + 1)


@pytest.mark.parametrize(("line", "numbers"), [(1, range(1, 5)), (20, range(17, 21))])
def test_the_ends_of_a_file_are_not_overrun(line: int, numbers: range) -> None:
    found = excerpt(SOURCES, "k.cu", line)
    assert found is not None
    assert found.lines == [f"line {number}" for number in numbers]
    assert found.first == numbers.start


@pytest.mark.parametrize(
    ("file", "line"), [("cuda_runtime.h", 3), ("k.cu", 0), ("k.cu", 21), ("k.cu", -1), ("", 1)]
)
def test_a_place_that_is_not_the_students_has_no_lines(file: str, line: int) -> None:
    assert excerpt(SOURCES, file, line) is None


def test_an_empty_file_has_no_lines() -> None:
    assert excerpt({"k.cu": b""}, "k.cu", 1) is None


def test_form_feeds_foreign_bytes_and_endless_lines_do_not_shift_or_flood_the_lines() -> None:
    found = excerpt({"k.cu": b"a\x0cb\r\n\xff\r\n" + b"x" * 9999}, "k.cu", 2)
    assert found is not None
    assert found.lines == ["a\x0cb", "\ufffd", "x" * MOST_CHARACTERS]


def test_of_files_with_one_name_the_one_at_the_end_of_the_path_is_meant() -> None:
    sources = {"a/row.cuh": b"in a", "b/row.cuh": b"in b"}
    found = excerpt(sources, "/tmp/b/row.cuh", 1)
    assert found is not None
    assert found.lines == ["in b"]
    assert excerpt(sources, "row.cuh", 1) is None


LAUNCHER = b"""
// ker<<<0, 1>>>() would be wrong
extern "C" void launch(float* x, cudaStream_t stream) {
  cudaMemsetAsync(x, 0, 4, stream);
  one::ker<32, float>
      <<<0, 1, 0, stream>>>(x);
}
"""


def lineless(kernel: str, **known: str) -> Finding:
    return Finding("invalid_launch", "no_stream", kernel, facts=facts(**known))


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (lineless("_ZN3one3kerILi32EfEEvPT0_"), 6),
        (lineless("cudaMemsetAsync"), 4),
        (lineless("", function="launch", library="library.so"), 3),
        (Finding("failed_allocation", "no_memory", facts=facts(call="cudaMemsetAsync")), 4),
        (lineless("other"), 0),
        (lineless(""), 0),
    ],
)
def test_what_has_no_line_is_where_it_is_launched_or_called(finding: Finding, line: int) -> None:
    assert place_of(finding, {"k.cu": LAUNCHER}) == ("k.cu" if line else "", line)


def test_a_kernel_that_is_launched_at_two_places_has_no_line() -> None:
    assert place_of(lineless("ker"), {"k.cu": b"ker<<<1, 2>>>();\nker<<<3, 4>>>();"}) == ("", 0)


@pytest.mark.parametrize(("kind", "place"), [("race_global", ("row.cuh", 7)), ("race_stream", ("k.cu", 1))])
def test_a_line_that_is_known_stays_unless_the_launch_is_what_to_look_at(
    kind: str, place: tuple[str, int]
) -> None:
    known = replace(lineless("ker"), kind=kind, file="row.cuh", line=7)
    assert place_of(known, {"k.cu": b"ker<<<1, 2>>>();"}) == place
    assert place_of(known, {"k.cu": b""}) == ("row.cuh", 7)


def test_barriers_apart_are_where_the_first_is_or_the_call_that_leads_to_it() -> None:
    places = tuple(Place("k.cu", 19, (Line("k.cu", caller),)) for caller in (14, 12))
    barrier = Finding("divergent_barrier", "different", "ker", "k.cu", 19, places)
    assert place_of(barrier, SOURCES) == ("k.cu", 12)
    alone = replace(barrier, places=places[:1])
    assert place_of(alone, SOURCES) == ("k.cu", 19)
