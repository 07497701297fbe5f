"""What a case calls where a problem has several launchers, or one that is called several times.

A plan and its execution, the steps of an optimiser, a queue: all calls of a case work on the same arrays, one
after the other, and the formula says what these hold at the end.

Layer: imports the problem's shape.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grader.problems.explained import FormulaError, explained
from grader.problems.problem import (
    ArrayParameter,
    HandleParameter,
    KernelProblem,
    LauncherCall,
    Role,
    StructParameter,
    arrays_of,
    scalars_of,
)

if TYPE_CHECKING:
    from grader.problems.problem import Case, Parameter

Calls = Callable[..., Sequence[str | tuple[str, Mapping[str, int | float]]]]
Shapes = Callable[[Mapping[str, int]], Mapping[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Declared:
    """A launcher as the assignment declares it; ``returns`` is what it returns a pointer to, or empty."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str = ""


@dataclass(frozen=True)
class CallSequence:
    """The launchers of a problem, and what a case calls.

    Attributes:
        launchers: all of them.
        written: from sizes to the calls, as the assignment has it; None for each launcher once.
    """

    launchers: tuple[Declared, ...]
    written: Calls | None

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that say what is called."""
        return () if self.written is None else tuple(inspect.signature(self.written).parameters)

    def parameters(self, least: Mapping[str, int]) -> tuple[Parameter, ...]:
        """All arrays, streams and numbers of a case, but for the numbers that calls bring along.

        An array that one of the launchers writes is written. ``least`` are any sizes.
        """
        brought = {name for call in self.calls(least) for name in call.arguments}
        together: dict[str, Parameter] = {}
        for launcher in self.launchers:
            for parameter in launcher.parameters:
                known = together.setdefault(parameter.name, parameter)
                if _is_read(known) and not _is_read(parameter):
                    together[parameter.name] = parameter
                if type(known) is not type(parameter):
                    raise FormulaError(
                        f"{parameter.name} is of another type in {launcher.name} than in a launcher before it"
                    )
        arrays = {array.name for array in arrays_of(together.values())}
        return tuple(
            parameter
            for parameter in together.values()
            if not isinstance(parameter, HandleParameter)
            and (parameter.name not in brought or parameter.name in arrays)
        )

    def calls(self, sizes: Mapping[str, int]) -> tuple[LauncherCall, ...]:
        """What a case of these sizes calls, in order.

        Raises:
            FormulaError: that is not what the launchers are.
        """
        if self.written is None:
            return tuple(LauncherCall(launcher.name) for launcher in self.launchers)
        if unknown := [name for name in self.sizes if name not in sizes]:
            raise FormulaError(f"calls asks for {unknown[0]}, which is no size. There are {', '.join(sizes)}")
        with explained("calls", sizes):
            listed = [
                (entry, {}) if isinstance(entry, str) else entry
                for entry in self.written(**{name: sizes[name] for name in self.sizes})
            ]
            return tuple(LauncherCall(name, dict(arguments)) for name, arguments in listed)

    def checked(self, sizes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse calls that cannot be made with arrays of these ``shapes``.

        Raises:
            FormulaError: says which, and what to do.
        """
        by_name = {launcher.name: launcher for launcher in self.launchers}
        brought = {name for call in self.calls(sizes) for name in call.arguments}
        returned: set[str] = set()
        by_row: dict[str, bool] = {}
        for call in self.calls(sizes):
            launcher = by_name.get(call.launcher)
            if launcher is None:
                raise FormulaError(f"calls has {call.launcher}, which is no launcher: {', '.join(by_name)}")
            arrays = {array.name for array in launcher.parameters if isinstance(array, ArrayParameter)}
            numbers = {scalar.name for scalar in scalars_of(launcher.parameters)}
            _check_numbers(call, arrays, numbers, shapes)
            for name in arrays:
                if by_row.setdefault(name, name in call.arguments) is not (name in call.arguments):
                    raise FormulaError(f"{name} is passed as a whole in one call and by its rows in another")
            if missing := [name for name in numbers if name in brought and name not in call.arguments]:
                raise FormulaError(f"calls gives {missing[0]} to some calls alone: {call.launcher} lacks it")
            for parameter in launcher.parameters:
                if isinstance(parameter, HandleParameter) and parameter.type not in returned:
                    raise FormulaError(
                        f"{call.launcher} takes {parameter.name}, and no call before it returns a "
                        f"{parameter.type}*"
                    )
            returned |= {launcher.returns} - {""}

    def asked(self, problem: KernelProblem, shapes: Shapes) -> KernelProblem:
        """``problem``, which has all parameters, as one that makes these calls."""

        def calls(case: Case) -> tuple[LauncherCall, ...]:
            self.checked(case.sizes, shapes(case.sizes))
            return self.calls(case.sizes)

        launchers = {
            launcher.name: replace(
                problem,
                entry_point=launcher.name,
                parameters=launcher.parameters,
                returns=launcher.returns,
            )
            for launcher in self.launchers
        }
        return replace(problem, launchers=launchers, calls=calls)


def _is_read(parameter: Parameter) -> bool:
    """Whether a launcher may only read what this points to."""
    return isinstance(parameter, ArrayParameter | StructParameter) and parameter.role is Role.INPUT


def _check_numbers(
    call: LauncherCall,
    arrays: Collection[str],
    numbers: Collection[str],
    shapes: Mapping[str, tuple[int, ...]],
) -> None:
    """Refuse a number for what is neither one of the ``numbers`` nor a row of one of the ``arrays``."""
    for name, number in call.arguments.items():
        if name not in {*arrays, *numbers}:
            raise FormulaError(
                f"calls gives {call.launcher} a number for {name}, which is no scalar and no array of it"
            )
        if name in arrays and number not in range(shapes[name][0] if len(shapes[name]) > 1 else 0):
            raise FormulaError(
                f"calls gives {call.launcher} row {number} of {name}, whose shape is {shapes[name]}"
            )
