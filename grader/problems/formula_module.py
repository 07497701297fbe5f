"""A module problem from one formula: oracle, error bounds, baseline and cases follow from it.

A whole problem module:

    \"\"\"Each row divided by its sum.\"\"\"

    from grader.problems.contents import positive
    from grader.problems.formula import Range
    from grader.problems.formula_module import module

    PROBLEM = module(
        id="shares",
        file="submission.py",
        function="custom_kernel",
        arguments={"x": "float32", "y": "float32"},
        results={"y": "float32"},
        formula=lambda x: x / x.sum(-1, keepdim=True),
        inputs=lambda rows, columns: {"x": positive(rows, columns)},
        sizes={"rows": Range(1, 1 << 14), "columns": Range(1, 1 << 14)},
        packed=True,
    )

Here ``custom_kernel(data)`` gets the tuple ``(x, y)``, and fills ``y`` or returns another tensor instead.
Everything else follows from the formula, as for kernel problems (``formula.py``).

Layer: imports torch by ``formula``, and the library of problems.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from grader.problems.dtypes import DTYPES
from grader.problems.formula import FormulaError, of_parameters
from grader.problems.module import ModuleProblem
from grader.problems.problem import ArrayParameter, Role, ScalarParameter
from grader.problems.sizes import MOST_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from grader.problems.contents import Content, Number
    from grader.problems.formula import Formula, Sizes
    from grader.problems.module import Operators
    from grader.problems.problem import Budget, Parameter, Range

NUMBERS: Mapping[type, str] = {int: "long", float: "double", bool: "bool"}
"""The types of numbers in Python, and of the parameters that pass them."""


def module(
    *,
    id: str,  # noqa: A002 - the field's name
    file: str,
    function: str,
    arguments: Mapping[str, str | type],
    results: Mapping[str, str],
    formula: Formula,
    inputs: Callable[..., Mapping[str, Content | Number | float]],
    sizes: Mapping[str, Range],
    timing: Sequence[Sizes] = (),
    also: Sequence[Formula] = (),
    cases: Sequence[tuple[str, Sizes, str]] = (),
    without: Sequence[str] = (),
    most: int = MOST_ELEMENTS,
    budget: Budget | None = None,
    packed: bool = False,
    initial: int | None = None,
    weights: Sequence[str] = (),
    torch_operators: Operators = "views",
) -> ModuleProblem:
    """The problem of writing a function on tensors; the module's text has an example.

    Args:
        id: the module's name.
        file: the Python file of a submission.
        function: the name of the function in it.
        arguments: what it is given, in order: the element type of each tensor as a text, or the Python type
            of a number: ``int``, ``float`` or ``bool``.
        results: the element type of each tensor that it returns, in order. Of a name that is also an argument
            it may fill the tensor that it is given instead; where ``inputs`` has that, too, it is in place.
        formula: as in ``formula.problem``, like all that is not named here.
        inputs: likewise.
        sizes: likewise.
        timing: likewise.
        also: likewise.
        cases: likewise.
        without: likewise.
        most: likewise.
        budget: likewise.
        packed: whether the function takes one tuple of all its arguments.
        initial: where ``function`` is a class, how many of the first arguments its objects are made with:
            their ``forward`` gets the others.
        weights: the names of the objects' weights that the next arguments are, which ``forward`` does not
            get.
        torch_operators: which operators of PyTorch it may use.

    Raises:
        FormulaError: the parts do not fit together.
    """
    problem = of_parameters(
        parameters_of(arguments, results),
        id=id,
        file=file,
        entry_point=function,
        formula=formula,
        inputs=inputs,
        sizes=sizes,
        timing=timing,
        also=also,
        cases=cases,
        without=without,
        most=most,
        budget=budget,
    )
    return ModuleProblem(
        **{field.name: getattr(problem, field.name) for field in fields(problem)},
        made=tuple(name for name in results if name not in arguments),
        packed=packed,
        initial=initial,
        weights=tuple(weights),
        torch_operators=torch_operators,
    )


def parameters_of(
    arguments: Mapping[str, str | type], results: Mapping[str, str], in_place: Collection[str] = ()
) -> tuple[Parameter, ...]:
    """The arguments in order, and behind them the results that are none of them.

    Args:
        arguments: as in ``module``.
        results: likewise.
        in_place: the results whose content counts before.

    Raises:
        FormulaError: a type is unknown, there is no result, or the outputs among the arguments come in
            another order than the results.
    """
    if not results:
        raise FormulaError("results is empty: name the tensors that the function returns or fills")
    kept = [name for name in arguments if name in results]
    if kept + [name for name in results if name not in arguments] != list(results):
        raise FormulaError("results names arguments that are filled first, in the order of the arguments")
    parameters: list[Parameter] = []
    for name, kind in {**arguments, **results}.items():
        if arguments.get(name, kind) != kind:
            raise FormulaError(f"{name} is {arguments[name]} as an argument and {kind} as a result")
        if isinstance(kind, type) and kind in NUMBERS:
            parameters.append(ScalarParameter(name, NUMBERS[kind]))
        elif isinstance(kind, str) and kind in DTYPES:
            role = Role.INOUT if name in in_place else Role.OUTPUT if name in results else Role.INPUT
            parameters.append(ArrayParameter(name, role, kind))
        else:
            types = ", ".join(map(repr, DTYPES))
            numbers = ", ".join(number.__name__ for number in NUMBERS)
            raise FormulaError(f"{name} is {kind!r}: a tensor is {types}; a number is {numbers}")
    return tuple(parameters)
