"""How a submission's launcher is to be called, read from its source: its arguments and their order.

Launchers of other years differ from the assignment's: some lack an argument that no formula needs, or take
them in another order. Those are called as they are, and a note says so. What cannot be called without
guessing is a ``LauncherError`` that names both signatures: where a name or a ``const`` contradicts the order,
results would go into inputs, and the findings would be those of a wrong call.

Layer: imports the build's view of a source, devices' words and the problem's shape.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from grader.devices.device import Memory
from grader.languages.cuda.source import aliases, functions, resolved
from grader.languages.language import Launcher, LauncherError
from grader.problems.dtypes import DTYPES, alike
from grader.problems.problem import (
    ArrayParameter,
    HandleParameter,
    Role,
    ScalarParameter,
    StreamParameter,
    StructParameter,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from grader.languages.cuda.source import Function, Parameter
    from grader.problems.problem import KernelProblem
    from grader.problems.problem import Parameter as ProblemParameter

_CTYPES = {
    **dict.fromkeys(("int", "int32_t", "unsigned", "unsigned int", "uint32_t"), "int"),
    **dict.fromkeys(("char", "signed char", "unsigned char", "int8_t", "uint8_t"), "int"),
    **dict.fromkeys(("short", "unsigned short", "int16_t", "uint16_t"), "int"),
    **dict.fromkeys(("long", "long long", "long int", "int64_t", "size_t", "std::size_t"), "long"),
    **dict.fromkeys(("unsigned long", "unsigned long long", "uint64_t", "ptrdiff_t"), "long"),
    "bool": "bool",
    "float": "float",
    "double": "double",
}
_BY_SYSTEM = {"uint": "unsigned int", "ushort": "unsigned short", "ulong": "unsigned long"}
"""Names of types that headers of the system give."""
_LONGS, _HOST_ARRAY = "longs", "const long long*"
_WHOLE = {"int", "long", "bool"}
_STREAMS = {"cudaStream_t", "CUstream"}


def launcher(problem: KernelProblem, contents: Mapping[str, bytes], memory: Memory) -> Launcher:
    """The launcher of ``problem`` in ``contents``, its file and what that includes.

    Args:
        problem: what the assignment asks for.
        contents: sources by name; a launcher that is found in none of them is called as the assignment says.
        memory: which pointers to pass. A launcher may take no stream where these are the host's.

    Raises:
        LauncherError: its parameters fit no reading of the problem's.
    """
    candidates = ((name, function) for name, content in contents.items() for function in _functions(content))
    file, function = next((pair for pair in candidates if pair[1].name == problem.entry_point), ("", None))
    if function is None:
        return Launcher(problem, memory, ())
    names = {
        **_BY_SYSTEM,
        **{name: kind for content in contents.values() for name, kind in _aliases(content).items()},
    }
    parameters = tuple(resolved(parameter, names) for parameter in function.parameters)
    function = replace(function, parameters=parameters)
    adapted, notes = _adapted(problem, function, memory, f"{file}:{function.first}")
    return Launcher(adapted, memory, notes)


@lru_cache(maxsize=64)  # the problems of an assignment share files
def _functions(content: bytes) -> tuple[Function, ...]:
    return functions(content.decode(errors="replace"))


@lru_cache(maxsize=64)
def _aliases(content: bytes) -> Mapping[str, str]:
    return aliases(content.decode(errors="replace"))


def _adapted(
    problem: KernelProblem, function: Function, memory: Memory, line: str
) -> tuple[KernelProblem, tuple[str, ...]]:
    """``problem`` with the parameters of ``function``, and notes on how they differ; it begins at ``line``.

    Raises:
        LauncherError: in no order do types, names and ``const`` of the parameters agree with the problem's.
    """
    taken = [_kind(parameter) for parameter in function.parameters]
    contradictions: list[str] = []
    for order in (_by_name(problem, function), *_by_position(problem, memory)):
        if order is None or len(order) != len(taken):
            continue
        if all(_fits(parameter, kind) for parameter, kind in zip(order, taken, strict=True)):
            if unlike := [*_contradictions(problem, function, order)]:
                contradictions += unlike
                continue
            parameters = tuple(_as_taken(*pair) for pair in zip(order, taken, strict=True))
            if memory is Memory.DEVICE and _has_stream(problem.parameters) and not _has_stream(order):
                raise LauncherError(
                    f"{function.name} ({line}) takes no stream: work must go to the stream that it is given."
                )
            if problem.returns and function.returns_nothing:
                raise LauncherError(
                    f"{function.name} ({line}) returns nothing, the assignment's a {problem.returns}*: later "
                    "calls are given what it returns."
                )
            return replace(problem, parameters=parameters), tuple(_differences(problem, function, order))
    why = f" {contradictions[0]}." if contradictions else ""
    raise LauncherError(
        f"{function.name} ({line}) takes {len(function.parameters)} arguments "
        f"({_listed(function.parameters)}), the assignment's {len(problem.parameters)} "
        f"({_declared(problem.parameters)}).{why} Give it those."
    )


def _contradictions(
    problem: KernelProblem, function: Function, order: Sequence[ProblemParameter]
) -> Iterator[str]:
    """Which parameters of ``function`` cannot be those of ``order``, by their names or by their ``const``."""
    by_name = _parameters_by_name(problem)
    for parameter, expected in zip(function.parameters, order, strict=True):
        difference = f"{_listed([parameter])} stands where the assignment has {_declared([expected])}"
        if by_name.get(parameter.name, expected) != expected:
            yield difference
        elif parameter.const and _is_written(expected):
            yield f"{difference}, to which results are written"


def _is_written(parameter: ProblemParameter) -> bool:
    """Whether results are written to what it points to."""
    return isinstance(parameter, ArrayParameter | StructParameter) and parameter.role in {
        Role.OUTPUT,
        Role.INOUT,
    }


def _parameters_by_name(problem: KernelProblem) -> dict[str, ProblemParameter]:
    """The parameters of ``problem`` by each of their names."""
    names: dict[str, ProblemParameter] = {parameter.name: parameter for parameter in problem.parameters}
    arrays = (parameter for parameter in problem.parameters if isinstance(parameter, ArrayParameter))
    return names | {other: array for array in arrays for other in array.other_names}


def _by_name(problem: KernelProblem, function: Function) -> list[ProblemParameter] | None:
    """The problem's parameters in the order of ``function``, if all its names are the problem's."""
    by_name = _parameters_by_name(problem)
    order = [by_name[parameter.name] for parameter in function.parameters if parameter.name in by_name]
    if len(set(order)) < len(function.parameters):
        return None
    missing = [parameter for parameter in problem.parameters if parameter not in order]
    return order if all(_may_lack(parameter) for parameter in missing) else None


def _by_position(problem: KernelProblem, memory: Memory) -> Iterator[list[ProblemParameter]]:
    """The problem's parameters in order: all of them, then without some that a launcher may lack."""
    spare = [parameter for parameter in problem.parameters if _may_lack(parameter)]
    for count in range(len(spare) + 1):
        for gone in combinations(spare, count):
            remaining = [parameter for parameter in problem.parameters if parameter not in gone]
            if memory is Memory.HOST or _has_stream(remaining) or not _has_stream(problem.parameters):
                yield remaining


def _has_stream(parameters: Iterable[ProblemParameter]) -> bool:
    return any(isinstance(parameter, StreamParameter) for parameter in parameters)


def _may_lack(parameter: ProblemParameter) -> bool:
    return isinstance(parameter, StreamParameter) or (
        isinstance(parameter, ArrayParameter) and parameter.optional
    )


def _kind(parameter: Parameter) -> str:
    """The type of a pointer, ``stream`` or the type of a value, which may be a struct's name."""
    if parameter.type in _STREAMS:
        return "stream"
    if parameter.type.endswith("*"):
        return f"{parameter.type.removesuffix('*').removeprefix('struct ').strip()}*"
    return _CTYPES.get(parameter.type) or f"struct {parameter.type.removeprefix('struct ')}"


def _fits(expected: ProblemParameter, kind: str) -> bool:
    if isinstance(expected, ScalarParameter) and expected.ctype == _LONGS:
        return kind.removesuffix("*") in DTYPES["int64"].spellings and kind.endswith("*")
    if isinstance(expected, ScalarParameter):
        return kind == expected.ctype or (expected.ctype in _WHOLE and kind in _WHOLE)
    if isinstance(expected, StructParameter):
        name = expected.struct.name
        return kind == (f"struct {name}" if expected.role is None else f"{name}*")
    if isinstance(expected, HandleParameter):
        return kind.endswith("*")
    if isinstance(expected, ArrayParameter):
        spellings = {"void", *DTYPES[expected.dtype].spellings, *alike(expected.vector)}
        return kind.removesuffix("*") in spellings and kind.endswith("*")
    return kind == "stream"


def _as_taken(expected: ProblemParameter, kind: str) -> ProblemParameter:
    if isinstance(expected, ScalarParameter) and expected.ctype != _LONGS:
        return replace(expected, ctype=kind)
    return expected


def _differences(
    problem: KernelProblem, function: Function, order: Sequence[ProblemParameter]
) -> Iterator[str]:
    """Sentences on how ``order`` differs from the order of the problem's parameters."""
    missing = [parameter.name for parameter in problem.parameters if parameter not in order]
    if missing:
        yield f"{function.name} takes no {' and no '.join(missing)}: it is called without"
    if [parameter for parameter in problem.parameters if parameter in order] != list(order):
        yield (
            f"{function.name} takes its arguments in another order ({_listed(function.parameters)}): "
            "they are passed by name"
        )


def _listed(parameters: Iterable[Parameter]) -> str:
    def text(parameter: Parameter) -> str:
        const = "const " if parameter.const and "*" in parameter.type else ""
        return f"{const}{parameter.type} {parameter.name}".strip()

    return ", ".join(map(text, parameters))


def _declared(parameters: Iterable[ProblemParameter]) -> str:
    def text(parameter: ProblemParameter) -> str:
        if isinstance(parameter, ArrayParameter):
            const = "const " if parameter.role is Role.INPUT else ""
            return f"{const}{parameter.spelling}* {parameter.name}"
        if isinstance(parameter, StructParameter):
            const = "const " if parameter.role is Role.INPUT else ""
            return f"{const}{parameter.struct.name}{'*' if parameter.role else ''} {parameter.name}"
        if isinstance(parameter, ScalarParameter):
            return f"{_HOST_ARRAY if parameter.ctype == _LONGS else parameter.ctype} {parameter.name}"
        if isinstance(parameter, HandleParameter):
            return f"{parameter.type}* {parameter.name}"
        return f"cudaStream_t {parameter.name}"

    return ", ".join(map(text, parameters))
