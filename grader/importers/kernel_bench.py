"""Reads a problem of the KernelBench form, by writing it as a problem of the GPU MODE form.

Such a file has a class ``Model``, and the functions ``get_inputs`` and ``get_init_inputs``. Whole numbers at
its top say how large the inputs are; other sizes come from other numbers. An answer is a class ``ModelNew``.

Layer: imports torch and the library of problems.
"""

from __future__ import annotations

import ast
import inspect
import math
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from grader.importers.gpu_mode import ImportFaultError, Task, drafted
from grader.problems.explained import FormulaError
from grader.problems.original import Original

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

MODEL = "Model"
_FUNCTIONS = ("get_inputs", "get_init_inputs")
_TOLERANCE = 1e-4  # relative and absolute: of float32 in that project
_MOST_TESTED, _MOST_TIMED = 1 << 16, 1 << 24  # of the product of all sizes


def is_one(path: Path) -> bool:
    """Whether a path is that of a Python file which has what the form asks for."""
    if not path.is_file():
        return False
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):
        return False
    named = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {MODEL, *_FUNCTIONS} <= named


def read(path: Path, draft: Path) -> Task:
    """The problem in a file.

    Args:
        path: of the file.
        draft: a new folder for it in the other form, of the name that the problem is to have.

    Raises:
        ImportFaultError: it cannot be imported.
        OSError: it cannot be copied.
    """
    draft.mkdir()
    shutil.copy(path, draft / "model.py")
    try:
        sizes, initial, weights, inputs = _learnt(Original(draft))
        reasons = []
        for tests in _tests(sizes):
            try:
                task = drafted(draft, _reference(list(sizes), initial, weights, inputs), tests, _timed(sizes))
            except ImportFaultError as error:
                reasons.append(str(error))
                continue
            return replace(
                task, function="ModelNew", spread=True, initial=len(initial), weights=tuple(weights)
            )
    except FormulaError as error:
        raise ImportFaultError(str(error)) from error
    raise ImportFaultError(reasons[-1])


def _learnt(
    original: Original,
) -> tuple[Mapping[str, int], list[str], Mapping[str, str], list[str]]:
    """The sizes of the file, and the names of what an object is made with, of its weights, and of its inputs.

    A weight has two names: that in the object, and that of the argument.

    Raises:
        FormulaError: the file cannot be run.
    """
    model = original.module("model")
    tree = ast.parse((original.folder / "model.py").read_bytes())
    used = {
        node.name: {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS
    }
    sizes = {
        name: value
        for name, value in vars(model).items()
        if type(value) is int and value > 0 and name in used["get_inputs"] - used["get_init_inputs"]
    }
    initial = original.call(model, "get_init_inputs")
    network = original.call(model, MODEL, *initial)
    state = network.state_dict() if isinstance(network, torch.nn.Module) else ()
    weights = {name: name.replace(".", "_") for name in state}
    if not sizes:
        raise FormulaError(
            "no whole number at the top of the file says how large get_inputs makes its tensors"
        )
    small = next(iter(_tests(sizes)))[0]
    vars(model).update(small)
    inputs = original.call(model, "get_inputs")
    kind = getattr(model, MODEL)
    made = list(inspect.signature(kind).parameters)[: len(initial)]
    taken = list(inspect.signature(kind.forward).parameters)[1:][: len(inputs)]
    names = [*made, *weights.values(), *taken, *sizes]
    if len({*names}) == len(initial) + len(weights) + len(inputs) + len(sizes):
        return sizes, made, weights, taken
    made = [f"initial_{n}" for n in range(len(initial))]
    weights = {name: f"weight_{n}" for n, name in enumerate(weights)}
    return sizes, made, weights, [f"input_{n}" for n in range(len(inputs))]


def _tests(sizes: Mapping[str, int]) -> Iterator[list[Mapping[str, int]]]:
    """Sizes for tests: odd ones, and where the file takes none, those that divide its own."""
    most = int(_MOST_TESTED ** (1 / len(sizes)))
    yield [
        {name: min(value, least + number) for number, (name, value) in enumerate(sizes.items())}
        for least in (3, most // 2 + 1, most)
    ]
    yield [
        {name: _halved(value, limit) for name, value in sizes.items()}
        for limit in (most // 8, most // 2, most)
    ]


def _halved(value: int, most: int) -> int:
    """``value``, divided by two as long as it is more than ``most`` and even."""
    while value > most and value % 2 == 0:
        value //= 2
    return value


def _timed(sizes: Mapping[str, int]) -> Mapping[str, int]:
    """The file's own sizes, with the largest divided by two as long as all together are too many."""
    timed = dict(sizes)
    while math.prod(timed.values()) > _MOST_TIMED:
        largest = max(timed, key=lambda name: timed[name])
        timed[largest] //= 2
    return timed


def _reference(
    sizes: Sequence[str], initial: Sequence[str], weights: Mapping[str, str], inputs: Sequence[str]
) -> str:
    """The text of ``reference.py``."""
    made, drawn = f"model.{MODEL}({', '.join(initial)})", ""
    called = f"{made}({', '.join(inputs)})"
    imports = ["import model", "import torch"]
    if weights:
        drawn = f" *model.{MODEL}(*model.get_init_inputs()).state_dict().values(),"
        state = ", ".join(f'"{name}": {argument}' for name, argument in weights.items())
        called = f"functional_call(made, {{{state}}}, ({', '.join(inputs)},))"
        imports += ["from torch.func import functional_call"]
        imports += ["from torch.utils._python_dispatch import _disable_current_modes"]
    lines = [
        '"""model.py as a reference and its inputs."""',
        "",
        *imports,
        "",
        "",
        f"def generate_input({', '.join(sizes)}):",
        f"    vars(model).update({', '.join(f'{name}={name}' for name in sizes)})",
        f"    return (*model.get_init_inputs(),{drawn} *model.get_inputs())",
        "",
        "",
        "def ref_kernel(data):",
        f"    {', '.join([*initial, *weights.values(), *inputs])}, = data",
        *(
            [
                "    with _disable_current_modes():  # to draw weights is no part of the formula",
                f"        made = {made}",
            ]
            if weights
            else []
        ),
        f"    return {called}",
        "",
        "",
        "def check_implementation(data, output):",
        f"    torch.allclose(output, output, rtol={_TOLERANCE}, atol={_TOLERANCE})",
        "",
    ]
    return "\n".join(lines)
