"""Reads a problem of the GPU MODE form: what its data, results, tests and tolerance are.

Such a folder has ``task.yml`` with tests, benchmarks and a description, and ``reference.py``. What the
function gets and returns stands nowhere: it shows when the original's own functions are run.

Layer: imports numpy, torch and the library of problems.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import math
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch
import yaml

from grader.problems.dtypes import DTYPES
from grader.problems.explained import FormulaError
from grader.problems.original import CHECK, GENERATE, REFERENCE, Original

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    Spec = Mapping[str, Any]

TASK = "task.yml"
REFERENCE_FILE = "reference.py"
_NUMBERS = frozenset({bool, int, float})
_SEED = 1
_NEAR = 2  # values of a size beside its smallest, at which shapes are looked at
_MOST = 1 << 24  # elements of all tensors, with the sizes of a benchmark, where they are
_MOST_FACTORS = 3  # of a length


class ImportFaultError(Exception):
    """A folder that cannot be imported; the message says why, in one line."""


@dataclass(frozen=True)
class Length:
    """A whole number that follows from sizes: ``factor`` x their product + ``more``."""

    sizes: tuple[str, ...]
    factor: Fraction
    more: int

    def at(self, sizes: Spec) -> Fraction:
        """The number for some sizes."""
        product: int = math.prod(sizes[name] for name in self.sizes)
        return self.factor * product + self.more

    def __str__(self) -> str:
        """The number as an expression in Python."""
        product = " * ".join(self.sizes)
        if not product:
            return str(self.more)
        text = product if self.factor.numerator == 1 else f"{self.factor.numerator} * {product}"
        text += "" if self.factor.denominator == 1 else f" // {self.factor.denominator}"
        return text + (f" {'-' if self.more < 0 else '+'} {abs(self.more)}" if self.more else "")


@dataclass(frozen=True)
class Value:
    """A part of the data that the function gets, or of what it returns.

    Attributes:
        name: as the original calls it, where it does.
        dtype: of a tensor's elements; "" for a number.
        kind: the type of a number; None for a tensor.
        lengths: how a tensor's shape follows from the sizes; of a result, only where it does so simply.
        text: a number as an expression in Python of the sizes.
        filled: whether the function may fill it, as the reference returns it.
        read: whether its content counts before that.
        smallest: of the numbers that were drawn for it.
        largest: likewise.
        loose: whether they may be replaced by other numbers of that range: they do not come in order, as
            offsets do, and of integers some come twice, unlike those of a permutation.
    """

    name: str
    dtype: str = ""
    kind: type | None = None
    lengths: tuple[Length, ...] = ()
    text: str = ""
    filled: bool = False
    read: bool = True
    smallest: float = 0.0
    largest: float = 0.0
    loose: bool = False


@dataclass(frozen=True)
class Task:
    """A problem of the form.

    Attributes:
        folder: where it lies.
        name: of the folder, as an identifier.
        description: for students.
        tests: what ``generate_input`` gets for each, beside the seed.
        benchmarks: likewise.
        ranking: how the original makes one number of the benchmarks' times.
        packed: whether the reference gets a tuple, and so does the function, unless it is ``spread``.
        data: what it gets, in order.
        results: what it returns, in order.
        rtol: the relative tolerance of the original.
        atol: the absolute one.
        listed: why its cases can be those of its tests alone; "" where shapes follow from sizes.
        function: the name of the function.
        spread: whether it gets the parts of the tuple one by one.
        initial: how many of these make an object, whose ``forward`` gets the others; None of a function.
        weights: the names of the object's weights that the next parts are.
    """

    folder: Path
    name: str
    description: str
    tests: tuple[Spec, ...]
    benchmarks: tuple[Spec, ...]
    ranking: str
    packed: bool
    data: tuple[Value, ...]
    results: tuple[Value, ...]
    rtol: float
    atol: float
    listed: str = ""
    function: str = "custom_kernel"
    spread: bool = False
    initial: int | None = None
    weights: tuple[str, ...] = ()

    @property
    def forwarded(self) -> tuple[Value, ...]:
        """What the ``forward`` of an object gets."""
        return self.data[(self.initial or 0) + len(self.weights) :]

    @property
    def ranges(self) -> Mapping[str, tuple[int, int, int, int]]:
        """The least and the largest value of each size, what all values are multiples of, and the end.

        That is the largest value of a benchmark.
        """
        ranges = {}
        for name in self.tests[0]:
            values = [spec[name] for spec in self.tests]
            timed = [spec[name] for spec in self.benchmarks]
            ranges[name] = min(values), max(values), math.gcd(*values, *timed), max((*values, *timed))
        return ranges


def read(folder: Path) -> Task:
    """The problem in a folder.

    Raises:
        ImportFaultError: it cannot be imported.
    """
    described = _described(folder)
    tests = _specs(described, "tests", folder)
    if not tests:
        raise ImportFaultError(f"{folder / TASK} has no tests, from which cases are made")
    benchmarks = _specs(described, "benchmarks", folder)
    if strange := [spec for spec in (*tests, *benchmarks) if set(spec) != set(tests[0])]:
        raise ImportFaultError(
            f"{folder / TASK}: a test says {', '.join(tests[0])}, another {', '.join(strange[0])}: "
            "all have to say the same"
        )
    try:
        return _learnt(folder, described, tests, benchmarks)
    except FormulaError as error:
        raise ImportFaultError(str(error)) from error


def drafted(draft: Path, reference: str, tests: Sequence[Spec], timed: Spec, description: str = "") -> Task:
    """The problem of a draft in this form, whose two files are written first.

    Args:
        draft: the folder, which holds what the reference imports.
        reference: the text of the file with the reference and its inputs.
        tests: the parameters of each test.
        timed: those of the test whose time counts.
        description: what the problem is about.

    Raises:
        ImportFaultError: it cannot be imported.
        OSError: a file cannot be written.
    """
    described = {
        "description": description,
        "tests": list(tests),
        "benchmarks": [timed],
        "ranking_by": "geom",
    }
    (draft / TASK).write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
    (draft / REFERENCE_FILE).write_text(reference, encoding="utf-8")
    return read(draft)


def _described(folder: Path) -> Mapping[str, Any]:
    path = folder / TASK
    try:
        described = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImportFaultError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ImportFaultError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(described, dict):
        raise ImportFaultError(f"{path} is no table of keys")
    if (language := described.get("lang", "py")) not in {"py", "python"}:
        raise ImportFaultError(f"{path}: lang is {language}: only functions in Python can be imported")
    if described.get("multi_gpu"):
        raise ImportFaultError(f"{path}: the problem needs several GPUs, and a case here runs on one")
    return described


def _specs(described: Mapping[str, Any], key: str, folder: Path) -> tuple[Spec, ...]:
    """The tests or the benchmarks, without their seeds, each once."""
    listed = described.get(key) or []
    if not (isinstance(listed, list) and all(isinstance(spec, dict) for spec in listed)):
        raise ImportFaultError(f"{folder / TASK}: {key} has to be a list of tables")
    specs: list[Spec] = []
    for spec in listed:
        without_seed = {str(name): value for name, value in spec.items() if name != "seed"}
        if without_seed not in specs:
            specs.append(without_seed)
    return tuple(specs)


def _learnt(
    folder: Path, described: Mapping[str, Any], tests: tuple[Spec, ...], benchmarks: tuple[Spec, ...]
) -> Task:
    original, spec = Original(folder), min(tests, key=_cost)
    drawn, data = original.drawn(spec, _SEED), original.data(spec, _SEED)
    packed = isinstance(drawn, tuple | list)
    definition = _definition(folder)
    values = tuple(map(_value, _names(definition, data, packed=packed), data))
    values, results = _returned(original, definition, values, data, packed=packed)
    again = Original(folder).data(spec, _SEED)
    if not all(_same(*pair) for value, *pair in zip(values, data, again, strict=True) if value.read):
        raise FormulaError(
            f"{GENERATE} gives other numbers for the same seed: it has to draw from that alone"
        )
    output = original.results(data, packed=packed)
    compared = original.compared(drawn, output[0] if len(output) == 1 else tuple(output))
    if compared is None:
        raise FormulaError(
            f"{CHECK} compares in a way of its own: it has to compare each element with the reference, as "
            "make_match_reference, torch.allclose and torch.equal do"
        )
    task = Task(
        folder=folder,
        name=identifier(folder.resolve().name),
        description=str(described.get("description") or "").strip(),
        tests=tests,
        benchmarks=benchmarks,
        ranking=str(described.get("ranking_by") or "last"),
        packed=packed,
        data=values,
        results=results,
        rtol=float(compared[0]),
        atol=float(compared[1]),
    )
    try:
        return _following(task, original)
    except FormulaError as error:
        return replace(task, listed=str(error))


def identifier(name: str) -> str:
    """The name of a folder as that of a module, which hides none of Python's or PyTorch's."""
    name = re.sub(r"\W", "_", name).lstrip("_0123456789").lower()
    taken = {*sys.stdlib_module_names, *keyword.kwlist, "task", "torch", "triton", "numpy", ""}
    return f"{name}_problem".lstrip("_") if name in taken else name


def _cost(spec: Spec) -> float:
    return math.prod(value for value in spec.values() if type(value) is int)


def _same(first: Any, second: Any) -> bool:  # noqa: ANN401 - parts of the data
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return bool(torch.equal(first.nan_to_num(), second.nan_to_num()))
    return bool(first == second)


def _definition(folder: Path) -> ast.FunctionDef:
    """The definition of the reference, whose text has names for what it gets and returns."""
    tree = ast.parse((folder / REFERENCE_FILE).read_bytes())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == REFERENCE and node.args.args:
            return node
    raise FormulaError(
        f"{folder / REFERENCE_FILE} has no function {REFERENCE} with a parameter at its top level"
    )


def _names(definition: ast.FunctionDef, data: Sequence[Any], *, packed: bool) -> list[str]:
    """What the reference calls the parts of its data."""
    parameter = definition.args.args[0].arg
    if not packed:
        return [parameter]
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == parameter:
            names = [names for target in node.targets if (names := _spelled(target, len(data)))]
            if names:
                return names[0]
    return [f"{parameter}_{number}" for number in range(len(data))]


def _spelled(node: ast.expr | None, count: int) -> list[str]:
    """The names in a tuple, or a name alone, if there are ``count`` different ones; else nothing."""
    elements = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    names = [element.id for element in elements if isinstance(element, ast.Name)]
    return names if len(set(names)) == len(elements) == count else []


def _value(name: str, value: Any) -> Value:  # noqa: ANN401 - a part of the data
    if isinstance(value, torch.Tensor):
        return tensor_value(name, value)
    if type(value) in _NUMBERS:
        return Value(name, kind=type(value))
    raise FormulaError(
        f"{name} is a {type(value).__name__}: a function can be given tensors and numbers, or a tuple of them"
    )


def tensor_value(name: str, tensor: torch.Tensor) -> Value:
    """A tensor of the data or of the results.

    Raises:
        FormulaError: it is none that a function can be given.
    """
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise FormulaError(f"{name} is a tensor of {dtype}: it has to be {', '.join(DTYPES)}")
    if not tensor.is_contiguous():
        raise FormulaError(f"{name} is a tensor with strides {tensor.stride()}: it has to be contiguous")
    if not tensor.numel() or tensor.dtype is torch.bool:
        return Value(name, dtype)
    numbers = tensor.flatten()
    ordered = bool((numbers.diff() >= 0).all())
    alone = not numbers.is_floating_point() and bool((numbers.sort().values.diff() > 0).all())
    low, high = numbers.aminmax()
    return Value(name, dtype, smallest=float(low), largest=float(high), loose=not (ordered or alone))


def _returned(
    original: Original,
    definition: ast.FunctionDef,
    values: tuple[Value, ...],
    data: Sequence[Any],
    *,
    packed: bool,
) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """The data with what the reference fills of them, and its results."""
    copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in data]
    results = original.returned(copies, packed=packed)
    if strange := [result for result in results if not isinstance(result, torch.Tensor)]:
        raise FormulaError(f"{REFERENCE} returns a {type(strange[0]).__name__}: it has to return tensors")
    filled = {
        number: position
        for number, copy in enumerate(copies)
        for position, result in enumerate(results)
        if isinstance(copy, torch.Tensor) and copy.numel()
        if (copy.data_ptr(), copy.shape, copy.dtype) == (result.data_ptr(), result.shape, result.dtype)
    }
    for number, (before, after) in enumerate(zip(data, copies, strict=True)):
        if number not in filled and not _same(before, after):
            raise FormulaError(f"{REFERENCE} changes {values[number].name} and does not return it")
    known = tuple(
        replace(
            value,
            filled=number in filled,
            read=number not in filled or _is_read(original, data, number, packed),
        )
        for number, value in enumerate(values)
    )
    by_position = {position: known[number].name for number, position in filled.items()}
    spelled = _result_names(definition, len(results))
    taken = {value.name for value in values}
    names = [
        by_position.get(position) or (f"{name}_result" if name in taken else name)
        for position, name in enumerate(spelled)
    ]
    described = tuple(map(tensor_value, names, (result.contiguous() for result in results)))
    order = [result.name for result in described if result.name in by_position.values()]
    ordered = order + [result.name for result in described if result.name not in order]
    if ordered != names or order != [value.name for value in known if value.filled]:
        raise FormulaError(
            f"{REFERENCE} has to return the tensors that it fills first, in their order in the data"
        )
    return known, tuple(replace(value, filled=value.name in order) for value in described)


def _is_read(original: Original, data: Sequence[Any], number: int, packed: bool) -> bool:
    """Whether the results depend on the content of a tensor that the reference fills."""
    outcomes = []
    for fill in (0, 3):
        changed = list(data)
        changed[number] = torch.full_like(changed[number], fill)
        outcomes.append(original.results(changed, packed=packed))
    return not all(map(_same, *outcomes))


def _result_names(definition: ast.FunctionDef, count: int) -> list[str]:
    """What the reference calls its results."""
    returns = [node.value for node in ast.walk(definition) if isinstance(node, ast.Return)]
    spelled = next((names for node in returns if (names := _spelled(node, count))), [])
    return spelled or (["result"] if count == 1 else [f"result_{number}" for number in range(count)])


def _following(task: Task, original: Original) -> Task:
    """The task with shapes and numbers that follow from sizes.

    Raises:
        FormulaError: some do not.
    """
    for spec in (*task.tests, *task.benchmarks):
        for name, value in spec.items():
            if type(value) is not int or value < 1:
                raise FormulaError(f"its tests differ in {name}, which is no size: {value!r}")
    task = _apart(task)
    points, least = list(task.tests), min(task.tests, key=_cost)
    for name, (low, high, step, _) in task.ranges.items():
        points += [{**least, name: value} for value in range(low, high + 1, step)[: _NEAR + 1]]
    shaped = _at(task, original, points)
    timed = [spec for spec in task.benchmarks if _elements(shaped, spec) <= _MOST]
    return _at(task, original, [*points, *timed]) if timed else shaped


def _elements(task: Task, spec: Spec) -> Fraction:
    """The number of elements of all tensors for these sizes."""
    tensors = [value for value in (*task.data, *task.results) if value.dtype]
    return sum(
        (math.prod((length.at(spec) for length in value.lengths), start=Fraction(1)) for value in tensors),
        Fraction(0),
    )


def _at(task: Task, original: Original, points: Sequence[Spec]) -> Task:
    """The task with what follows from the sizes at all ``points``.

    Raises:
        FormulaError: something does not.
    """
    drawn = [original.data(point, seed) for point in points for seed in (_SEED, _SEED + 1)]
    both = [point for point in points for _ in (_SEED, _SEED + 1)]
    returned = [original.results(data, packed=task.packed) for data in drawn]
    values = tuple(
        _fitted(value, both, [data[number] for data in drawn]) for number, value in enumerate(task.data)
    )
    results = list(task.results)
    for number, value in enumerate(task.results):
        with suppress(FormulaError):  # a formula says itself what shape it makes
            results[number] = _fitted(value, both, [data[number] for data in returned])
    return replace(task, data=values, results=tuple(results))


def _apart(task: Task) -> Task:
    """The task with other names for tensors that are called as a size is."""
    return replace(
        task,
        data=tuple(
            replace(value, name=f"{value.name}_tensor")
            if value.dtype and value.name in task.ranges
            else value
            for value in task.data
        ),
        results=tuple(
            replace(value, name=f"{value.name}_tensor") if value.name in task.ranges else value
            for value in task.results
        ),
    )


def _fitted(value: Value, points: Sequence[Spec], drawn: Sequence[Any]) -> Value:
    """``value`` with how its shape, or the number that it is, follows from the sizes at all ``points``.

    Raises:
        FormulaError: it does not follow.
    """
    if value.dtype:
        if len({tensor.dim() for tensor in drawn}) > 1:
            raise FormulaError(f"{value.name} has a number of dimensions that depends on the sizes")
        lengths = []
        for axis in range(drawn[0].dim()):
            length = fitting(points, [tensor.shape[axis] for tensor in drawn])
            if length is None:
                raise FormulaError(
                    f"the length of axis {axis} of {value.name} does not follow from the sizes"
                )
            lengths.append(length)
        seen_values = [tensor_value(value.name, tensor) for tensor in drawn]
        return replace(
            value,
            lengths=tuple(lengths),
            smallest=min(drawn_value.smallest for drawn_value in seen_values),
            largest=max(drawn_value.largest for drawn_value in seen_values),
            loose=any(drawn_value.loose for drawn_value in seen_values),
        )
    if all(number == drawn[0] for number in drawn) and value.name not in points[0]:
        return replace(value, text=repr(drawn[0]))
    length = fitting(points, drawn) if value.kind is int else None
    if length is None:
        raise FormulaError(f"the number {value.name} does not follow from the sizes")
    return replace(value, text=str(length))


def fitting(points: Sequence[Spec], numbers: Sequence[int]) -> Length | None:
    """How whole numbers follow from sizes: the simplest way that fits at all points."""
    for candidate in _candidates(points, numbers):
        if all(candidate.at(point) == number for point, number in zip(points, numbers, strict=True)):
            return candidate
    return None


def _candidates(points: Sequence[Spec], numbers: Sequence[int]) -> Iterator[Length]:
    names = tuple(points[0])
    yield from (Length((name,), Fraction(1), 0) for name in names)
    yield Length((), Fraction(0), numbers[0])
    for count in range(1, _MOST_FACTORS + 1):
        for chosen in itertools.combinations(names, count):
            products = [math.prod(point[name] for name in chosen) for point in points]
            other = next((number for number, product in enumerate(products) if product != products[0]), None)
            if other is not None:
                factor = Fraction(numbers[other] - numbers[0], products[other] - products[0])
                more = numbers[0] - factor * products[0]
                if more.denominator == 1:
                    yield Length(chosen, factor, int(more))
