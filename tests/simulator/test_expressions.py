"""Random expressions of C++ on the simulator and on the host, a small sample: expressions.py is the whole."""

from __future__ import annotations

import random
from dataclasses import replace

import expressions
from operations import TYPES, operations


def test_functions_of_several_operations_compute_what_the_host_does() -> None:
    outcome = expressions.compare(0, expressions.random_program(0, 60), "sim", tuples=128)
    assert (outcome.fault, outcome.differences) == ("", [])


def test_division_of_128_bits_and_chains_of_carries_compute_what_the_host_does() -> None:
    """And a model that is wrong in one bit of one operand is noticed."""
    chosen = [o for o in operations() if o.family in {"division of 128 bits", "carry chains"}][::5]
    (dot,) = [o for o in operations() if "__dp4a(a, b, c)" in o.device and o.result == "u32"]
    wrong = replace(dot, host="return (dot4<u8, u8>(a & ~0x400u, b, c));")
    program = expressions.Writer(random.Random(0)).plain_program([*chosen, dot, wrong])
    outcome = expressions.compare(0, program, "sim", tuples=256)
    assert outcome.fault == ""
    (difference,) = outcome.differences
    assert f"function{len(chosen) + 1}(" in difference.function
    assert "__dp4a" in str(difference)


def test_a_seed_makes_the_same_program_again() -> None:
    assert expressions.random_program(7, 20) == expressions.random_program(7, 20)
    assert expressions.random_program(7, 20) != expressions.random_program(8, 20)


def test_every_type_has_expressions() -> None:
    assert set(expressions.by_result()) == set(TYPES)
