"""How values travel between the judge and the simulated device; ``server/wire.h`` is the other side.

Dataclasses travel as their fields in order, integers and members of enumerations as 8 bytes, little-endian,
and texts, bytes and tuples behind their length. :func:`name_of` tells that in words, for both to compare.
"""

from __future__ import annotations

import struct
from dataclasses import fields
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind: TypeAlias = Any
"""A type: a class, a tuple of types, or a union."""
Value: TypeAlias = Any

_PLAIN = {NoneType: "nothing", bool: "bool", int: "int", str: "text", bytes: "bytes"}
_NUMBER = struct.Struct("<q")
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
    return _Reader(data).take(kind)


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


class _Reader:
    """The fields of an answer, in order."""

    def __init__(self, data: memoryview) -> None:
        self._data = data

    def take(self, kind: Kind) -> Value:
        if kind is NoneType:
            return None
        if kind in {int, bool}:
            return kind(self._number())
        if kind in {str, bytes}:
            data = self._next(self._number())
            return bytes(data).decode(errors="replace") if kind is str else data
        return self._composed(kind)

    def _composed(self, kind: Kind) -> Value:
        arguments = get_args(kind)
        if _is_tuple(kind):
            many = arguments[-1] is Ellipsis
            return tuple(map(self.take, arguments[:1] * self._number() if many else arguments))
        if isinstance(kind, UnionType):
            number = self._number()
            alternatives = (NoneType, arguments[0]) if NoneType in arguments else arguments
            return self.take(alternatives[number])
        if issubclass(kind, StrEnum):
            return tuple(kind)[self._number()]
        return kind(*map(self.take, _members(kind).values()))

    def _number(self) -> int:
        return int(_NUMBER.unpack(self._next(_NUMBER.size))[0])

    def _next(self, size: int) -> memoryview:
        if size > len(self._data):
            raise MalformedError
        data, self._data = self._data[:size], self._data[size:]
        return data
