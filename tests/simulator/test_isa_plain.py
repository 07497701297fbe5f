"""Every instruction on registers that the sim knows, by its own list, against models in exact arithmetic.

What is new in the sim fails here until it has a model, or a place among the tests of its kind.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from exact import FORMATS, pattern, value
from golden_cases import TUPLES, Bound, approximate_cases, mixed, scrambled
from instructions import STORED, Probe, run
from models import PAIRS, Model, alike, models

from grader.simulator.driver import _EXECUTABLE

NAMES = subprocess.run(
    [str(_EXECUTABLE), "--instructions"], check=True, stdout=subprocess.PIPE, text=True
).stdout.split()
TESTED_ELSEWHERE = {
    "test_isa_integer": "bfe bfi brev clz cnot lop3 popc shf shl vabsdiff2 vabsdiff4",
    "test_isa_matrix": "ldmatrix matrix mma wmma",
    "test_isa_mbarrier": "mbarrier",
    "test_isa_memory": "atom cp isspacep ld local_address red shift_address st",
    "test_isa_warp": "activemask bar match redux shfl vote",
    "test_coverage": "observe",
    "programs": "mov.b8 nothing",  # what the decoder puts in between
}


def approximate(name: str) -> bool:
    return ".approx" in name or ".full" in name


def operands(kind: str, position: int) -> np.ndarray:
    """Edges and random patterns; of reals also numbers of many sizes, as integers are made from them."""
    if kind in PAIRS:
        low, high = operands(PAIRS[kind], position), operands(PAIRS[kind], position + 4)
        return low.astype(np.uint32) & 0xFFFF | high.astype(np.uint32) << 16
    width = 8 * np.dtype(STORED[kind]).itemsize
    values = bits(mixed(kind, position)).copy()
    n = np.arange(TUPLES)
    if kind in FORMATS:
        fraction = FORMATS[kind].precision - 1
        sizes = np.minimum(n * 7 % 80, FORMATS[kind].top) + FORMATS[kind].top - 2
        sizes = np.minimum(sizes, 2 * FORMATS[kind].top)
        random = scrambled(TUPLES, position + 16)
        made = sizes.astype(np.uint64) << np.uint64(fraction) | random & np.uint64((1 << fraction) - 1)
        made |= (random >> np.uint64(63)) << np.uint64(width - 1)
        halves = n % 8 == 5  # what lies half way between two integers
        made = np.where(halves, made & ~np.uint64((1 << max(fraction - 6, 0)) - 1), made)
        values = np.where(n % 4 == 1, made.astype(values.dtype), values)
    elif width == 32:  # the ends of bytes, which stand in them
        values = np.where(
            n % 4 == 2, values & ~np.uint32(255) | (n * 5 + 126 & 255).astype(np.uint32), values
        )
    return values


def bits(stored: np.ndarray) -> np.ndarray:
    return stored.view(f"u{stored.dtype.itemsize}")


def wrong(model: Model, columns: tuple[np.ndarray, ...], results: np.ndarray) -> str:
    """The first tuple of operands with another result than the model's."""
    kind = "u32" if model.probe.result == "pred" else model.probe.result
    width = 8 * np.dtype(STORED[kind]).itemsize
    rows = zip(*(bits(column).tolist() for column in columns), strict=True)
    for row, got in zip(rows, bits(results).tolist(), strict=True):
        expected = int(model.compute(*row)) & (1 << width) - 1
        if not alike(kind, got, expected):
            given = ", ".join(map(hex, row))
            return f"{model.probe.text} of {given}: expected {expected:#x}, got {got:#x}"
    return ""


def compare_all(made: list[Model], inputs: list[tuple[np.ndarray, ...]]) -> None:
    faults = [
        fault
        for model, columns, results in zip(made, inputs, run([m.probe for m in made], inputs), strict=True)
        if (fault := wrong(model, columns, results))
    ]
    assert not faults, "\n".join(faults)


FAMILIES: dict[str, list[str]] = defaultdict(list)
for each in NAMES:
    if not approximate(each) and models(each):
        FAMILIES[each.split(".")[0]].append(each)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_form_computes_what_its_model_does(family: str) -> None:
    made = [model for name in FAMILIES[family] for model in models(name)]
    inputs = [
        tuple(operands(kind, n).view(STORED[kind]) for n, kind in enumerate(model.probe.operands))
        for model in made
    ]
    compare_all(made, inputs)


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_flushing_goes_by_the_result_before_it_is_subnormal(kind: str) -> None:
    """Operands whose products, quotients and sums lie around the smallest normal number."""
    form = FORMATS[kind]
    near = {
        size: [pattern(sign * size, kind) + n for sign in (1, -1) for n in (-2, -1, 0, 1, 2)]
        for size in (2.0**form.bottom, 2.0**-form.bottom, 2.0 ** (1 - form.precision), 1.0)
    }
    small, large, unit, one = near.values()
    rows = [*product(small, one, (0, 1 << 8 * np.dtype(STORED[kind]).itemsize - 1))]  # a * b, a * b + c
    rows += [*product(small, unit, small)]  # a * b + c, close to c
    rows += [*product(one, large, one), *product(large, one, one)]  # a / b, 1 / a
    columns = tuple(
        np.array(column).astype(f"u{np.dtype(STORED[kind]).itemsize}") for column in zip(*rows, strict=True)
    )
    opcodes = {"add", "sub", "mul", "div", "fma", "mad", "rcp", "sqrt"}
    names = [name for name in NAMES if name.split(".")[0] in opcodes and not approximate(name)]
    made = [m for name in names if "ftz" in name and name.endswith(f".{kind}") for m in models(name)]
    compare_all(made, [tuple(c.view(STORED[kind]) for c in columns[: len(m.probe.operands)]) for m in made])


def test_single_from_double_is_flushed_before_it_is_subnormal() -> None:
    sizes = [2.0**-126 * (1 + sign * 2.0**-n) for sign in (1, -1) for n in range(20, 30)]
    values = np.array([sign * size for size in sizes for sign in (1, -1)])
    made = [
        m for name in NAMES if name.startswith("cvt.") and name.endswith("ftz.f32.f64") for m in models(name)
    ]
    assert len(made) == 4
    compare_all(made, [(values,)] * len(made))


def test_no_instruction_is_without_a_test() -> None:
    elsewhere = {opcode for opcodes in TESTED_ELSEWHERE.values() for opcode in opcodes.split()}
    bounded = {case.probe.text.split()[0] for case in approximate_cases()}
    untested = [
        name
        for name in NAMES
        if not (name.removesuffix("x2") in bounded if approximate(name) else models(name))
        and name not in elsewhere
        and name.split(".")[0] not in elsewhere
    ]
    assert untested == []


FUNCTIONS = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "div": np.divide,
}


def reals(stored: np.ndarray, kind: str) -> np.ndarray:
    if kind in PAIRS:
        return np.concatenate([reals((stored >> s).astype(np.uint16), PAIRS[kind]) for s in (0, 16)])
    return np.array([value(b, kind) for b in bits(stored).tolist()])


def test_approximations_stay_within_their_bounds() -> None:
    cases = list(approximate_cases())
    inputs = [case.operands() for case in cases]
    for case, columns, results in zip(
        cases, inputs, run([case.probe for case in cases], inputs), strict=True
    ):
        expected = FUNCTIONS[case.probe.text.split(".")[0]](
            *(reals(column, kind) for column, kind in zip(columns, case.probe.operands, strict=True))
        )
        error = np.abs(reals(results, case.probe.result) - expected)
        assert np.all(error <= allowed(case.bound, expected, case.probe.result)), case.name


def test_approximations_of_pairs_are_those_of_their_halves() -> None:
    pairs = [name for name in NAMES if approximate(name) and name.endswith("x2")]
    kinds = [name.split(".")[-1] for name in pairs]
    both = [Probe(f"{name} {{d}}, {{a}}", kind, (kind,)) for name, kind in zip(pairs, kinds, strict=True)]
    single = [
        Probe(f"{name.removesuffix('x2')} {{d}}, {{a}}", PAIRS[kind], (PAIRS[kind],))
        for name, kind in zip(pairs, kinds, strict=True)
    ]
    inputs = [operands(kind, 0) for kind in kinds]
    results = run(both, [(column,) for column in inputs])
    for shift in (0, 16):
        of_halves = run(single, [((column >> shift).astype(np.uint16),) for column in inputs])
        for name, pair, half in zip(pairs, results, of_halves, strict=True):
            np.testing.assert_array_equal(pair >> shift & 0xFFFF, half, err_msg=name)


def allowed(bound: Bound, expected: np.ndarray, kind: str) -> np.ndarray:
    """Of an instruction, as the PTX ISA says."""
    fraction = FORMATS[PAIRS.get(kind, kind)].precision - 1
    _, exponent = np.frexp(expected)
    unit = np.ldexp(1.0, exponent - 1 - fraction)
    return bound.ulps * unit + bound.relative * np.abs(expected) + bound.absolute
