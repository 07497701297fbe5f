"""What a Python file in Triton says without being run: its functions, and what breaks the policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from first_assignment import KERNELS

from grader.languages.language import LauncherError
from grader.languages.triton import source
from grader.languages.triton.source import asked, find, functions, launcher, parsed, violations

FILE = "kernel.py"
HONEST = b"""
from __future__ import annotations
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def copy(y, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

def entry(y, x):
    part = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 64),)](y, x, x.numel(), 64)

if __name__ == "__main__":
    import os, subprocess
    print(open(os.environ["HOME"]), eval("1"))
"""


def test_an_honest_file_breaks_nothing_and_what_runs_as_a_script_is_not_looked_at() -> None:
    assert violations(parsed(HONEST, FILE), FILE) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import ctypes", "kernel.py:1 imports ctypes"),
        ("from os import path", "imports os"),
        ("import torch.utils.cpp_extension", "imports torch.utils.cpp_extension, whose utils"),
        ("from triton import runtime", "imports triton.runtime, whose runtime"),
        ("from . import other", "imports ."),
        ("import torch\ntorch.ops.load_library('a.so')", "kernel.py:2 uses .ops"),
        ("import torch\nt = torch\nt.sys.modules", "uses .sys"),
        ("import torch\nx = torch.Tensor.__subclasses__()", "uses .__subclasses__"),
        ("import triton\ntriton.cdiv = None", "changes triton.cdiv"),
        ("import triton as t\ndel t.cdiv", "changes t.cdiv"),
        ("import triton\ntriton.runtime.driver.active = None", "uses .runtime"),
        ("eval('1')", "uses eval"),
        ("o = open", "uses open"),
        ("getattr(1, 'real')", "uses getattr"),
        ("__builtins__['print']", "uses __builtins__"),
        ("__name__ = '__main__'\nif __name__ == '__main__':\n  import os", "uses __name__"),
        ("if __name__ == '__main__':\n  pass\nelse:\n  import os", "imports os"),
        ("def f():\n  def g():\n    import gc", "kernel.py:3 imports gc"),
    ],
)
def test_what_no_launcher_needs_is_named_with_its_line(text: str, said: str) -> None:
    assert any(said in reason for reason in violations(parsed(text.encode(), FILE), FILE))


def test_a_problem_is_asked_for_by_its_own_name_in_a_file_with_py() -> None:
    problem = asked(KERNELS["softmax_forward"])
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
    problem = asked(KERNELS["softmax_forward"])
    (function,) = functions(parsed(f"def softmax_forward({parameters}): pass".encode(), FILE))
    called = launcher(problem, function, FILE)
    assert tuple(one.name for one in called.problem.parameters) == taken


@pytest.mark.parametrize("parameters", ["", "inp", "inp, attn_mask", "inp, attn_mask, mask_future, stream"])
def test_other_parameters_are_refused_with_those_that_are_asked_for(parameters: str) -> None:
    problem = asked(KERNELS["softmax_forward"])
    (function,) = functions(parsed(f"def softmax_forward({parameters}): pass".encode(), FILE))
    with pytest.raises(LauncherError, match=r"kernel.py:1\).*Give it inp, attn_mask, mask_future"):
        launcher(problem, function, FILE)


def test_a_file_that_is_no_python_has_its_line() -> None:
    with pytest.raises(SyntaxError) as caught:
        source.parsed(b"x = 1\ndef f(:\n", FILE)
    assert caught.value.lineno == 2
    with pytest.raises(SyntaxError):
        source.parsed(b"x = 1\0", FILE)


def test_the_references_break_no_policy() -> None:
    found = list((Path(__file__).parents[2] / "assignments").glob("*/reference_triton/*.py"))
    assert len(found) >= 4
    for path in found:
        assert violations(parsed(path.read_bytes(), path.name), path.name) == (), path


def test_optional_arrays_may_be_left_out() -> None:
    problem = asked(KERNELS["layernorm_backward"])
    names = [one.name for one in problem.arrays if not one.optional]
    (function,) = functions(parsed(f"def layernorm_backward({', '.join(names)}): pass".encode(), FILE))
    called = launcher(replace(problem), function, FILE)
    assert [one.name for one in called.problem.parameters] == names
