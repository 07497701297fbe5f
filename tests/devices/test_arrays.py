"""The arrays of a call have their names, shapes and elements in what the simulator saw."""

from __future__ import annotations

from dataclasses import replace

from grader.devices.arrays import named
from grader.devices.device import ArrayArgument, Call, Memory
from grader.records.findings import Finding, Place, facts
from grader.records.sentences import advice, fault_key, sentence

MASK = ArrayArgument("attn_mask", "float32", (5, 130), None)
AT = (Place("k.cu", 3, does="reads", bytes=4),)


def call(argument: ArrayArgument) -> Call:
    return Call("launch", (argument,), 1.0, Memory.DEVICE)


def outside(reason: str, **values: int | str) -> Finding:
    known = facts(space="global", address=0, **values)
    return Finding("global_oob", reason, "k", "k.cu", 3, AT, known)


def test_a_stray_access_says_which_row_it_would_take() -> None:
    stray = outside("behind", distance=520, size=2600, array="attn_mask")
    (seen,) = named([stray], call(MASK))
    assert "behind the end of attn_mask [5, 130] (float32), where row 6 would begin" in str(sentence(seen))
    assert "batch, head or row" in advice(seen)[1]
    (by_program,) = named([replace(stray, file="k.py")], call(MASK))
    assert by_program.reason == "behind"


def test_a_stray_access_to_a_row_alone_is_not_told_of_batches() -> None:
    scale = ArrayArgument("scale", "float32", (4,), None)
    stray = outside("behind", distance=0, size=16, array="scale")
    (seen,) = named([stray], call(scale))
    mistake, do = advice(seen)
    assert mistake == "A thread goes past the end of an array"
    assert do.startswith("scale has 4 elements: index it by what counts these")
    assert fault_key(seen) == fault_key(stray)
    (by_program,) = named([replace(stray, file="k.py")], call(scale))
    assert by_program.reason == "behind"


def test_an_access_of_a_race_names_its_element() -> None:
    race = Finding(
        "race_global", "any_order", "k", "k.cu", 3, AT * 2, facts(byte=524, size=2600, array="attn_mask")
    )
    (seen,) = named([race], call(MASK))
    assert "element 131 of attn_mask [5, 130] (float32)" in str(sentence(seen))


def test_a_null_argument_is_named_only_where_it_can_be_no_other() -> None:
    null = ArrayArgument("attn_mask", "float32", (5, 130), None, null=True)
    (seen,) = named([outside("null_argument", arguments="2")], call(null))
    assert "attn_mask is null in this case" in str(sentence(seen))
    assert advice(seen)[0] == "A kernel uses a pointer that is null"
    (other,) = named([outside("null_argument", arguments="2 and 3")], call(null))
    assert "attn_mask" not in str(sentence(other))


def test_what_no_argument_has_stays_as_it_is() -> None:
    stray = outside("behind", distance=0, size=80)
    assert named([stray], call(MASK)) == (stray,)


def test_a_block_without_any_shared_memory_was_given_none() -> None:
    stray = Finding("shared_oob", "outside", "k", "k.cu", 3, AT, facts(space="shared", size=0, dynamic=0))
    (seen,) = named([stray], call(MASK))
    assert advice(seen)[0] == "The launch gives its kernel no dynamic shared memory"
