"""How values travel between the judge and the simulated device; ``server/wire.h`` is the other side.

Dataclasses travel as their fields in order, integers and members of enumerations as 8 bytes, little-endian,
and texts, bytes and tuples behind their length. :func:`name_of` tells that in words, for both to compare.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from functools import cache
from itertools import chain, groupby
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind: TypeAlias = Any
"""A type: a class, a tuple of types, or a union."""
Value: TypeAlias = Any

_PLAIN = {NoneType: "nothing", bool: "bool", int: "int", str: "text", bytes: "bytes"}
_NUMBER = struct.Struct("<q")
_LAYOUTS: Mapping[Kind, str] = {int: "q", bool: "?7x"}
_INDEX = "(x:int,y:int,z:int)"


class MalformedError(Exception):
    """An answer that ends before its fields do."""


def name_of(kind: Kind) -> str:
    """The name of a type that travels."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    arguments = get_args(kind)
    if _is_tuple(kind):
        if arguments[-1] is Ellipsis:
            return f"[{name_of(arguments[0])}]"
        return _INDEX if arguments == (int, int, int) else f"({','.join(map(name_of, arguments))})"
    if isinstance(kind, UnionType):
        return f"{name_of(arguments[0])}?" if NoneType in arguments else "|".join(map(name_of, arguments))
    if issubclass(kind, StrEnum):
        return "/".join(kind)
    return f"({','.join(f'{name}:{name_of(hint)}' for name, hint in _members(kind).items())})"


def pack(kinds: Sequence[Kind], values: Sequence[Value]) -> list[bytes | memoryview]:
    """The values as frames have them, in parts, of which the large ones are no copies."""
    return [part for kind, value in zip(kinds, values, strict=True) for part in _packed(kind, value)]


def unpack(kind: Kind, data: memoryview) -> Value:
    """The value that ``data`` holds; bytes are a view of it.

    Raises:
        MalformedError: the data ends before the value does.
    """
    return _decoder(kind)(_Cursor(data))


def _is_tuple(kind: Kind) -> bool:
    origin: object = get_origin(kind)
    return origin is tuple


@cache
def _members(kind: Kind) -> Mapping[str, Kind]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _packed(kind: Kind, value: Value) -> list[bytes | memoryview]:
    if kind in {int, bool}:
        return [_NUMBER.pack(value - (1 << 64) if value >= 1 << 63 else value)]
    if kind in {str, bytes}:
        data = value.encode() if kind is str else value
        return [_NUMBER.pack(len(data)), data]
    if _is_tuple(kind):
        item, *more = get_args(kind)
        if more == [Ellipsis]:
            return [_NUMBER.pack(len(value)), *pack([item] * len(value), value)]
        return pack([item, *more], value)
    if not issubclass(kind, StrEnum):
        names = _members(kind)
        return pack(list(names.values()), [getattr(value, name) for name in names])
    return [_NUMBER.pack(tuple(kind).index(value))]


class _Cursor:
    """A place in an answer."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def fields(self, layout: struct.Struct) -> tuple[int, ...]:
        return layout.unpack_from(self._data, self._advanced(layout.size))

    def number(self) -> int:
        return self.fields(_NUMBER)[0]

    def content(self) -> memoryview:
        size = self.number()
        at = self._advanced(size)
        return self._data[at : at + size]

    def text(self) -> str:
        return bytes(self.content()).decode(errors="replace")

    def _advanced(self, size: int) -> int:
        at = self._at
        self._at += size
        if self._at > len(self._data):
            raise MalformedError
        return at


Decoder: TypeAlias = Callable[[_Cursor], Value]


@cache
def _decoder(kind: Kind) -> Decoder:
    """What takes a value of that type from an answer; made once, as answers may be long."""
    plain: dict[Kind, Decoder] = {
        NoneType: lambda _: None,
        bool: lambda cursor: bool(cursor.number()),
        int: _Cursor.number,
        str: _Cursor.text,
        bytes: _Cursor.content,
    }
    if kind in plain:
        return plain[kind]
    arguments = get_args(kind)
    if _is_tuple(kind) and arguments[-1] is Ellipsis:
        item = _decoder(arguments[0])
        return lambda cursor: tuple([item(cursor) for _ in range(cursor.number())])
    if isinstance(kind, UnionType):
        optional = NoneType in arguments
        alternatives = [*map(_decoder, (NoneType, arguments[0]) if optional else arguments)]
        return lambda cursor: alternatives[cursor.number()](cursor)
    if not _is_tuple(kind) and issubclass(kind, StrEnum):
        members = tuple(kind)
        return lambda cursor: members[cursor.number()]
    parts: list[Decoder] = []  # each of some fields
    for are_numbers, run in groupby(arguments or _members(kind).values(), _LAYOUTS.__contains__):
        kinds = tuple(run)
        parts += [_numbers(kinds)] if are_numbers else map(_alone, kinds)
    make = (lambda *fields: fields) if arguments else kind
    return lambda cursor: make(*chain.from_iterable([part(cursor) for part in parts]))


def _numbers(kinds: Sequence[Kind]) -> Decoder:
    layout = struct.Struct("<" + "".join(map(_LAYOUTS.__getitem__, kinds)))
    return lambda cursor: cursor.fields(layout)


def _alone(kind: Kind) -> Decoder:
    part = _decoder(kind)
    return lambda cursor: (part(cursor),)
