"""Launchers that take structs: what is described once in Python lies in memory as C++ has it."""

from __future__ import annotations

import ctypes
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from grader.devices.device import Watched
from grader.judge.correctness.calls import watched
from grader.problems.contents import integers, real
from grader.problems.explained import FormulaError
from grader.problems.formula import Range, problem
from grader.problems.problem import Role
from grader.problems.structs import struct
from grader.runner.library import argument

if TYPE_CHECKING:
    from pathlib import Path

    from grader.problems.problem import KernelProblem

BODY = np.dtype([("position", np.float32, 3), ("kind", np.int8), ("mass", np.float64)], align=True)


class Step(ctypes.Structure):
    _fields_ = (("dt", ctypes.c_float), ("count", ctypes.c_int))


def moving(**changed: Any) -> KernelProblem:  # noqa: ANN401 - arguments of ``problem``
    arguments: dict[str, Any] = {
        "id": "move",
        "file": "move.cu",
        "launcher": "launch_move(Body* bodies, const struct Body* others, Step step, int n, cudaStream_t s)",
        "structs": {"Body": BODY, "Step": Step},
        "formula": lambda bodies, others, step: {
            "bodies": {"position": bodies.position + step.dt * step.count * others.position}
        },
        "inputs": lambda n: {
            "bodies": {"position": real(n, 3), "kind": integers(0, 3, n), "mass": real(n)},
            "others": {"position": real(n, 3), "kind": integers(0, 3, n), "mass": real(n)},
            "step": {"dt": 0.5, "count": 3},
        },
        "sizes": {"n": Range(1, 1000)},
    }
    return problem(**(arguments | changed))


def test_fields_lie_where_the_compiler_puts_them(tmp_path: Path) -> None:
    text = "struct Body { float position[3]; signed char kind; double mass; };\n"
    for changed in ("", "float", "order"):
        code = text.replace("double mass", "float mass") if changed == "float" else text
        code = (
            "struct Body { signed char kind; float position[3]; double mass; };"
            if changed == "order"
            else code
        )
        file = tmp_path / "body.cpp"
        asserted = struct("Body", BODY).assertions
        file.write_text(f"{code}\n#include <type_traits>\n#include <utility>\n{asserted}\n")
        command = ["g++", "-std=c++17", "-fsyntax-only", file]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert bool(done.returncode) == bool(changed)
        assert not changed or "the assignment has struct Body { float position[3]; " in done.stderr


def test_packing_and_unpacking_keep_every_field() -> None:
    body, random = struct("Body", BODY), np.random.default_rng(1)
    fields = {
        "position": random.random((5, 3), np.float32),
        "kind": np.arange(5, dtype=np.int8),
        "mass": random.random(5),
    }
    memory = body.packed(fields)
    assert memory.shape == (5, 24)
    assert memory[2, 16:].view(np.float64)[0] == fields["mass"][2]
    again = body.unpacked(memory)
    assert all(np.array_equal(again[name], array) for name, array in fields.items())


def test_a_formula_sees_fields() -> None:
    asked = moving()
    case = next(case for case in asked.cases(1) if case.sizes["n"] > 1)
    given = asked.inputs(case)
    expected = asked.oracle(case, given)
    assert list(expected) == ["bodies.position"]
    right = given.wide("bodies.position") + 1.5 * given.wide("others.position")
    assert np.allclose(expected["bodies.position"].candidates[0].expected, right)
    assert asked.roles["bodies.mass"] is Role.INOUT
    assert asked.roles["others.mass"] is Role.INPUT


def test_an_element_of_a_field_has_bytes_of_its_own() -> None:
    made = moving()
    (case, *_) = [case for case in made.cases(1) if case.sizes["n"] == 31]
    body = struct("Body", BODY)
    (kind, mass) = (field.offset for field in body.fields if field.name in {"kind", "mass"})
    positions = np.zeros((31, 3), np.float32)
    assert watched(made, case, "bodies.position", (7, 2), positions) == Watched(
        "bodies", 7 * body.bytes + 8, 4
    )
    masses, kinds = np.zeros(31), np.zeros(31, np.int8)
    assert watched(made, case, "bodies.mass", (7,), masses) == Watched("bodies", 7 * body.bytes + mass, 8)
    assert watched(made, case, "bodies.kind", (0,), kinds) == Watched("bodies", kind, 1)


def test_a_struct_is_passed_by_value() -> None:
    passed = argument("struct", [["float32", 0.5], ["int32", 3]], [], [])
    assert bytes(passed) == bytes(Step(0.5, 3))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"structs": {"Body": BODY, "Step": int}}, "neither a ctypes.Structure nor a structured type"),
        ({"structs": {"Body": np.dtype([("a", np.int8), ("b", np.float32)]), "Step": Step}}, "align=True"),
        ({"structs": {"Body": BODY, "Step": BODY}}, "position of Step is no float"),
        ({"structs": {"Step": Step}}, "no array has elements of type Body"),
        ({"timing": ({"n": 1000},)}, "Leave timing out"),
        (
            {"inputs": lambda n: {"bodies": {"mass": real(n)}, "step": {"dt": 1.0, "count": 1}}},
            "bodies.position",
        ),
        (
            {
                "inputs": lambda n: {
                    **{
                        name: {"position": real(3, n), "kind": integers(0, 3, n), "mass": real(n)}
                        for name in ("bodies", "others")
                    },
                    "step": {"dt": 1.0, "count": 1},
                }
            },
            r"as in real\(n, 3\)",
        ),
    ],
)
def test_what_does_not_fit_is_told(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        moving(**changed)
