"""Structs of C++ that a launcher takes, in arrays or by value: described once, by NumPy or by ctypes.

Their fields are arrays and numbers of their own wherever a problem speaks of values: ``bodies.mass`` of the
parameter ``bodies``. They lie in one struct only between judge and device.

Layer: imports numpy and the element types.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.problems.dtypes import DTYPES
from grader.problems.explained import FormulaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

_BY_STORAGE = {dtype.storage: dtype.name for dtype in DTYPES.values() if dtype.name != "bool"}
_TRAITS = {
    "f": "std::is_floating_point<{}>::value",
    "i": "std::is_integral<{0}>::value && std::is_signed<{0}>::value",
    "u": "std::is_integral<{0}>::value && std::is_unsigned<{0}>::value",
}


@dataclass(frozen=True)
class Field:
    """A field of a struct, or of a struct in it.

    Attributes:
        name: with those of the structs around it, such as ``box.low``.
        dtype: of its elements.
        shape: of an array in the struct; () of a number.
        offset: from the start of the struct, in bytes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        """The size of it."""
        return DTYPES[self.dtype].itemsize * prod(self.shape)


@dataclass(frozen=True)
class Struct:
    """A struct: what C++ calls it, its fields in order and its size in bytes."""

    name: str
    fields: tuple[Field, ...]
    bytes: int

    @cached_property
    def storage(self) -> np.dtype[np.void]:
        """How NumPy holds one; a field has its whole name, and a bool is a byte."""
        return np.dtype(
            {
                "names": [field.name for field in self.fields],
                "formats": [(DTYPES[field.dtype].storage, field.shape) for field in self.fields],
                "offsets": [field.offset for field in self.fields],
                "itemsize": self.bytes,
            }
        )

    @property
    def assertions(self) -> str:
        """C++ that compiles only behind a definition of the struct that lies in memory as this one does."""
        lines = [f'static_assert(sizeof({self.name}) == {self.bytes}, "{self.declared}");']
        for field in self.fields:
            kind, access = DTYPES[field.dtype].storage.kind, f"std::declval<{self.name}&>().{field.name}"
            conditions = [
                f"sizeof({access}) == {field.bytes}",
                f"__builtin_offsetof({self.name}, {field.name}) == {field.offset}",
            ]
            # Of a vector or an array the size says enough, and so it does of a half type or of a char.
            if not field.shape and field.bytes > 1 and (kind, field.bytes) != ("f", 2) and kind in _TRAITS:
                conditions.append(_TRAITS[kind].format(f"decltype({access})"))
            lines.append(f'static_assert({" && ".join(conditions)}, "{self.declared}");')
        return "\n".join(lines)

    @property
    def declared(self) -> str:
        """What the assignment asks for, in a sentence."""
        fields = " ".join(
            f"{DTYPES[field.dtype].spellings[0]} {field.name}{''.join(f'[{n}]' for n in field.shape)};"
            for field in self.fields
        )
        return f"the assignment has struct {self.name} {{ {fields} }} of {self.bytes} bytes"

    def packed(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
        """An array of structs as bytes, of which those of a struct are the last axis; 0 between fields.

        Args:
            values: of each field by name, with the axes of the array before those of the field.
        """
        first = self.fields[0]
        lead = values[first.name].shape[: values[first.name].ndim - len(first.shape)]
        memory = np.zeros((*lead, self.bytes), np.uint8)
        structs = memory.view(self.storage)[..., 0]
        for field in self.fields:
            structs[field.name] = values[field.name]
        return memory

    def unpacked(self, memory: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The fields of an array of structs, by name, from what ``packed`` makes."""
        structs = np.ascontiguousarray(memory).view(self.storage)[..., 0]
        return {field.name: np.ascontiguousarray(structs[field.name]) for field in self.fields}


def struct(name: str, described: object) -> Struct:
    """The struct that C++ calls ``name``.

    Args:
        name: of it.
        described: a structured type of NumPy, aligned as C++ does it, or a ``ctypes.Structure``.

    Raises:
        FormulaError: it is neither, or holds what no array of a launcher does.
    """
    if isinstance(described, type) and issubclass(described, ctypes.Structure):
        storage = np.dtype(described)
    elif isinstance(described, np.dtype):
        storage = described
    else:
        raise FormulaError(
            f"structs has for {name} neither a ctypes.Structure nor a structured type of NumPy: write "
            'np.dtype([("x", np.float32), ("n", np.int32)], align=True)'
        )
    if not storage.fields:
        raise FormulaError(f"structs has for {name} a type without fields: {storage}")
    if not _natural(storage):
        raise FormulaError(
            f"the fields of {name} do not lie where C++ puts them: write np.dtype([...], align=True)"
        )
    return Struct(name, tuple(_leaves(name, storage, "", 0)), storage.itemsize)


def _natural(storage: np.dtype[Any]) -> bool:
    """Whether C++ puts the fields of a struct where NumPy has them."""
    fields: Mapping[str, Any] = storage.fields or {}
    natural = np.dtype([(name, fields[name][0]) for name in fields], align=True)
    inner = (kind.base for kind, *_ in fields.values())
    offsets = [begin for _, begin, *_ in (natural.fields or {}).values()]
    same = natural.itemsize == storage.itemsize and offsets == [begin for _, begin, *_ in fields.values()]
    return same and all(_natural(kind) for kind in inner if kind.fields)


def _leaves(struct_name: str, storage: np.dtype[Any], before: str, offset: int) -> Iterator[Field]:
    for name, (kind, begin, *_) in (storage.fields or {}).items():
        base, whole = kind.base, f"{before}{name}"
        if base.fields and not kind.shape:
            yield from _leaves(struct_name, base, f"{whole}.", offset + begin)
            continue
        dtype = "bool" if base == np.dtype(bool) else _BY_STORAGE.get(base)
        if dtype is None:
            known = ", ".join(DTYPES)
            raise FormulaError(f"{whole} of {struct_name} is {base}: a field is {known}, or an array of it")
        yield Field(whole, dtype, kind.shape, offset + begin)


def grouped(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` by name, with those of a struct, such as ``body.mass``, as attributes of one object."""
    together: dict[str, Any] = {}
    for name, value in values.items():
        first, *inner = name.split(".")
        if not inner:
            together[name] = value
            continue
        target = together.setdefault(first, SimpleNamespace())
        for part in inner[:-1]:
            target = target.__dict__.setdefault(part, SimpleNamespace())
        setattr(target, inner[-1], value)
    return together


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` by name, with the mappings and objects that stand for structs taken apart."""
    apart: dict[str, Any] = {}
    for name, value in values.items():
        inner = vars(value) if isinstance(value, SimpleNamespace) else value
        if isinstance(inner, dict):
            apart |= {f"{name}.{field}": part for field, part in flat(inner).items()}
        else:
            apart[name] = value
    return apart
