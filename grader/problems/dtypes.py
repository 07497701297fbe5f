"""The element types of arrays: all that is known of each, in one table, and the poison of outputs.

An output is filled with poison before a call, so that an element that was not written shows. Poison is a
NaN in every floating-point type, with bits that no arithmetic produces; in integers it is an unusual number,
which counts as unwritten only where it is also wrong. A case runs in several orders of execution, and no
number is poison both in program order and in another one: an element that is not written is wrong in one of
them. ``ml_dtypes`` gives NumPy the type ``bfloat16`` and those of eight bits, whose only poison is 0xFF.

Layer: imports numpy and ml_dtypes.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Precision:
    """Unit roundoff of the arithmetic and of the stored arrays, and the smallest number that stays."""

    unit: float
    storage: float
    tiny: float

    @property
    def word(self) -> float:
        """Relative error of storing one value, beyond nothing if arithmetic and storage are the same type."""
        return max(self.unit, self.storage)


@dataclass(frozen=True)
class Scale:
    """How large numbers get in a floating-point type, so that their squares still fit; and how small.

    Attributes:
        huge: a single one among usual numbers.
        tiny: all of them.
        subnormal: below all normal numbers of the type.
        decades: tenfold steps from 1 down to the smallest ones of arrays that have every magnitude.
    """

    huge: float = 1e4
    tiny: float = 1e-12
    subnormal: float = 1e-39
    decades: int = 12


@dataclass(frozen=True)
class Dtype:
    """An element type.

    Attributes:
        name: as problems write it.
        storage: how NumPy holds an element; bool as a byte, which a wrong kernel may set to more than 1.
        spellings: what C++ calls it, the usual name first.
        arithmetic: the type of a scalar that meets such elements: what arithmetic on them is done in.
        precision: how exact floating-point numbers are; arithmetic is float32 in all of them, or better.
        scale: how large and how small the numbers are that cases draw.
        sums: the type that atomic additions are done in, where there are none of its own.
        wider: the type of its tensors in formulas, where PyTorch has no arithmetic for its own.
        vectors: what CUDA's vectors of 2, 3 and 4 of them are called, without the number; "" without any.
        clamps: whether a conversion may make the largest number of what is beyond it, and not infinity.
    """

    name: str
    storage: np.dtype[np.generic]
    spellings: tuple[str, ...]
    arithmetic: str
    precision: Precision | None = None
    scale: Scale = field(default_factory=Scale)
    sums: str = ""
    wider: str = ""
    vectors: str = ""
    clamps: bool = False

    @property
    def tensor(self) -> str:
        """The type of its tensors in formulas."""
        return self.wider or self.name

    @property
    def exact(self) -> bool:
        """Whether its values are compared bit for bit."""
        return self.storage.kind in "iu"

    @property
    def largest(self) -> float:
        """The largest number of a floating-point type."""
        return float(ml_dtypes.finfo(self.storage).max)  # type: ignore[no-untyped-call]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.storage.itemsize


DTYPES = {
    dtype.name: dtype
    for dtype in (
        Dtype(
            "float16",
            np.dtype(np.float16),
            ("__half", "half"),
            "float",
            Precision(unit=2.0**-24, storage=2.0**-11, tiny=2.0**-24),  # no kernel flushes it to zero
            Scale(huge=100, tiny=1e-3, subnormal=1e-5, decades=2),
            sums="float32",
        ),
        Dtype(
            "bfloat16",
            np.dtype(ml_dtypes.bfloat16),
            ("__nv_bfloat16", "nv_bfloat16"),
            "float",
            Precision(unit=2.0**-24, storage=2.0**-8, tiny=2.0**-126),
            Scale(huge=100),
            sums="float32",
        ),
        Dtype(
            "float32",
            np.dtype(np.float32),
            ("float",),
            "float",
            Precision(unit=2.0**-24, storage=2.0**-24, tiny=2.0**-126),
            vectors="float",
        ),
        Dtype(
            "float64",
            np.dtype(np.float64),
            ("double",),
            "double",
            Precision(unit=2.0**-53, storage=2.0**-53, tiny=2.0**-1022),
            Scale(subnormal=1e-309),
            vectors="double",
        ),
        Dtype(
            "int32",
            np.dtype(np.int32),
            ("int", "int32_t", "std::int32_t", "signed int"),
            "int",
            vectors="int",
        ),
        Dtype(
            "int64",
            np.dtype(np.int64),
            ("long long", "int64_t", "std::int64_t", "long", "long long int"),
            "long",
            vectors="longlong",
        ),
        Dtype(
            "uint8",
            np.dtype(np.uint8),
            ("unsigned char", "uint8_t", "std::uint8_t"),
            "int",
            sums="int32",
            vectors="uchar",
        ),
        Dtype("bool", np.dtype(np.uint8), ("bool",), "bool", sums="int32"),
        Dtype(
            "int8",
            np.dtype(np.int8),
            ("signed char", "int8_t", "std::int8_t", "char"),
            "int",
            sums="int32",
            vectors="char",
        ),
        Dtype(
            "int16",
            np.dtype(np.int16),
            ("short", "int16_t", "std::int16_t", "short int", "signed short"),
            "int",
            sums="int32",
            vectors="short",
        ),
        Dtype(
            "uint16",
            np.dtype(np.uint16),
            ("unsigned short", "uint16_t", "std::uint16_t", "unsigned short int"),
            "int",
            wider="int32",
            vectors="ushort",
        ),
        Dtype(
            "uint32",
            np.dtype(np.uint32),
            ("unsigned int", "unsigned", "uint32_t", "std::uint32_t"),
            "int",
            wider="int64",
            vectors="uint",
        ),
        Dtype(
            "uint64",  # numbers of formulas stay below 2^63
            np.dtype(np.uint64),
            ("unsigned long long", "uint64_t", "std::uint64_t", "unsigned long", "size_t", "std::size_t"),
            "long",
            wider="int64",
            vectors="ulonglong",
        ),
        Dtype(
            "float8_e4m3fn",
            np.dtype(ml_dtypes.float8_e4m3fn),
            ("__nv_fp8_e4m3",),
            "float",
            Precision(unit=2.0**-24, storage=2.0**-4, tiny=2.0**-9),
            Scale(huge=16, tiny=0.1, subnormal=3e-3, decades=1),
            sums="float32",
            wider="float32",
            clamps=True,
        ),
        Dtype(
            "float8_e5m2",
            np.dtype(ml_dtypes.float8_e5m2),
            ("__nv_fp8_e5m2",),
            "float",
            Precision(unit=2.0**-24, storage=2.0**-3, tiny=2.0**-16),
            Scale(huge=100, tiny=1e-2, subnormal=1e-5, decades=2),
            sums="float32",
            wider="float32",
            clamps=True,
        ),
    )
}
"""All element types by name."""

VECTORS = {
    f"{dtype.vectors}{lanes}": (dtype.name, lanes)
    for dtype in DTYPES.values()
    if dtype.vectors
    for lanes in (2, 3, 4)
} | {
    **dict.fromkeys(("__half2", "half2"), ("float16", 2)),
    **dict.fromkeys(("__nv_bfloat162", "nv_bfloat162"), ("bfloat16", 2)),
    **dict.fromkeys(("cuComplex", "cuFloatComplex"), ("float32", 2)),
    "cuDoubleComplex": ("float64", 2),
}
"""CUDA's vectors, and complex numbers: the type of their elements, and how many lie behind each other."""


def alike(vector: str) -> tuple[str, ...]:
    """The names of the same vector type: ``cuComplex`` is ``float2``; none of what is no vector."""
    return tuple(name for name, lanes in VECTORS.items() if lanes == VECTORS.get(vector))


_WORDS = {1: 0xF0F0F0F0, 2: 0xFFF0FFF0, 4: 0xFFF00000, 8: 0xFFF00000}
"""The bits that poison has set in each word of 32 bits, by the size of an element; the others are random."""

_FIRST = {1: 0x08080808, 2: 0x00080008, 4: 0x00080000, 8: 0x00080000}
"""Bits of each word that are set in the poison of program order, and clear in that of other orders."""

_ONE_NAN = {dtype.storage for dtype in DTYPES.values() if dtype.precision and dtype.itemsize == 1}
"""The types of eight bits, in which 0xFF is a NaN, and most bytes like it are numbers."""


def poison(size: int, storage: np.dtype[Any], *, again: bool = False) -> NDArray[np.uint8]:
    """Poison for elements of a type, other bits each time; bytes of 0xFF alone are poison, too.

    Args:
        size: in bytes, a multiple of 4.
        storage: how NumPy holds an element.
        again: whether the call runs in another order than program order.
    """
    if storage in _ONE_NAN:
        return np.full(size, 0xFF, np.uint8)
    word = _WORDS[storage.itemsize] | secrets.randbits(32)
    word = word & ~_FIRST[storage.itemsize] if again else word | _FIRST[storage.itemsize]
    return np.full(size // 4, word, "<u4").view(np.uint8)


def poisoned(array: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Which elements still hold the poison: that of ``poison``, or bytes of 0xFF alone."""
    itemsize = array.dtype.itemsize
    part = min(itemsize, 4)
    bits = np.ascontiguousarray(array).view(f"<u{part}").reshape(*array.shape, itemsize // part)
    least = 0xFF if array.dtype in _ONE_NAN else _WORDS[itemsize] & ((1 << 8 * part) - 1)
    held: NDArray[np.bool_] = ((bits & least) == least).all(axis=-1)
    return held
