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
from grader.languages.cuda.source import functions
from grader.languages.language import Launcher, LauncherError
from grader.problems.dtypes import DTYPES
from grader.problems.problem import ArrayParameter, Role, ScalarParameter, StreamParameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from grader.languages.cuda.source import Function, Parameter
    from grader.problems.problem import KernelProblem
    from grader.problems.problem import Parameter as Wanted

_CTYPES = {
    **dict.fromkeys(("int", "int32_t", "unsigned", "unsigned int", "uint32_t"), "int"),
    **dict.fromkeys(("long", "long long", "long int", "int64_t", "size_t", "std::size_t"), "long"),
    **dict.fromkeys(("unsigned long", "unsigned long long", "uint64_t", "ptrdiff_t"), "long"),
    "bool": "bool",
    "float": "float",
    "double": "double",
}
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
    known = ((name, one) for name, content in contents.items() for one in _functions(content))
    file, found = next((pair for pair in known if pair[1].name == problem.entry_point), ("", None))
    if found is None:
        return Launcher(problem, memory, ())
    adapted, notes = _adapted(problem, found, memory, f"{file}:{found.first}")
    return Launcher(adapted, memory, notes)


@lru_cache(maxsize=64)  # the problems of an assignment share files
def _functions(content: bytes) -> tuple[Function, ...]:
    return functions(content.decode(errors="replace"))


def _adapted(
    problem: KernelProblem, found: Function, memory: Memory, place: str
) -> tuple[KernelProblem, tuple[str, ...]]:
    """``problem`` with the parameters of ``found``, and what is to be said of it.

    Raises:
        LauncherError: in no order do types, names and ``const`` of the parameters agree with the problem's.
    """
    taken = [_kind(parameter) for parameter in found.parameters]
    contradictions: list[str] = []
    for order in (_by_name(problem, found), *_by_place(problem, memory)):
        if order is None or len(order) != len(taken):
            continue
        if all(_fits(wanted, kind) for wanted, kind in zip(order, taken, strict=True)):
            if unlike := [*_contradictions(problem, found, order)]:
                contradictions += unlike
                continue
            parameters = tuple(_as_taken(*pair) for pair in zip(order, taken, strict=True))
            streams = [one for one in order if isinstance(one, StreamParameter)]
            if memory is Memory.DEVICE and not streams:
                raise LauncherError(
                    f"{found.name} ({place}) takes no stream: work must go to the stream that it is given."
                )
            return replace(problem, parameters=parameters), tuple(_said(problem, found, order))
    why = f" {contradictions[0]}." if contradictions else ""
    raise LauncherError(
        f"{found.name} ({place}) takes {len(found.parameters)} arguments ({_listed(found.parameters)}), the "
        f"assignment's {len(problem.parameters)} ({_asked(problem.parameters)}).{why} Give it those."
    )


def _contradictions(problem: KernelProblem, found: Function, order: Sequence[Wanted]) -> Iterator[str]:
    """Which parameters of ``found`` cannot be those of ``order``, by their names or by their ``const``."""
    meant = _meant(problem)
    for parameter, wanted in zip(found.parameters, order, strict=True):
        said = f"{_listed([parameter])} stands where the assignment has {_asked([wanted])}"
        if meant.get(parameter.name, wanted) != wanted:
            yield said
        elif parameter.const and isinstance(wanted, ArrayParameter) and wanted.role is not Role.INPUT:
            yield f"{said}, to which results are written"


def _meant(problem: KernelProblem) -> dict[str, Wanted]:
    """The parameters of ``problem`` by each of their names."""
    names: dict[str, Wanted] = {parameter.name: parameter for parameter in problem.parameters}
    return names | {other: array for array in problem.arrays for other in array.other_names}


def _by_name(problem: KernelProblem, found: Function) -> list[Wanted] | None:
    """The problem's parameters in the order of ``found``, if all names of that are the problem's."""
    meant = _meant(problem)
    order = [meant[one.name] for one in found.parameters if one.name in meant]
    if len(set(order)) < len(found.parameters):
        return None
    missing = [one for one in problem.parameters if one not in order]
    return order if all(_may_lack(one) for one in missing) else None


def _by_place(problem: KernelProblem, memory: Memory) -> Iterator[list[Wanted]]:
    """The problem's parameters in order: all of them, then without some that a launcher may lack."""
    spare = [one for one in problem.parameters if _may_lack(one)]
    for count in range(len(spare) + 1):
        for gone in combinations(spare, count):
            left = [one for one in problem.parameters if one not in gone]
            if memory is Memory.HOST or any(isinstance(one, StreamParameter) for one in left):
                yield left


def _may_lack(parameter: Wanted) -> bool:
    return isinstance(parameter, StreamParameter) or (
        isinstance(parameter, ArrayParameter) and parameter.optional
    )


def _kind(parameter: Parameter) -> str:
    """The type of a pointer, ``stream`` or the type of a value; "" for a type that cannot be passed."""
    if parameter.type in _STREAMS:
        return "stream"
    if parameter.type.endswith("*"):
        return f"{parameter.type.removesuffix('*').strip()}*"
    return _CTYPES.get(parameter.type, "")


def _fits(wanted: Wanted, kind: str) -> bool:
    if isinstance(wanted, ScalarParameter) and wanted.ctype == _LONGS:
        return kind.removesuffix("*") in DTYPES["int64"].spellings and kind.endswith("*")
    if isinstance(wanted, ScalarParameter):
        return kind == wanted.ctype or (wanted.ctype in _WHOLE and kind in _WHOLE)
    if isinstance(wanted, ArrayParameter):
        return kind.removesuffix("*") in {"void", *DTYPES[wanted.dtype].spellings} and kind.endswith("*")
    return kind == "stream"


def _as_taken(wanted: Wanted, kind: str) -> Wanted:
    if isinstance(wanted, ScalarParameter) and wanted.ctype != _LONGS:
        return replace(wanted, ctype=kind)
    return wanted


def _said(problem: KernelProblem, found: Function, order: Sequence[Wanted]) -> Iterator[str]:
    """How ``order`` differs from the problem's."""
    missing = [one.name for one in problem.parameters if one not in order]
    if missing:
        yield f"{found.name} takes no {' and no '.join(missing)}: it is called without"
    if [one for one in problem.parameters if one in order] != list(order):
        yield (
            f"{found.name} takes its arguments in another order ({_listed(found.parameters)}): "
            "they are passed by name"
        )


def _listed(parameters: Iterable[Parameter]) -> str:
    return ", ".join(
        f"{'const ' if one.const and '*' in one.type else ''}{one.type} {one.name}".strip()
        for one in parameters
    )


def _asked(parameters: Iterable[Wanted]) -> str:
    return ", ".join(
        f"{'const ' if one.role is Role.INPUT else ''}{DTYPES[one.dtype].spellings[0]}* {one.name}"
        if isinstance(one, ArrayParameter)
        else f"{_HOST_ARRAY if one.ctype == _LONGS else one.ctype} {one.name}"
        if isinstance(one, ScalarParameter)
        else f"cudaStream_t {one.name}"
        for one in parameters
    )
