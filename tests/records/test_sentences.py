"""What is said of a finding is in the words of the language that its file is written in."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from grader.records.findings import KINDS, Finding, Line, Place, by_descriptor, facts
from grader.records.sentences import advice, sentence

BESIDE = Place("kernel.py", 5, (Line("/a/row.py", 9),), (5, 0, 0), (2, 0, 0), "reads")
RACE = Finding(
    "race_global",
    "no_syncthreads",
    "kernel",
    "kernel.py",
    3,
    (Place("kernel.py", 3, (), (1, 0, 0), (2, 0, 0), "writes", 4), BESIDE),
    facts(byte=4, size=20, second="row", begins_at="k:1", left_at="k:2"),
)
PAST = Finding(
    "global_oob",
    "behind",
    "kernel",
    "kernel.py",
    3,
    (Place("kernel.py", 3, (), (3, 0, 0), (2, 0, 0), "writes", 4),),
    facts(space="global", address=0x1000, distance=8, size=20),
)
SOURCES = Path(__file__).parents[2] / "grader"


def test_threads_and_blocks_of_triton_are_programs() -> None:
    overlap = "; the second row at k:1 begins before all threads have left the first (k:2)"
    assert sentence(RACE).observation == (
        "program (2,0,0) writes byte 4 of an allocation of 20 bytes (line 3) that another of its threads has "
        "read (line 5) called at row.py:9"
    )
    missing = ", and nothing orders the two: a {} between them is missing"
    assert sentence(RACE).why == missing.format("tl.debug_barrier()") + overlap
    in_cuda = sentence(replace(RACE, file="kernel.cu"))
    assert in_cuda.observation.startswith("thread (1,0,0) of block (2,0,0) writes")
    assert "that thread (5,0,0) of block (2,0,0) has read" in in_cuda.observation
    assert in_cuda.why == missing.format("__syncthreads()") + overlap


def test_threads_of_two_programs_are_both_named() -> None:
    elsewhere = replace(RACE, places=(RACE.places[0], replace(BESIDE, block=(7, 0, 0))))
    assert "that program (7,0,0) has read" in sentence(elsewhere).observation


@pytest.mark.parametrize("descriptors", [True, False])
def test_a_store_by_a_descriptor_is_suspected_where_there_may_be_one(*, descriptors: bool) -> None:
    text = str(sentence(by_descriptor(PAST) if descriptors else PAST))
    assert text.startswith(
        "program (2,0,0) writes 4 bytes of global memory at 0x1000, which lies 8 bytes behind"
    )
    assert "the mask of this access is missing" in text
    assert ("a store by a descriptor" in text) == descriptors


@pytest.mark.parametrize(
    "unlike",
    [
        replace(PAST, facts=facts(distance=16, size=20)),
        replace(PAST, places=(replace(PAST.places[0], does="reads"),)),
        replace(PAST, file="kernel.cu"),
    ],
)
def test_what_is_no_store_of_a_piece_is_none_by_a_descriptor(unlike: Finding) -> None:
    assert by_descriptor(unlike) == unlike


def test_what_is_wrong_follows_from_the_access() -> None:
    outside = replace(PAST, reason="before", file="kernel.cu")
    assert advice(outside)[0] == "A thread writes outside of every array"
    update = replace(outside, places=(replace(PAST.places[0], does="updates"),))
    assert advice(update)[0] == "A thread reads or writes outside of every array"
    remedy = advice(RACE, "between line 3 and line 5")[1]
    assert remedy.startswith("Where several elements of a tile meet at the same place, use tl.atomic_add.")
    assert "put a tl.debug_barrier() between line 3 and line 5" in remedy


def test_the_calls_around_one_place_are_told_behind_the_rest() -> None:
    inlined = replace(PAST, file="k.cu", places=(replace(PAST.places[0], calls=(Line("/b/k.cu", 8),)),))
    assert str(sentence(inlined)).endswith(" of 20 bytes; called at k.cu:8")


def test_the_checkers_and_the_table_have_the_same_kinds_and_reasons() -> None:
    """A kind or a reason that one of them lacks is a slip: each stands as a text in the other's sources."""
    files = itertools.chain(SOURCES.glob("simulator/**/*.cpp"), SOURCES.glob("devices/*.py"))
    texts = set(re.findall(r'"(\w+)"', "".join(file.read_text() for file in files)))
    made_here = {"start_written", "end_written", "both_written", "behind_by_descriptor"}
    reasons = {reason for kind in KINDS.values() for reason in kind.reasons} - made_here
    assert set(KINDS) | reasons <= texts | {"global_oob"}


def test_no_remedy_in_a_file_of_python_is_one_of_cuda() -> None:
    of_cuda = re.compile(r"\bcuda[A-Z]|__\w+\(|__|size_t|float4|nullptr|<<<")
    for name in ("race_shared", "race_warp", "race_global", "uninit_global", "const_input", "host_pointer"):
        for reason in KINDS[name].reasons:
            values = facts(byte=0, size=8, flag=1, look=1, fence=1, address=0, arguments="1")
            place = Place("k.py", 3, does="writes", bytes=4)
            finding = Finding(name, reason, "k", "k.py", 3, (place, place), values)
            assert not of_cuda.search(advice(finding, "between the two")[1]), (name, reason)
