"""Writes an assignment from imported problems: each becomes a module, beside the files that it comes from.

A reference becomes a formula where PyTorch's operations in it have error models and no number of its inputs
decides what it does. Then bounds are derived, and cases are widened between the sizes of the original's
tests. Otherwise the problem keeps the original's tests and its tolerance, and says why.

Layer: imports numpy, torch and the library of problems.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.importers.gpu_mode import TASK, ImportFaultError
from grader.problems.contents import NORMAL
from grader.problems.dtypes import DTYPES
from grader.problems.explained import FormulaError
from grader.problems.module import ModuleProblem
from grader.problems.original import TESTS, Original

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from grader.importers.gpu_mode import Task, Value

_HEADS = {
    "triton": """\
import torch
import triton
import triton.language as tl
""",
    "load_inline": """\
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r\"\"\"
__global__ void ker_NAME() {
  // Write the kernel, and its parameters.
}

void launch() {
  // Launch the kernel; the parameters are tensors and numbers.
}
\"\"\"

kernels = load_inline(name="NAME", cpp_sources="void launch();", cuda_sources=CUDA, functions=["launch"])
""",
    "cupy": """\
import cupy as cp
import torch

CUDA = r\"\"\"
extern "C" __global__ void ker_NAME() {
  // Write the kernel, and its parameters.
}
\"\"\"

kernel = cp.RawKernel(CUDA, "ker_NAME")
""",
    "nvrtc": """\
import numpy as np
import torch
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

CUDA = r\"\"\"
extern "C" __global__ void ker_NAME() {
  // Write the kernel, and its parameters.
}
\"\"\"

device = Device()
device.set_current()
program = Program(CUDA, "c++", ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
kernel = program.compile("cubin").get_kernel("ker_NAME")
""",
}
"""What a file begins with in each language: imports, and kernels that are still to be written."""
_KERNELS = "Triton, or in CUDA C++ by `load_inline`, CuPy or NVRTC (`cuda.core`)"
_FILES = ("*.py", TASK)
_COMPARED = 1 << 22  # elements of the tests at which the formula is held against the reference


@dataclass(frozen=True)
class Written:
    """A problem as it was written.

    Attributes:
        task: that it comes from.
        file: the file of a submission.
        tolerant: why the original's tolerance is kept; "" where bounds are derived.
        untimed: why no speed is measured; "" where it is.
    """

    task: Task
    file: str
    tolerant: str = ""
    untimed: str = ""


def write(task: Task, file: str, folder: Path) -> Written:
    """Write a problem into the folder of an assignment: its module, its own files and its templates.

    Args:
        task: the problem.
        file: the file of a submission.
        folder: of the assignment.

    Raises:
        ImportFaultError: it cannot be judged in any way; nothing of it is left.
        OSError: it cannot be written.
    """
    problems = folder / "problems"
    originals = problems / _originals(task)
    templates = {language: folder / f"student_template_{language}" for language in _HEADS}
    for new in (originals, *templates.values(), folder / "reference_triton"):
        new.mkdir(parents=True, exist_ok=True)
    for pattern in _FILES:
        for path in sorted(task.folder.glob(pattern)):
            shutil.copy(path, originals)
    try:
        written, text = _module(task, file, problems / f"{task.name}.py")
    except ImportFaultError:
        shutil.rmtree(originals)
        raise
    (problems / f"{task.name}.py").write_text(text, encoding="utf-8")
    for language, template in templates.items():
        (template / file).write_text(_template(task, language), encoding="utf-8")
    return written


def finish(written: Sequence[Written], folder: Path, name: str, title: str) -> None:
    """Write what the problems of an assignment share: its rules, and the text for students.

    Args:
        written: the problems.
        folder: of the assignment, for now.
        name: its id.
        title: what reports call it.

    Raises:
        OSError: it cannot be written.
    """
    (folder / "student_template").mkdir()
    (folder / "student_template" / "HANDOUT.md").write_text(_handout(written, title), encoding="utf-8")
    (folder / "assignment.toml").write_text(_rules(written, name, title), encoding="utf-8")


def _originals(task: Task) -> str:
    """The folder beside the module with the files that the problem comes from."""
    return f"{task.name}_original"


def _module(task: Task, file: str, path: Path) -> tuple[Written, str]:
    """The problem's module: with a formula, if one can be traced, and else with the original's tolerance."""
    reason = task.listed
    for widened in (True, False) if not reason else ():
        text = _with_formula(task, file, widened=widened)
        try:
            problem = _run(text, path)
            _agrees(problem, task, path.parent / _originals(task))
        except FormulaError as error:
            reason = str(error)
            continue
        if not (untimed := _without_baseline(problem)):
            return Written(task, file, untimed="" if task.benchmarks else "it lists no benchmarks"), text
        return Written(task, file, untimed=untimed), _with_formula(task, file, widened=widened, timed=False)
    text = _with_tolerance(task, file, reason)
    try:
        problem = _run(text, path)
        case = problem.cases(0)[0]
        problem.oracle(case, problem.inputs(case))
    except FormulaError as error:
        raise ImportFaultError(str(error)) from error
    return Written(task, file, reason, "speed is compared with a baseline, which only a formula has"), text


def _run(text: str, path: Path) -> ModuleProblem:
    """The problem that a module defines."""
    names: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
    exec(compile(text, path, "exec"), names)  # noqa: S102 - our own text, over files that the teacher trusts
    problem = names["PROBLEM"]
    assert isinstance(problem, ModuleProblem)
    return problem


def _agrees(problem: ModuleProblem, task: Task, folder: Path) -> None:
    """Hold the formula against the reference at the original's tests, and try each distribution.

    Raises:
        FormulaError: it cannot be computed, or the two differ by more than their tolerances.
    """
    original = Original(folder)
    smallest = {}
    for case in sorted(problem.cases(0), key=lambda case: prod(case.sizes.values()), reverse=True):
        smallest[case.distribution] = case
        listed = case.sizes in task.tests and case.distribution == NORMAL
        if not listed or prod(case.sizes.values()) > _COMPARED:
            continue
        expected = problem.oracle(case, problem.inputs(case))
        results = original.results(original.data(case.sizes, case.seed), packed=task.packed)
        for value, result in zip(task.results, results, strict=True):
            candidate, numbers = expected[value.name].candidates[0], result.double().numpy()
            with np.errstate(invalid="ignore"):
                apart = np.abs(numbers - candidate.expected.astype(np.float64))
                allowed = candidate.allowed + task.atol + task.rtol * np.abs(numbers)
            if not (np.isnan(apart) | (apart <= allowed)).all():
                raise FormulaError(
                    f"the reference differs in float64 by more than its tolerance: {value.name}"
                )
    for case in smallest.values():
        problem.oracle(case, problem.inputs(case))


def _without_baseline(problem: ModuleProblem) -> str:
    """Why the formula has no unfused baseline to compare speeds with; "" where it has."""
    try:
        for case in problem.timing_cases(0)[:1]:
            problem.unfused(case)
    except FormulaError as error:
        return str(error)
    return ""


# The text of modules.


def _with_formula(task: Task, file: str, *, widened: bool, timed: bool = True) -> str:
    """A module whose formula is the reference, traced."""
    sizes = ", ".join(task.ranges)
    inputs = [value for value in task.data if value.dtype and value.read]
    contents = [
        f'        "{value.name}": data.content({number}, {", ".join(map(str, value.lengths))}'
        f"{_widening(value) if widened else ''}),"
        for number, value in enumerate(task.data)
        if value.dtype and value.read
    ]
    numbers = [
        f'        "{value.name}": {value.text},'
        for value in task.data
        if not value.dtype and value.name not in task.ranges
    ]
    numbers_named = [value.name for value in task.data if not value.dtype and value.name not in task.ranges]
    parameters = ", ".join([*(value.name for value in inputs), *numbers_named, sizes])
    kinds = [name for name in ("real", "uniform") if any(f"{name}(" in line for line in contents)]
    contents_import = [f"from grader.problems.contents import {', '.join(kinds)}"] if kinds else []
    device = f", device={inputs[0].name}.device" if inputs else ""
    given = [_given(value, device) for value in task.data]
    comma = "," if len(given) == 1 else ""
    data = f"({', '.join(given)}{comma})" if task.packed else given[0]
    timing = [f"        {_spelled(spec)}," for spec in task.benchmarks] if timed else []
    lines = [
        *_heading(task, "bounds are derived from its reference"),
        *(["import torch", ""] if "torch." in data else []),
        *contents_import,
        "from grader.problems.formula import Range",
        "from grader.problems.formula_module import module",
        "from grader.problems.original import Original",
        "",
        *_original(task),
        "",
        "",
        f"def formula({parameters}):",
        f"    return ORIGINAL.ref_kernel({data})",
        "",
        "",
        f"def inputs({sizes}):",
        f"    data = ORIGINAL.inputs({', '.join(f'{name}={name}' for name in task.ranges)})",
        "    return {",
        *contents,
        *numbers,
        "    }",
        "",
        "",
        "PROBLEM = module(",
        *_signature(task, file),
        "    formula=formula,",
        "    inputs=inputs,",
        "    # The smallest and the largest size of its tests, and of its benchmarks.",
        f"    sizes={{{', '.join(_range(name, *limits) for name, limits in task.ranges.items())}}},",
        "    cases=(",
        *(f'        ("{TESTS}", {_spelled(spec)}, "normal"),' for spec in task.tests),
        "    ),",
        *(["    timing=(", *timing, "    ),"] if timing else []),
        *_ending(task, packed=task.packed and not task.spread),
    ]
    return _lines(lines)


def _with_tolerance(task: Task, file: str, reason: str) -> str:
    """A module with the original's tests and tolerance."""
    filled = [value.name for value in task.data if value.filled and value.read]
    return _lines(
        [
            *_heading(task, "its tests and its tolerance are kept"),
            "from grader.problems.original import Original, Tolerance, tolerant",
            "",
            *_original(task),
            "",
            "PROBLEM = tolerant(",
            "    ORIGINAL,",
            *_signature(task, file),
            *([f"    in_place={tuple(filled)!r},"] if filled else []),
            *(["    spread=True,"] if task.spread else []),
            "    tests=(",
            *(f"        {_spelled(spec)}," for spec in task.tests),
            "    ),",
            "    tolerance=Tolerance(",
            f"        rtol={task.rtol!r},",
            f"        atol={task.atol!r},",
            f"        why={_spelled(reason.partition('. ')[0])},",
            "    ),",
            *_ending(task, packed=task.packed),
        ]
    )


def _spelled(value: Any) -> str:  # noqa: ANN401 - of a test in YAML
    """A value as Python writes it, with double quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_spelled(name)}: {_spelled(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_spelled, value))}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _heading(task: Task, how: str) -> list[str]:
    return [f'"""{task.name}, imported: {how}."""', "", "from pathlib import Path", ""]


def _original(task: Task) -> list[str]:
    return [f'ORIGINAL = Original(Path(__file__).with_name("{_originals(task)}"))']


def _signature(task: Task, file: str) -> list[str]:
    """The keywords that say what the function is, gets and returns."""
    arguments = ", ".join(
        f'"{value.name}": ' + (f'"{value.dtype}"' if value.kind is None else value.kind.__name__)
        for value in task.data
    )
    results = ", ".join(f'"{value.name}": "{value.dtype}"' for value in task.results)
    return [
        f'    id="{task.name}",',
        f'    file="{file}",',
        f'    function="{task.function}",',
        f"    arguments={{{arguments}}},",
        f"    results={{{results}}},",
    ]


def _ending(task: Task, *, packed: bool) -> list[str]:
    form = ["    packed=True,"] if packed else []
    form += [] if task.initial is None else [f"    initial={task.initial},"]
    form += [f"    weights={list(task.weights)!r},"] if task.weights else []
    return [*form, '    torch_operators="views",', ")"]


def _range(name: str, low: int, high: int, step: int, end: int) -> str:
    multiple = f", {step}" if step > 1 else ""
    further = f", end={end}" if end > high else ""
    return f'"{name}": Range({low}, {high}{multiple}{further})'


def _widening(value: Value) -> str:
    """What else a tensor may hold: real numbers of both signs, or others between those that were drawn."""
    if not value.loose:
        return ""
    if DTYPES[value.dtype].exact:
        return ", repeated=True"
    shape = ", ".join(map(str, value.lengths))
    if value.smallest < 0 < value.largest:
        return f", also=real({shape})"
    low = 0.0 if 0 <= value.smallest < value.largest / 100 else value.smallest
    return f", also=uniform({low:.3g}, {value.largest:.3g}, {shape})"


def _given(value: Value, device: str) -> str:
    """What the formula gives the reference for a part of its data."""
    if value.filled and not value.read:
        shape = ", ".join(map(str, value.lengths))
        return f"torch.empty([{shape}], dtype=torch.{value.dtype}{device})"
    return f"{value.name}.clone()" if value.filled else value.name


# Beside the modules.


def _rules(written: Sequence[Written], name: str, title: str) -> str:
    lines = [
        "# Imported. Each entry's points are a proposal; docs/assignments.md says what else may stand here.",
        f"id = {json.dumps(name)}",
        f"title = {json.dumps(title)}",
        f"languages = {json.dumps([*_HEADS])}",
    ]
    for problem in written:
        untimed = bool(problem.untimed)
        lines += [
            "",
            "[[problems]]",
            f'id = "{problem.task.name}"',
            f"title = {json.dumps(problem.task.name.replace('_', ' '))}",
            f"correctness = {10.0 if untimed else 8.0}",
            *(
                [f"# No points for speed: {' '.join(problem.untimed.split())}."]
                if untimed
                else ["performance = 2.0", "target = 1.0 # times as fast as the operations one by one"]
            ),
        ]
    return _lines(lines)


def _handout(written: Sequence[Written], title: str) -> str:
    lines = [f"# {title}", ""]
    for problem in written:
        task = problem.task
        function = f"{task.function}({_parameters(task)})"
        if task.initial is not None:
            names = [value.name for value in task.data]
            initial = ", ".join(names[: task.initial])
            inputs = ", ".join(value.name for value in task.forwarded)
            function = f"class {task.function}: {task.function}({initial})({inputs})"
        lines += [f"## `{problem.file}`", "", *([task.description, ""] if task.description else [])]
        lines += [f"Write `{function}`, with kernels in {_KERNELS}.", ""]
        lines += [*(f"- {line}" for line in _about(problem)), ""]
    return _lines(lines[:-1])


def _parameters(task: Task) -> str:
    return ", ".join(value.name for value in task.data) if task.spread or not task.packed else "data"


def _about(problem: Written) -> Iterator[str]:
    task = problem.task
    names = ", ".join(value.name for value in task.data)
    if task.packed and not task.spread:
        yield f"`data` is the tuple `({names})`."
    if task.weights:
        weights = ", ".join(f"`{name}`" for name in task.weights)
        yield f"An object has the weights {weights}, with values of their own in each case."
    for value in task.data:
        role = ". Fill it, or return another tensor in its place" if value.filled else ""
        yield f"`{value.name}` is {_kind(value)}{role}."
    returned = [
        value.name if value.filled else f"{value.name}, {_kind(value)}, which it makes"
        for value in task.results
    ]
    yield f"It returns {'; '.join(returned)}."
    if problem.tolerant:
        tests = "; ".join(", ".join(f"{name} {value}" for name, value in spec.items()) for spec in task.tests)
        yield f"It is called with {tests}."
        if task.atol or task.rtol:
            yield f"A result may be off by {task.atol:g} + {task.rtol:g} times its size."
    else:
        sizes = ", ".join(
            f"{name} from {low} to {high}" + (f", multiples of {step}" if step > 1 else "")
            for name, (low, high, step, _) in task.ranges.items()
        )
        yield f"It is called with {sizes}."


def _kind(value: Value) -> str:
    if value.kind is not None:
        return f"a number ({value.kind.__name__})"
    shape = f" of shape [{', '.join(map(str, value.lengths))}]" if value.lengths else ""
    return f"a tensor of {value.dtype}{shape}"


def _template(task: Task, language: str) -> str:
    """The text of a file that students of a language begin with."""
    first = " ".join(task.description.split("\n\n")[0].split())
    text = f"{task.name}: see HANDOUT.md." if not first or '"""' in first or "\\" in first else first
    if len(text) > 100:
        text = f"{task.name}: see HANDOUT.md."
    head = [f'"""{text}"""', "", *_HEADS[language].replace("NAME", task.name).split("\n"), ""]
    names = [value.name for value in task.data]
    if task.initial is not None:
        return _lines(
            [
                *head,
                f"class {task.function}(torch.nn.Module):",
                f"    def __init__({', '.join(['self', *names[: task.initial]])}):",
                "        super().__init__()",
                "",
                f"    def forward({', '.join(['self', *(value.name for value in task.forwarded)])}):",
                "        raise NotImplementedError",
            ]
        )
    packed = task.packed and not task.spread
    return _lines(
        [
            *head,
            f"def {task.function}({_parameters(task)}):",
            *([f'    """Unpack ``data`` into {", ".join(names)}."""'] if packed else []),
            "    raise NotImplementedError",
        ]
    )
