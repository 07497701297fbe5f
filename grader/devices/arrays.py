"""Names the arrays of a call in what the simulator saw: shape, element type, and the element meant."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.devices import layout
from grader.devices.device import ArrayArgument
from grader.problems.dtypes import DTYPES
from grader.records.findings import facts, in_triton

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grader.devices.device import Call
    from grader.records.findings import Finding

_NULL = {"null", "null_argument"}


def named(findings: Iterable[Finding], call: Call) -> tuple[Finding, ...]:
    """``findings`` with what is known of the arrays of ``call`` that they are about."""
    arguments = {each.name: each for each in call.arguments if isinstance(each, ArrayArgument)}
    nulls = [name for name, argument in arguments.items() if argument.null]
    return tuple(_named(finding, arguments, nulls) for finding in findings)


def _named(finding: Finding, arguments: dict[str, ArrayArgument], nulls: list[str]) -> Finding:
    values = finding.values
    if finding.reason in _NULL and len(nulls) == 1 and str(values.get("arguments", "1")).isdecimal():
        return replace(finding, facts=(*finding.facts, *facts(null_name=nulls[0])))
    if finding.kind == "shared_oob" and values.get("size") == 0:  # neither static nor dynamic
        return replace(finding, reason="none_asked_for")
    argument = arguments.get(str(values.get("array", "")))
    if argument is None:
        return finding
    shape, dtype, width = argument.shape, argument.dtype, DTYPES[argument.dtype].itemsize
    if argument.struct:
        shape, dtype, width = argument.shape[:-1], argument.struct, argument.shape[-1]
    more: dict[str, int | str] = {"shape": str(list(shape)), "dtype": dtype}
    byte, distance = values.get("byte"), values.get("distance")
    if isinstance(byte, int):
        more["index"] = byte // width
    elif isinstance(distance, int) and finding.reason == "behind" and len(shape) > 1:
        columns = shape[-1]
        element = (layout.data_bytes(argument) + distance) // width
        more |= {"row": element // max(columns, 1), "column": element % max(columns, 1)}
        finding = _unmasked(finding, "behind_rows")
    elif finding.reason == "behind" and len(shape) == 1:
        more["elements"] = shape[0]
        finding = _unmasked(finding, "behind_elements")
    return replace(finding, facts=(*finding.facts, *facts(**more)))


def _unmasked(finding: Finding, reason: str) -> Finding:
    """The finding with a reason of kernels that compare indices; programs in Triton have masks."""
    return finding if in_triton(finding) else replace(finding, reason=reason)
