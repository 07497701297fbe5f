"""Reads a challenge of the LeetGPU form, by writing it as a problem of the GPU MODE form.

Such a folder has ``challenge.py`` with a class ``Challenge``: its reference, which fills tensors, the
parameters of ``solve`` in order, and functions that make the tests. An answer is a function ``solve`` on
tensors.

Layer: imports torch and the library of problems.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from grader.importers.gpu_mode import ImportFaultError, Task, drafted, fitting, tensor_value
from grader.problems.dtypes import DTYPES
from grader.problems.explained import FormulaError
from grader.problems.original import Original

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from grader.importers.gpu_mode import Value

CHALLENGE = "challenge.py"
FUNCTION = "solve"
_WRITTEN = ("out", "inout")
_READ = ("in", "inout")


@dataclass(frozen=True)
class _Challenge:
    """What the class of a challenge says.

    Attributes:
        title: of the challenge.
        signature: of each parameter of ``solve``, in order, whether it is read or written.
        tests: the arguments of each test, by name.
        timed: those of the test of performance.
        sizes: the parameters that are whole numbers in all tests.
    """

    title: str
    signature: Mapping[str, str]
    tests: Sequence[Mapping[str, Any]]
    timed: Mapping[str, Any]
    sizes: tuple[str, ...]


def read(folder: Path, draft: Path) -> Task:
    """The problem of a challenge.

    Args:
        folder: of the challenge.
        draft: a new folder for its files in the other form, of the name that the problem is to have.

    Raises:
        ImportFaultError: it cannot be imported.
        OSError: a file cannot be copied.
    """
    draft.mkdir()
    shutil.copy(folder / CHALLENGE, draft)
    try:
        challenge = _challenge(draft)
    except FormulaError as error:
        raise ImportFaultError(str(error).replace(str(draft), str(folder))) from error
    tests: list[Mapping[str, object]] = [
        {name: test[name] for name in challenge.sizes} for test in (*challenge.tests, challenge.timed)
    ]
    if drawn := _drawn(challenge, tests):
        with suppress(ImportFaultError):  # the reference wants more of its inputs than the tests show
            return _read(draft, challenge, drawn, tests)
    numbered = [{"test": f"test {number}"} for number in range(len(challenge.tests))]
    listed = _read(draft, challenge, {}, [*numbered, {"test": "performance"}])
    return replace(listed, listed="what its tests hold does not follow from sizes")


def _read(
    draft: Path, challenge: _Challenge, drawn: Mapping[str, str], specs: Sequence[Mapping[str, object]]
) -> Task:
    """The problem whose inputs are drawn so for each of ``specs``, the last of which is timed.

    Raises:
        ImportFaultError: it cannot be imported.
    """
    task = drafted(draft, _reference(challenge, drawn), specs[:-1], specs[-1], challenge.title)
    return replace(task, function=FUNCTION, spread=True)


def _challenge(folder: Path) -> _Challenge:
    """What ``challenge.py`` in a folder says.

    Raises:
        FormulaError: it cannot be run, or says something else than the form asks for.
    """
    challenge = Original(folder).instance(CHALLENGE.removesuffix(".py"), "Challenge")
    if challenge.num_gpus > 1:
        raise FormulaError(f"{folder / CHALLENGE}: it needs several GPUs, and a case here runs on one")
    signature = {name: direction for name, (_, direction) in challenge.get_solve_signature().items()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # what is learnt of a challenge is the same each time
        tests = [challenge.generate_example_test(), *challenge.generate_functional_test()]
        timed = challenge.generate_performance_test()
    for test in (*tests, timed):
        if missing := signature.keys() - test.keys():
            raise FormulaError(f"{folder / CHALLENGE}: a test has no {min(missing)}, which solve gets")
    if not any(direction in _WRITTEN for direction in signature.values()):
        raise FormulaError(f"{folder / CHALLENGE}: no parameter of solve is written")
    sizes = tuple(
        name for name in signature if all(type(test[name]) is int and test[name] > 0 for test in tests)
    )
    return _Challenge(challenge.name, signature, tests, timed, sizes)


def _drawn(challenge: _Challenge, points: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """How to draw each argument for any sizes, in Python; nothing if some argument cannot be drawn."""
    tests, drawn = [*challenge.tests, challenge.timed], {}
    for name, direction in challenge.signature.items():
        values = [test[name] for test in tests]
        text = _text(name, direction, values, points) if challenge.sizes else ""
        if not text:
            return {}
        drawn[name] = text
    return drawn


def _text(name: str, direction: str, values: Sequence[Any], points: Sequence[Mapping[str, Any]]) -> str:
    """How to draw an argument of which these are the values at all points; "" where that does not show."""
    if name in points[0]:
        return name
    if not isinstance(values[0], torch.Tensor):
        return repr(values[0]) if all(value == values[0] for value in values) else ""
    if len({(value.dtype, value.dim()) for value in values}) > 1 or not all(map(torch.numel, values)):
        return ""
    lengths = [fitting(points, [value.shape[axis] for value in values]) for axis in range(values[0].dim())]
    shape = f'[{", ".join(map(str, lengths))}], dtype={values[0].dtype}, device="cuda"'
    if None in lengths:
        return ""
    return (
        _random([tensor_value(name, value) for value in values], shape)
        if direction in _READ
        else (f"torch.empty({shape})")
    )


def _random(values: Sequence[Value], shape: str) -> str:
    """How to draw numbers between those of a tensor at all points; "" where more may count than their range.

    Whole numbers may be places in another tensor, and numbers in order may be offsets.
    """
    low, high = min(value.smallest for value in values), max(value.largest for value in values)
    loose = any(value.loose for value in values)
    if DTYPES[values[0].dtype].exact or low == high or not loose:
        return ""
    return f"torch.empty({shape}).uniform_({0.0 if 0 <= low < high / 100 else low:.3g}, {high:.3g})"


def _reference(challenge: _Challenge, drawn: Mapping[str, str]) -> str:
    """The text of ``reference.py``."""
    names = ", ".join(challenge.signature)
    written = [name for name, direction in challenge.signature.items() if direction in _WRITTEN]
    if drawn:
        data = [f"    return {', '.join(drawn.values())}"]
        parameters = ", ".join(challenge.sizes)
    else:
        data = [
            '    if test == "performance":',
            "        made = CHALLENGE.generate_performance_test()",
            "    else:",
            "        tests = [CHALLENGE.generate_example_test(), *CHALLENGE.generate_functional_test()]",
            '        made = tests[int(test.removeprefix("test "))]',
            f"    return {', '.join(f'made[{json.dumps(name)}]' for name in challenge.signature)}",
        ]
        parameters = "test"
    return "\n".join(
        [
            f'"""{CHALLENGE} as a reference and its inputs."""',
            "",
            "import torch",
            "from challenge import Challenge",
            "",
            "CHALLENGE = Challenge()",
            "",
            "",
            f"def generate_input({parameters}):",
            *data,
            "",
            "",
            "def ref_kernel(data):",
            f"    {names} = data",
            f"    CHALLENGE.reference_impl({', '.join(f'{name}={name}' for name in challenge.signature)})",
            f"    return {', '.join(written)}",
            "",
            "",
            "def check_implementation(data, output):",
            "    torch.allclose(data[0], data[0], rtol=CHALLENGE.rtol, atol=CHALLENGE.atol)",
            "",
        ]
    )
