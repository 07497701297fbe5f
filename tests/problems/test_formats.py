"""Formats of files: what is written is read again, and what is none is told as what it is."""

from __future__ import annotations

import numpy as np
import pytest

from grader.problems.formats import FORMATS, RAW_TYPES, FormatError, write_numbers

REALS = np.array([[0.1, -3.5e-40], [1e30, 16777217.0]], np.float32)
IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("numbers", REALS),
        ("numbers", np.array([2**59 + 1, -7])),
        ("npy", REALS),
        ("npy", np.asfortranarray(REALS)),
        ("pnm", IMAGE),
        ("pnm", IMAGE[..., 0]),
        *((dtype, np.arange(5).astype(dtype)) for dtype in RAW_TYPES),
    ],
)
def test_what_is_written_is_read_again(name: str, array: np.ndarray) -> None:  # type: ignore[type-arg]
    got = FORMATS[name].read(FORMATS[name].write(array))
    assert got.shape == (array.shape if FORMATS[name].shaped else (array.size,))
    assert np.array_equal(got.astype(array.dtype).reshape(array.shape), array)


def test_each_row_of_numbers_is_a_line() -> None:
    assert write_numbers(np.arange(6).reshape(2, 3)) == b"0 1 2\n3 4 5\n"


def test_numbers_may_stand_between_commas() -> None:
    assert FORMATS["numbers"].read(b"1, 2.5;nan\n-inf").tolist()[:2] == [1.0, 2.5]


def test_an_image_in_text_has_comments() -> None:
    text = b"P2\n# made by hand\n3 2 # columns, rows\n255\n0 1 2\n3 4 255\n"
    assert FORMATS["pnm"].read(text).tolist() == [[0, 1, 2], [3, 4, 255]]


def test_an_image_of_more_than_a_byte_is_read_from_the_high_byte_on() -> None:
    assert FORMATS["pnm"].read(b"P5 2 1 65535\n\x01\x00\x00\x02").tolist() == [[256, 2]]


HUGE = FORMATS["npy"].write(np.zeros(1)).replace(b"(1,), }       ", b"(10000000,), }")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("numbers", b"1 2 segmentation fault", "'segmentation' where number 3 should be"),
        ("numbers", b"1 1_000", "'1_000' where number 2 should be"),
        ("float32", b"123456", "6 bytes, which is no multiple of the 4 of float32"),
        ("npy", b"\x93NUMPY", "no .npy file of numbers"),
        ("npy", b"1 2 3", "no .npy file"),
        ("npy", HUGE, "does not fit its"),
        ("npy", FORMATS["npy"].write(np.array(["text"])), "no .npy file of numbers"),
        ("pnm", b"P7 1 1 255\n0", "no PGM or PPM file (P2, P3, P5 or P6)"),
        ("pnm", b"P5 1", "no PGM or PPM file (P2, P3, P5 or P6)"),
        ("pnm", b"P5 999999999 999999999 255\nab", "with 2 of its 999,999,998,000,000,001 numbers"),
        ("pnm", b"P5 1 1 65535\nabc", "with 0 of its 1 numbers"),
    ],
)
def test_what_is_in_no_format_is_told(name: str, content: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        FORMATS[name].read(content)
    assert message in str(caught.value)
