"""The numbers of a source."""

import numpy as np

from grader.judge.coverage.literals import literals, marks


def test_numbers_in_every_spelling_are_found() -> None:
    assert literals("int a[2048]; if (n <= 0x1F && m < 70'000u) x = min(rows, 4096ll);") == {
        *(2048, 31, 70_000, 4096)
    }


def test_products_and_powers_of_two_are_found() -> None:
    assert {1 << 20, 4096, 4, 1024, 20} <= literals("n > 1 << 20 || n == 4 * 1024")


def test_words_comments_texts_and_fractions_hold_no_numbers() -> None:
    assert literals('float4 x = 1.5f; // 77\n /* 78 */ puts("79"); double y = 8e3, z = .25;') == frozenset()


def test_comments_of_python_are_left_out() -> None:
    assert literals("BLOCK = 4096  # not 17\n", "#") == {4096}


def test_a_shift_beyond_all_sizes_is_no_number_of_interest() -> None:
    assert literals("1 << 63") == {1, 63}


def test_numbers_that_may_mean_nothing_yet_are_told_from_those_of_arithmetic() -> None:
    code = "if (x == -1 || (y == -2.5e3f) || z == 1e-12f) return - 7; w = a - 3 - 4.f; v = 0.5f * u; // -8"
    assert marks(code) == {-1, -2500, 1e-12, -7, 4}
    assert marks("x = tl.full([BLOCK], -1e9, tl.float32)  # -5.5", "#") == {-1e9}


def test_bits_that_are_written_in_hexadecimal_are_a_float32() -> None:
    assert marks("0xFFFFu ^ 0xbf800000u") == {-1.0}
    assert marks("0xffffffffu | 0x7f800000") == frozenset()  # all lanes, which is no number; infinite
    assert marks("while (bits == 0xababababu);") == {float(np.uint32(0xABABABAB).view(np.float32))}
