"""The sentence of a finding, made of its facts in the words of the language that its file is written in.

This is the last step: nothing reads a sentence. The templates stand in ``records/findings.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from grader.records.findings import KINDS, Reason, in_triton

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.records.findings import Index, Line, Place

_IN_LIBRARY = (
    "{library} does this in a call of yours: compare the sizes, strides and pointers of the call with the "
    "memory that they belong to."
)
_OPTIONAL = re.compile(r"\[([^]]*)]")
_ALTERNATIVES = {
    "target": (
        "element {index} of {array}[ {shape} ({dtype})]",
        "byte {byte} of {array}",
        "byte {byte} of an allocation of {size} bytes",
        "global memory",
    ),
    "allocation": (
        "{array}[ {shape} ({dtype})]",
        "an allocation of {size:bytes}",
        "a freed allocation of {freed_size:bytes}",
    ),
    "inside": (" in {function} of {library}", " in {library}", ""),
    "word": (
        "byte {shared_byte} of shared memory",
        "the variable {variable}[ (byte {byte:,})]",
        "byte {array_byte:,} of an array in global memory",
        "a word of global memory",
    ),
}
"""Fields that are made of others: the first text whose facts are known."""


class _Told(Protocol):
    """What a sentence is made of: a finding, or what a record holds of one."""

    @property
    def kind(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def places(self) -> Sequence[Place]: ...
    @property
    def values(self) -> Mapping[str, int | str]: ...


@dataclass(frozen=True)
class Sentence:
    """What was seen, and what follows from it."""

    observation: str
    why: str

    def __str__(self) -> str:
        return self.observation + self.why


class _Number(int):
    """A number with the units that templates ask for."""

    def __format__(self, spec: str) -> str:
        if spec == "none":
            return ""
        if spec == "bytes":
            return f"{int(self)} {'byte' if self == 1 else 'bytes'}"
        return f"{int(self) % (1 << 64):#x}" if spec == "hex" else format(int(self), spec)


def sentence(finding: _Told) -> Sentence:
    """What a finding says, for people."""
    return _from_templates(_reason(finding), _fields(finding))


def advice(finding: _Told, between: str = "") -> tuple[str, str]:
    """What is wrong, without a full stop, and what to do; ``between`` says where, of a race."""
    kind, reason = KINDS[finding.kind], _reason(finding)
    fields = {**_fields(finding), "between": between}
    in_python = in_triton(finding) and reason is not kind.reasons.get(finding.reason)
    do = reason.do if in_python or not in_triton(finding) else kind.triton or reason.do
    if library := finding.values.get("in_library"):
        do = _IN_LIBRARY.format(library=library)
    return _filled(reason.mistake or kind.mistake, fields), _filled(do or kind.do, fields)


def fault_key(finding: _Told) -> tuple[str, str]:
    """The kind, and what sets the finding apart from others of its kind that are mended in another way."""
    return finding.kind, _filled(_reason(finding).fault, _fields(finding))


def _reason(finding: _Told) -> Reason:
    kind = KINDS[finding.kind]
    reason = kind.reasons.get(finding.reason, Reason(kind.mistake))
    return (in_triton(finding) and reason.triton) or reason


def _from_templates(reason: Reason, fields: Mapping[str, object]) -> Sentence:
    led = "" if "other_line_number" in fields or not fields.get("calls") else f";{fields['calls']}"
    return Sentence(_filled(reason.observation, fields), _filled(reason.why, fields) + led)


def _filled(template: str, fields: Mapping[str, object]) -> str:
    def optional(part: re.Match[str]) -> str:
        if "{" not in part[1]:  # an index
            return part[0]
        return part[1] if _all_known(part[1], fields) else ""

    return _OPTIONAL.sub(optional, template).format_map(fields)


def _all_known(template: str, fields: Mapping[str, object]) -> bool:
    return all(name in fields for name in re.findall(r"{(\w+)", template))


def _fields(finding: _Told) -> dict[str, object]:
    triton = in_triton(finding)
    fields: dict[str, object] = {
        "kernel": finding.kernel,
        "subject": "the kernel",
        "syncthreads": "tl.debug_barrier()" if triton else "__syncthreads()",
        "syncwarp": "tl.debug_barrier()" if triton else "__syncwarp()",
    }
    for prefix, access in zip(("", "other_"), finding.places, strict=False):
        calls = ", ".join(f"at {_at(call)}" for call in access.calls)
        fields[f"{prefix}calls"] = calls and f" called {calls}"
        fields[f"{prefix}line"] = f" (line {access.line}){fields[f'{prefix}calls']}" if access.line else ""
        if access.line:
            fields[f"{prefix}line_number"] = access.line
    fields |= zip(("who", "other"), names(finding.places, triton=triton), strict=False)
    if finding.places:
        fields |= {"does": finding.places[0].does, "n": _Number(finding.places[0].bytes)}
    does = fields.get("does")
    fields["reads_or_writes"] = does if does in {"reads", "writes"} else "reads or writes"
    if len(finding.places) > 1:
        fields["did"] = {"writes": "written", "reads": "read"}.get(finding.places[1].does, "")
    fields |= {
        name: _Number(value) if isinstance(value, int) else value for name, value in finding.values.items()
    }
    return fields | _composed(fields)


def _composed(fields: Mapping[str, object]) -> dict[str, object]:
    """What takes several facts to say."""
    composed: dict[str, object] = {"cause": "", "cause_why": ""}
    if "column" in fields:
        composed["be"] = f"have its column {fields['column']}" if fields["column"] else "begin"
    for name, templates in _ALTERNATIVES.items():
        fitting = (text for text in templates if _all_known(_OPTIONAL.sub("", text), fields))
        if (template := next(fitting, None)) is not None:
            composed[name] = _filled(template, fields)
    if "cause_kind" in fields:
        reason = KINDS[str(fields["cause_kind"])].reasons[str(fields["cause_reason"])]
        cause = _from_templates(reason, {**fields, **composed})
        composed |= {"cause": cause.observation, "cause_why": cause.why}
    return composed


def names(places: Sequence[Place], *, triton: bool) -> list[str]:
    """How each thread or block is called: a thread of Triton is no more than a part of its program."""
    names: list[str] = []
    for access in places:
        block = f"{'program' if triton else 'block'} {_index(access.block)}"
        if access.thread is None or (triton and block not in names):
            names.append(block if access.block else "")
        else:
            names.append("another of its threads" if triton else f"thread {_index(access.thread)} of {block}")
    return names


def _index(index: Index | None) -> str:
    return f"({','.join(map(str, index or ()))})"


def _at(line: Line) -> str:
    return f"{PurePath(line.file).name}:{line.line}"
