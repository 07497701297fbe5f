from __future__ import annotations

import pytest

from grader.records.mangled import demangled, own_name, own_names_in


def test_mangled_names_become_what_the_author_wrote() -> None:
    assert own_names_in("in _Z14ker_layer_normILi128EEvPfS0_, line 3") == "in ker_layer_norm, line 3"
    assert own_names_in("in _ZN8lightseq4cuda7ker_oneIfLi64EEEvPT_, _Z3twov, _Zx") == "in ker_one, two, _Zx"


@pytest.mark.parametrize(
    ("name", "whole", "own"),
    [
        ("_ZN3one3kerIfEEvPT_", "one::ker<float>", "ker"),
        ("_Z6launchPf", "launch", "launch"),
        ("launch", "launch", "launch"),
        ("_Zx", "_Zx", "_Zx"),
    ],
)
def test_a_name_is_read_as_a_whole_or_alone(name: str, whole: str, own: str) -> None:
    assert (demangled(name), own_name(name)) == (whole, own)


def test_a_name_that_stands_for_too_much_stays_as_it_is() -> None:
    name = (
        "_Z3kerI" + "".join(f"{'St4pairI' if not level else ''}" for level in range(1)) + "S_" * 80 + "EvT_"
    )
    assert demangled(name) == name
    assert own_name(name) == "ker"
