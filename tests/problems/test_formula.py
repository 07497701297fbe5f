"""What follows from a formula: parameters, inputs, oracle, bounds and cases."""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from by_hand import by_hand
from problems.formulas import FORMULAS

from grader.judge.correctness.comparison import compare
from grader.problems import formula as module
from grader.problems.contents import indices, integers, real
from grader.problems.distributions import STREAMS
from grader.problems.dtypes import DTYPES
from grader.problems.formula import FormulaError, Range, problem
from grader.problems.grid import MAGNITUDES
from grader.problems.problem import Case, KernelProblem, Role
from grader.problems.rounding import squared_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from grader.problems.problem import Inputs

    Floats = NDArray[Any]
    Outputs = Mapping[str, Floats]

MARGIN = 0.5  # of the allowed error: what a right implementation may use


def example() -> KernelProblem:
    """The problem of the module's own text."""
    text = (module.__doc__ or "").split("module:\n")[1].split("\n``launcher``")[0]
    names: dict[str, Any] = {}
    exec(textwrap.dedent(text), names)
    made = names["PROBLEM"]
    assert isinstance(made, KernelProblem)
    return made


def of_the_page() -> str:
    """The module that docs/assignments.md shows."""
    page = (Path(__file__).parents[2] / "docs" / "assignments.md").read_text()
    return page.split("```python\n")[1].split("```")[0]


def test_the_page_shows_a_whole_problem_in_a_few_lines() -> None:
    names: dict[str, Any] = {}
    exec(of_the_page(), names)
    asked = names["PROBLEM"]
    case = asked.cases(1)[10]
    given = asked.inputs(case)
    outputs = RIGHT["mean_square"](**given.arrays)
    assert share(asked, case, given, outputs)[0]
    assert len(asked.unfused(case)) == 6
    assert len(of_the_page().splitlines()) < 40


PROBLEMS = {**FORMULAS, "add_scaled": example()}


def some_cases(asked: KernelProblem, most: int = 20_000) -> list[Case]:
    """A small case of each group, and the longest of those with fewer elements than ``most``."""
    small = [case for case in asked.cases(5) if np.prod(list(case.sizes.values())) < most]
    by_group = {case.group: case for case in reversed(small)}
    longest = max(small, key=lambda case: max(case.sizes.values()))
    return [*by_group.values(), longest]


# Right kernels, whose sums are added one after another.


def serial(terms: Floats) -> Floats:
    return np.add.accumulate(terms, axis=-1, dtype=terms.dtype)[..., -1:]


def narrow(values: Floats, dtype: str) -> Floats:
    return values.astype(DTYPES[dtype].storage)


def softmax(x: Floats) -> Floats:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / serial(powers)


def gelu(x: Floats) -> Floats:
    wide = x.astype(np.float32)
    erf = torch.erf(torch.from_numpy(wide / np.float32(np.sqrt(2)))).numpy()
    return narrow(np.float32(0.5) * wide * (1 + erf), "bfloat16")


def matmul(a: Floats, b: Floats) -> Floats:
    products = a.astype(np.float32)[:, :, None] * b.astype(np.float32)
    return narrow(serial(products.swapaxes(1, 2))[..., 0], "float16")


def norm(x: Floats) -> Floats:
    centred = x - serial(x) / x.shape[1]
    return centred / np.sqrt(serial(centred * centred) / x.shape[1] + 1e-5)


def mean_square_backward(y_grad: Floats, x: Floats, scale: Floats) -> Outputs:
    n = np.float32(x.shape[1])
    root = 1 / np.sqrt(serial(x * x) / n + np.float32(1e-6))
    scaled = y_grad * scale
    x_grad = root * scaled - x * root**3 / n * serial(scaled * x)
    return {"x_grad": x_grad, "scale_grad": serial((y_grad * x * root).T)[:, 0]}


def added(rows: Floats, count: int, places: Floats) -> Floats:
    total = np.zeros((count, rows.shape[1]), rows.dtype)
    np.add.at(total, places, rows)
    return total


def of_segments(rows: Floats, order: Floats, starts: Floats) -> Outputs:
    pieces = [rows[order[begin:end]] for begin, end in itertools.pairwise(starts)]
    return {"sums": np.array([serial(piece.T)[:, 0] if len(piece) else 0 * rows[0] for piece in pieces])}


def descending(x: Floats) -> Outputs:
    places = np.argsort(-x, axis=-1, kind="stable")
    return {"values": np.take_along_axis(x, places, -1), "places": places}


def blurred(image: Floats, weights: Floats, bias: Floats) -> Outputs:
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = image.shape[2] - 2, (image.shape[3] + 1) // 2
    total = np.zeros((3, 2, rows, columns), np.float32)
    for channel, i, j in itertools.product(range(2), range(3), range(3)):
        part = padded[:, [channel, 2 + channel], 2 * i : 2 * i + rows, j : j + 2 * columns - 1 : 2]
        total += weights[None, :, channel, i, j, None, None] * part
    return {"y": total + bias[:, None, None]}


RIGHT: Mapping[str, Callable[..., Outputs]] = {
    "saxpy": lambda x, y: {"y": np.float32(2.3) * x + y},
    "half_add": lambda x, y: {"z": narrow(x.astype(np.float32) + y.astype(np.float32), "float16")},
    "bfloat_gelu": lambda x: {"y": gelu(x)},
    "double_norm": lambda x: {"y": norm(x)},
    "sum_rows": lambda x: {"total": serial(x)[:, 0], "first": x.argmax(-1)},
    "scan": lambda x: {"y": np.add.accumulate(x, axis=-1)},
    "matmul": lambda a, b: {"c": matmul(a, b)},
    "masked_softmax": lambda x, hide: {"y": softmax(x + hide)},
    "add_scaled": lambda x, y: {"z": np.float32(2.5) * x + y},
    "mean_square": lambda x, scale: {
        "y": x / np.sqrt(serial(x * x) / np.float32(x.shape[1]) + np.float32(1e-6)) * scale
    },
    "mean_square_backward": mean_square_backward,
    "embedding_backward": lambda y_grad, table, words: {"table_grad": added(y_grad, len(table), words)},
    "histogram": lambda keys: {"counts": np.bincount(keys, minlength=256)},
    "transpose": lambda x: {"y": x.T},
    "segments": of_segments,
    "sort": descending,
    "convolution": blurred,
}


def halved(array: Floats) -> Floats:
    return array.astype(np.float16).astype(array.dtype) if array.dtype.kind == "f" else array


def share(asked: KernelProblem, case: Case, given: Inputs, outputs: Outputs) -> tuple[bool, float]:
    """Whether all outputs are right, and the largest share of the allowed error."""
    expected, most, right = asked.oracle(case, given), 0.0, True
    for array in asked.arrays:
        if array.role is Role.INPUT:
            continue
        got = narrow(outputs[array.name], array.dtype)
        found = compare(array.name, expected[array.name], got)
        right &= found.right
        counts = found.bound > 0
        error = np.abs(got.astype(np.float64) - found.expected)[counts]
        most = max(most, float(np.max(error / found.bound[counts], initial=0)))
    return right, most


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_passes_with_margin(name: str) -> None:
    asked = PROBLEMS[name]
    for case in some_cases(asked):
        given = asked.inputs(case)
        with np.errstate(all="ignore"):
            outputs = RIGHT[name](**given.arrays)
        right, used = share(asked, case, given, outputs)
        # What is stored in a half type is rounded by up to half of what is allowed.
        room = 1 if asked.arrays[0].dtype in {"float16", "bfloat16"} else MARGIN
        assert right, case.name
        assert used <= room, f"{case.name}: {used:.2f} of the allowed error"


HALVED = ["saxpy", "sum_rows", "scan", "masked_softmax", "mean_square", "segments", "convolution"]


@pytest.mark.parametrize("name", HALVED)
def test_half_precision_inside_fails(name: str) -> None:
    asked = PROBLEMS[name]
    for case in some_cases(asked):
        if case.distribution != "normal" or case.sizes["n"] == 1:
            continue
        given = asked.inputs(case)
        rough = {n: halved(a) for n, a in given.arrays.items()}  # type: ignore[arg-type]
        assert not share(asked, case, given, RIGHT[name](**rough))[0], case.name


def test_one_operation_has_the_bound_that_many_tries_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = PROBLEMS["scan"]
    case = next(case for case in asked.cases(5) if case.sizes == {"rows": 37, "n": 37})
    given = asked.inputs(case)
    steady = asked.oracle(case, given)["y"].candidates[0].allowed
    monkeypatch.setattr(
        module, "steady_errors", lambda program, exact, unit: squared_errors([program], exact, 1, 400, unit)
    )
    np.testing.assert_allclose(steady, asked.oracle(case, given)["y"].candidates[0].allowed, rtol=0.2)


@pytest.mark.parametrize("name", ["mean_square", "saxpy"])
def test_of_large_outputs_all_are_judged_though_the_bound_is_worked_out_for_some(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = PROBLEMS[name]
    sizes = {"rows": 1 << 16, "n": 16} if name == "mean_square" else {"n": 1 << 20}
    case = Case("large", "", sizes, "normal", 3)
    given, tried = asked.inputs(case), []

    def counted(programs: Any, exact: Any, seed: int, unit: float) -> Any:  # noqa: ANN401
        tried.append(exact["y"].numel())
        return squared_errors(programs, exact, seed, unit=unit)

    monkeypatch.setattr(module, "squared_errors", counted)
    outputs = RIGHT[name](**given.arrays)
    right, used = share(asked, case, given, outputs)
    assert right
    assert used < MARGIN
    assert tried == [1 << 16]
    rough = {n: halved(a) for n, a in given.arrays.items()}  # type: ignore[arg-type]
    assert not share(asked, case, given, RIGHT[name](**rough))[0]
    for place in (5, 400_000, (1 << 20) - 1):
        wrong = outputs["y"].copy()
        wrong.reshape(-1)[place] = wrong.reshape(-1)[place - 1]
        assert not share(asked, case, given, {"y": wrong})[0]


@pytest.mark.parametrize("name", PROBLEMS)
def test_cases_are_of_many_kinds_and_no_more_than_a_simulator_can_run(name: str) -> None:
    asked = PROBLEMS[name]
    cases = asked.cases(7)
    assert {case.group for case in cases} == set(asked.groups)
    assert len({case.name for case in cases}) == len(cases)
    assert cases == asked.cases(7)
    assert cases != asked.cases(8)
    elements = {None: 0, 1: 0, MAGNITUDES: 0}
    for case in cases:
        kind = MAGNITUDES if case.group == MAGNITUDES else case.orders
        elements[kind] += asked.minimal_bytes(case) // DTYPES[asked.arrays[0].dtype].itemsize  # type: ignore[index]
        assert all(size <= case.sizes[name] for name, size in case.queued.items())
    assert elements[None] < 8_000_000
    assert elements[1] < 10_000_000
    assert elements[MAGNITUDES] < 20_000_000
    assert {case.queued != {} for case in cases if case.staged} == {True}
    assert STREAMS in asked.groups


def test_every_size_takes_its_borders_and_goes_beyond_a_million() -> None:
    seen = {case.sizes["n"] for case in PROBLEMS["saxpy"].cases(1)}
    assert seen >= {1, 31, 32, 33, 127, 128, 129, 255, 256, 257, 509, 1023, 1024, 1025, (1 << 20) + 7}
    even = {case.sizes["n"] for case in PROBLEMS["rope"].cases(1)}
    assert even >= {2, 32, 34, 256, 258, 512}
    assert all(size % 2 == 0 for size in even)


def test_a_queued_call_of_the_same_arrays_keeps_the_size_that_their_numbers_stay_below() -> None:
    counts = problem(
        id="counts",
        file="counts.cu",
        launcher="counts(int* counts, const int* values, int n, int bins, cudaStream_t stream)",
        formula=lambda values, bins: torch.zeros(bins, dtype=torch.int32).scatter_add(
            0, values.long(), torch.ones_like(values)
        ),
        inputs=lambda n, bins: {"values": indices(bins, n)},
        sizes={"n": Range(1, 1 << 20), "bins": Range(1, 1000)},
    )
    assert {tuple(case.queued) for case in counts.cases(1) if case.staged} == {("n",)}


@pytest.mark.parametrize(("low", "step"), [(16, 16), (2, 2), (100, 1), (48, 16)])
def test_a_queued_call_has_sizes_of_their_ranges(low: int, step: int) -> None:
    rows = problem(
        id="rows",
        file="rows.cu",
        launcher="launch_rows(float* out, const float* x, int rows, int columns, cudaStream_t stream)",
        formula=lambda x: 2 * x,
        inputs=lambda rows, columns: {"x": real(rows, columns)},
        sizes={"rows": Range(low, 1024, step), "columns": Range(low, 1024, step)},
    )
    staged = [case for case in rows.cases(1) if case.staged]
    assert staged
    for case in staged:
        assert all(size in rows.space.ranges[name] for name, size in case.queued.items())
        assert all(size <= case.sizes[name] for name, size in case.queued.items())


def test_the_same_seed_gives_the_same_inputs_of_the_launchers_types() -> None:
    for asked in PROBLEMS.values():
        case = asked.cases(3)[5]
        for array in asked.arrays:
            first, again = (asked.inputs(case).arrays.get(array.name) for _ in range(2))
            if first is not None:
                assert first.dtype == DTYPES[array.dtype].storage
                np.testing.assert_array_equal(first, again)


def test_contents_name_the_sizes_that_they_need_and_a_problem_may_limit_its_cases() -> None:
    def doubled(x: torch.Tensor, steps: int) -> torch.Tensor:
        for _ in range(steps):
            x = x + x
        return x

    launcher = "f(float* y, const float* x, int n, int steps)"
    sizes = {"n": Range(1, 1 << 22), "steps": Range(1, 3)}
    asked = made(launcher=launcher, formula=doubled, sizes=sizes, most=1000)
    assert {case.sizes["steps"] for case in asked.cases(1)} == {1, 2, 3}
    assert max(case.sizes["n"] for case in asked.cases(1)) <= 500
    (case,) = (case for case in by_hand(asked.cases(1)) if case.sizes == {"n": 30, "steps": 3})
    given = asked.inputs(case)
    assert share(asked, case, given, {"y": 8 * given.arrays["x"]})[0]  # type: ignore[operator]


def test_roles_and_types_follow_from_the_launcher_and_the_inputs() -> None:
    roles = {array.name: (array.role, array.dtype) for array in PROBLEMS["saxpy"].arrays}
    assert roles == {"y": (Role.INOUT, "float32"), "x": (Role.INPUT, "float32")}
    roles = {array.name: (array.role, array.dtype) for array in PROBLEMS["sum_rows"].arrays}
    assert roles["first"] == (Role.OUTPUT, "int64")
    assert PROBLEMS["matmul"].arrays[0].dtype == "float16"


def made(**changed: Any) -> KernelProblem:  # noqa: ANN401
    usual: dict[str, Any] = {
        "id": "double",
        "file": "double.cu",
        "launcher": "launch_double(float* y, const float* x, int n, cudaStream_t stream)",
        "formula": lambda x: 2 * x,
        "inputs": lambda n: {"x": real(n)},
        "sizes": {"n": Range(1, 100)},
    }
    return problem(**{**usual, **changed})


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"launcher": "launch_double"}, "this is no launcher"),
        (
            {"launcher": "launch_double(float* y, const float* x, int n, cudaStream_t)"},
            "no parameter of a launcher",
        ),
        ({"launcher": "f(quad* y, const float* x)"}, "no array has elements of type quad"),
        ({"launcher": "f(float* y, const float* x, half n)"}, "not half"),
        (
            {"launcher": "f(float4* y, const float* x, int n)"},
            r"y holds float4, and its shape is \(37,\)",
        ),
        ({"sizes": {"n": Range(1, 9, at_most="m")}}, "n is at most m, which is no size: there are n"),
        ({"sizes": {"n": Range(1, 9, at_most="n")}}, "each size is at most another one"),
        (
            {"sizes": {"n": Range(1, 9), "k": Range(1, 9, at_most="n")}, "timing": ({"n": 4, "k": 8},)},
            "timing has k = 8 with n = 4, and k is at most n: lower k, or raise n",
        ),
        (
            {
                "sizes": {"n": Range(1, 9), "k": Range(1, 9, at_most="n")},
                "cases": [("odd", {"n": 4, "k": 5}, "normal")],
            },
            "cases has k = 5 with n = 4",
        ),
        ({"timing": ({"m": 4},)}, "timing has m; the sizes are n"),
        ({"formula": None}, "there is neither a formula nor a check"),
        ({"outputs": lambda n: {"z": (n,)}}, "outputs has z, which is no array that the launcher writes"),
        (
            {"formula": None, "check": lambda *_: ""},
            "the shape of y is not known: let the formula return it, or outputs say it, as in",
        ),
        (
            {"formula": None, "check": lambda *_: "", "outputs": lambda m: {"y": (m,)}},
            "outputs asks for m, which is no size, scalar or input",
        ),
        ({"launcher": "f(float* y, const float* z)"}, "no content for z"),
        (
            {"launcher": "f(float* y, const float* x, float a)"},
            "a is no size, and inputs has no value for it",
        ),
        ({"inputs": lambda n: {"x": real(n), "z": real(n)}}, "the launcher has no parameter z"),
        ({"formula": lambda z: z}, "the formula asks for z"),
        ({"formula": lambda x: {"w": x}}, "returns w; the outputs are y"),
        ({"formula": lambda x: x[x > 0]}, "the shape of an output depends on the inputs' numbers"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(FormulaError, match=text):
        made(**changed)


def oracle(asked: KernelProblem) -> Any:  # noqa: ANN401
    case = asked.cases(1)[10]
    return next(iter(asked.oracle(case, asked.inputs(case)).values())).candidates[0]


def test_an_operation_without_error_model_is_refused_by_name() -> None:
    with pytest.raises(
        FormulaError, match="digamma has no error model: write the formula with other operations"
    ):
        oracle(made(formula=lambda x: torch.digamma(x)))  # noqa: PLW0108 - it has no signature


def test_integers_are_exact_and_wrap_around_as_their_type_does() -> None:
    wraps = made(
        launcher="f(int* y, const int* x, int n)",
        formula=lambda x: x * x,
        inputs=lambda n: {"x": integers(1 << 30, (1 << 31) - 1, n)},
    )
    candidate = oracle(wraps)
    assert candidate.expected.dtype == np.int32
    assert not candidate.allowed.any()


def test_floating_point_types_inside_a_formula_are_wide_in_the_oracle() -> None:
    plain, cast = (
        oracle(made(formula=one)) for one in (lambda x: x / 3, lambda x: x.float() / torch.full((1,), 3.0))
    )
    np.testing.assert_array_equal(plain.expected, cast.expected)
    rounds = oracle(made(formula=lambda x: (x / 3).half() * 1.0))
    assert (rounds.allowed > 50 * plain.allowed).all()


def test_tiny_numbers_on_the_way_may_lose_what_float16_loses_of_them() -> None:
    tiny = 2.0**-20
    asked = made(formula=lambda x: (x * tiny).half().float() / tiny)
    case = next(case for case in asked.cases(1) if (case.sizes["n"], case.distribution) == (100, "normal"))
    given = asked.inputs(case)
    candidate = asked.oracle(case, given)["y"].candidates[0]
    right = (given.arrays["x"] * np.float32(tiny)).astype(np.float16).astype(np.float32) / np.float32(tiny)
    assert (np.abs(right - candidate.expected) <= candidate.allowed).all()


def test_the_bound_allows_what_equally_right_formulas_lose() -> None:
    def centred(x: torch.Tensor) -> torch.Tensor:
        return x.var(-1, correction=0)

    def of_squares(x: torch.Tensor) -> torch.Tensor:
        return (x * x).mean(-1) - x.mean(-1) ** 2

    inputs = {"inputs": lambda n: {"x": real(3, n)}, "formula": centred}
    alone, both = made(**inputs), made(**inputs, also=[of_squares])
    case = next(case for case in alone.cases(1) if case.distribution == "large offset")
    given = alone.inputs(case)
    strict, loose = (one.oracle(case, given)["y"].candidates[0].allowed for one in (alone, both))
    assert (loose > 100 * strict).all()


def test_what_overflows_its_type_is_infinite() -> None:
    candidate = oracle(
        made(
            launcher="f(__half* y, const __half* x, int n)",
            formula=lambda x: x * 1e6,
        )
    )
    assert np.isinf(candidate.expected).any()
    assert np.isfinite(candidate.allowed).all()


@pytest.mark.parametrize(
    ("ctype", "largest", "beyond"), [("__nv_fp8_e4m3", 448.0, np.nan), ("__nv_fp8_e5m2", 57344.0, np.inf)]
)
def test_what_overflows_eight_bits_may_be_the_largest_number(
    ctype: str, largest: float, beyond: float
) -> None:
    asked = made(launcher=f"f({ctype}* y, const float* x, int n)", formula=lambda x: x * 1e6)
    case = asked.cases(1)[0]
    given = replace(asked.inputs(case), arrays={"x": np.array([1.0, -1.0, 1e-6], np.float32)})
    expectation = asked.oracle(case, given)["y"]
    storage = DTYPES[asked.arrays[0].dtype].storage
    for right in ([largest, -largest, 1.0], [beyond, -beyond, 1.0], [beyond, -beyond, 1.125]):
        assert compare("y", expectation, np.array(right).astype(storage)).right
    for wrong in ([largest, largest, 1.0], [largest / 2, -largest, 1.0], [largest, -largest, 1.5]):
        assert compare("y", expectation, np.array(wrong).astype(storage)).bad == 1


def test_a_baseline_rounds_to_a_half_type_only_where_an_output_is_one() -> None:
    for ctype, dtype in (("float", "float32"), ("__half", "float16")):
        asked = made(
            launcher=f"launch_product({ctype}* c, const __half* a, const __half* b, int n, cudaStream_t s)",
            formula=lambda a, b: 2 * (a @ b),
            inputs=lambda n: {"a": real(n, n), "b": real(n, n)},
        )
        program = asked.unfused(asked.cases(1)[0])
        assert {operation.output.dtype for operation in program} == {dtype}
        assert {tensor.dtype for tensor in program[0].tensors} == {"float16"}
