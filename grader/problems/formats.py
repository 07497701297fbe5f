"""Formats of files that programs read and write: numbers in text, raw arrays, .npy, PGM and PPM; both ways.

What is read may come from a student's program: it is parsed as data, and nothing of it decides how much
memory is used.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.generic]

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_SEPARATORS = re.compile(r"[\s,;]+")
_PNM_WORD = re.compile(rb"(?:\s|#[^\n]*\n)*([^\s#]+)")
_PNM_CHANNELS = {b"P2": 1, b"P3": 3, b"P5": 1, b"P6": 3}
_NPY = re.compile(
    rb"\x93NUMPY(?:\x01\x00..|\x02\x00....)\{'descr': '(?P<type>[<>|][biuf]\d)', "
    rb"'fortran_order': (?P<columns>True|False), 'shape': \((?P<shape>[\d, ]{0,200})\), \} *\n",
    re.DOTALL,
)
_SHOWN = 40  # characters of what is no number


class FormatError(Exception):
    """A file that is not in its format; the message says what it holds instead, without the file's name."""


@dataclass(frozen=True)
class Format:
    """A format of arrays.

    Attributes:
        write: an array as the content of a file.
        read: the array of such a content. Raises FormatError.
        shaped: whether a file says the shape of its array; others are read as one row of elements.
    """

    write: Callable[[Array], bytes]
    read: Callable[[bytes], Array]
    shaped: bool = False


def write_numbers(array: Array) -> bytes:
    """Numbers in text, a row of the last axis per line, in as many digits as tell its element type apart."""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim and array.size else array.reshape(1, -1)
    return "".join(" ".join(str(number) for number in row) + "\n" for row in rows).encode()


def read_numbers(content: bytes) -> Array:
    """Numbers in text, between white space, commas or semicolons, as float64; integers exactly, as int64."""
    words = [word for word in _SEPARATORS.split(content.decode(errors="replace")) if word]
    if all(map(_INTEGER.fullmatch, words)):
        return np.array([int(word) for word in words], dtype=np.int64)
    numbers = []
    for position, word in enumerate(words, 1):
        if (number := number_of(word)) is None:
            raise FormatError(f"{word[:_SHOWN]!r} where number {position} should be")
        numbers.append(number)
    return np.array(numbers, dtype=np.float64)


def write_wb(array: Array) -> bytes:
    """A vector or matrix as libwb has it: its length, or rows and columns, in the first line."""
    sizes = " ".join(map(str, array.shape))
    return f"{sizes}\n".encode() + write_numbers(array.reshape(-1, 1) if array.ndim == 1 else array)


def read_wb(content: bytes) -> Array:
    """A vector [n] or matrix [rows, columns] as libwb has it; one row is a vector, as for libwb."""
    head, _, rest = content.partition(b"\n")
    sizes = head.split()
    if not 1 <= len(sizes) <= 2 or not all(size.isdigit() and len(size) < 10 for size in sizes):
        raise FormatError(f"{head.decode(errors='replace')[:_SHOWN]!r} where its length should be")
    shape = tuple(size for size in map(int, sizes) if size != 1) or (1,)
    numbers = read_numbers(rest)
    if numbers.size != math.prod(shape):
        raise FormatError(f"{numbers.size:,} of its {math.prod(shape):,} numbers")
    return numbers.reshape(shape)


def number_of(word: str) -> float | None:
    """The number that a word is, as C prints it; None if it is none."""
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def _raw(dtype: str) -> Format:
    element = np.dtype(dtype).newbyteorder("<")

    def write(array: Array) -> bytes:
        return array.astype(element).tobytes()

    def read(content: bytes) -> Array:
        if len(content) % element.itemsize:
            raise FormatError(
                f"{len(content):,} bytes, which is no multiple of the {element.itemsize} of {dtype}"
            )
        return np.frombuffer(content, element)

    return Format(write, read)


def write_npy(array: Array) -> bytes:
    """The content of a .npy file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def read_npy(content: bytes) -> Array:
    """The array of a .npy file of numbers, of version 1 or 2 of the format.

    NumPy's own reader parses the header as Python, and allocates what that asks for.
    """
    head = _NPY.match(content)
    if head is None:
        raise FormatError("no .npy file of numbers")
    shape = tuple(int(number) for number in re.findall(rb"\d+", head["shape"]))
    dtype, rest = np.dtype(head["type"].decode()), content[head.end() :]
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise FormatError(
            f"a .npy file whose header (shape {shape}, {dtype}) does not fit its {len(rest):,} bytes"
        )
    return np.frombuffer(rest, dtype).reshape(shape, order="F" if head["columns"] == b"True" else "C")


def write_pnm(array: Array) -> bytes:
    """The binary PGM file of an image [height, width], or the PPM of one [height, width, 3], of bytes."""
    kind = "P6" if array.ndim == 3 else "P5"
    height, width = array.shape[:2]
    return f"{kind}\n{width} {height}\n255\n".encode() + array.astype(np.uint8).tobytes()


def read_pnm(content: bytes) -> Array:
    """The image of a PGM or PPM file, binary or in text: [height, width] or [height, width, 3]."""
    words: list[bytes] = []
    at = 0
    while len(words) < 4 and (word := _PNM_WORD.match(content, at)):
        words.append(word[1])
        at = word.end()
    channels = _PNM_CHANNELS.get(words[0]) if len(words) == 4 else None
    if channels is None or not all(word.isdigit() and len(word) < 10 for word in words[1:]):
        raise FormatError("no PGM or PPM file (P2, P3, P5 or P6)")
    width, height, largest = map(int, words[1:])
    count = width * height * channels
    if words[0] in {b"P2", b"P3"}:
        elements: Array = read_numbers(content[at:])
    else:
        elements = (
            np.frombuffer(content[at + 1 :], np.uint8 if largest < 256 else ">u2")
            if _even(content, at, largest)
            else np.array([])
        )
    if elements.size != count:
        raise FormatError(f"an image of {width} x {height} with {elements.size:,} of its {count:,} numbers")
    return elements.reshape((height, width, 3) if channels == 3 else (height, width))


def _even(content: bytes, at: int, largest: int) -> bool:
    return largest < 256 or (len(content) - at - 1) % 2 == 0


RAW_TYPES = ("float32", "float64", "int32", "int64", "uint8")
"""Element types of files that hold nothing but elements, in the order of bytes of x86."""

FORMATS: Mapping[str, Format] = {
    "numbers": Format(write_numbers, read_numbers),
    "npy": Format(write_npy, read_npy, shaped=True),
    "wb": Format(write_wb, read_wb, shaped=True),
    "pnm": Format(write_pnm, read_pnm, shaped=True),
    **{dtype: _raw(dtype) for dtype in RAW_TYPES},
}
"""The formats by name."""
