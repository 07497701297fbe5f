"""What a Python file in Triton says without being run: its functions and how they are called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from first_assignment import KERNELS

from grader.languages.language import LauncherError
from grader.languages.triton import source
from grader.languages.triton.source import find, functions, launcher, parsed, translated

FILE = "kernel.py"


def test_a_problem_is_asked_for_by_its_own_name_in_a_file_with_py() -> None:
    problem = translated(KERNELS["softmax_forward"])
    assert (problem.file, problem.entry_points) == ("softmax_kernel.py", ("softmax_forward",))


def test_a_function_is_found_or_what_was_meant() -> None:
    tree = parsed(b"def softmax_foward(inp):\n    pass\n", FILE)
    assert find(tree, FILE, "softmax_foward", ()).symbol == "softmax_foward"
    missing = find(tree, FILE, "softmax_forward", ())
    assert (missing.symbol, "Found softmax_foward: rename it" in missing.note) == ("", True)


@pytest.mark.parametrize(
    ("parameters", "taken"),
    [
        ("inp, attn_mask, mask_future", ("inp", "attn_mask", "mask_future")),
        ("mask_future, attn_mask, inp", ("mask_future", "attn_mask", "inp")),
        ("x, m, future", ("inp", "attn_mask", "mask_future")),
        ("inp, attn_mask, to_len, mask_future", ("inp", "attn_mask", "to_len", "mask_future")),
    ],
)
def test_parameters_are_taken_by_name_or_else_by_place_without_sizes(
    parameters: str, taken: tuple[str, ...]
) -> None:
    problem = translated(KERNELS["softmax_forward"])
    (function,) = functions(parsed(f"def softmax_forward({parameters}): pass".encode(), FILE))
    called = launcher(problem, function, FILE)
    assert tuple(one.name for one in called.problem.parameters) == taken


@pytest.mark.parametrize("parameters", ["", "inp", "inp, attn_mask", "inp, attn_mask, mask_future, stream"])
def test_other_parameters_are_refused_with_those_that_are_asked_for(parameters: str) -> None:
    problem = translated(KERNELS["softmax_forward"])
    (function,) = functions(parsed(f"def softmax_forward({parameters}): pass".encode(), FILE))
    with pytest.raises(LauncherError, match=r"kernel.py:1\).*Give it inp, attn_mask, mask_future"):
        launcher(problem, function, FILE)


def test_a_file_that_is_no_python_has_its_line() -> None:
    with pytest.raises(SyntaxError) as caught:
        source.parsed(b"x = 1\ndef f(:\n", FILE)
    assert caught.value.lineno == 2
    with pytest.raises(SyntaxError):
        source.parsed(b"x = 1\0", FILE)


def test_optional_arrays_may_be_left_out() -> None:
    problem = translated(KERNELS["layernorm_backward"])
    names = [one.name for one in problem.arrays if not one.optional]
    (function,) = functions(parsed(f"def layernorm_backward({', '.join(names)}): pass".encode(), FILE))
    called = launcher(replace(problem), function, FILE)
    assert [one.name for one in called.problem.parameters] == names
