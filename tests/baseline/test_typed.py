"""The typed kernels on the simulator, each function in each type, against PyTorch's operator of that name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from grader.judge.timing.program import step
from grader.judge.timing.pytorch import stepwise
from grader.problems.dtypes import DTYPES
from grader.problems.operations import TYPED, Kind, Operation, Tensor, Window, dense, mapped, reduced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from baseline.conftest import Ran

REAL, WHOLE = ("float16", "bfloat16", "float32", "float64"), ("int32", "int64", "uint8")
SHAPE = (3, 5, 40)
OF_TWO = {
    *("add", "subtract", "multiply", "divide", "trunc divide", "floor divide", "remainder", "fmod"),
    *("maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "logical and", "logical or", "logical xor"),
    *("pow", "atan2", "bitwise and", "bitwise or", "bitwise xor", "bitwise left shift"),
    "bitwise right shift",
}
FOR_BOTH = {
    *("copy", "where", "add", "subtract", "multiply", "trunc divide", "floor divide", "remainder", "fmod"),
    *("maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "logical and", "logical or", "logical xor"),
    *("logical not", "abs", "sign", "pow"),
}
TRUTH = {
    *("eq", "ne", "lt", "le", "gt", "ge", "logical and", "logical or", "logical xor", "logical not"),
    *("isnan", "isinf"),
}
ROUNDED = {
    "float8_e4m3fn": 2.0**-2,
    "float8_e5m2": 2.0**-1,
    "float16": 2.0**-9,
    "bfloat16": 2.0**-6,
    "float32": 2.0**-19,
    "float64": 2.0**-46,
}
"""Room, relative to the largest element: two or more roundings of each type."""


def content(name: str, dtype: str, shape: tuple[int, ...] = SHAPE) -> torch.Tensor:
    """Numbers that every function takes: from 0.1 to 1, small integers from 1 on."""
    random = torch.Generator().manual_seed(sum(map(ord, name + dtype)))
    if dtype == "bool":
        return torch.randint(2, shape, generator=random).bool()
    if DTYPES[dtype].exact:
        return torch.randint(1, 7, shape, generator=random).to(getattr(torch, dtype))
    return (torch.rand(shape, generator=random, dtype=torch.float64) * 0.9 + 0.1).to(getattr(torch, dtype))


def raw(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The tensor's memory as NumPy has it."""
    flat = tensor.contiguous().reshape(-1)
    storage = DTYPES[str(tensor.dtype).removeprefix("torch.")].storage
    if storage.isbuiltin != 1:
        return flat.view(getattr(torch, f"uint{8 * storage.itemsize}")).numpy().view(storage)
    return flat.view(torch.uint8).numpy() if tensor.dtype is torch.bool else flat.numpy()


def agree(on_the_sim: Ran, programs: list[tuple[tuple[Operation, ...], dict[str, torch.Tensor]]]) -> None:
    """Both ways to run ``programs`` leave the same in their last outputs."""
    ran = on_the_sim([(program, {n: raw(t) for n, t in arrays.items()}) for program, arrays in programs])
    for (program, arrays), got in zip(programs, ran, strict=True):
        out = program[-1].output
        wanted = stepwise(program, {name: tensor.clone() for name, tensor in arrays.items()})()[out.name]
        expected = raw(wanted).astype(np.float64)
        found = got[out.name].astype(np.float64)
        room = ROUNDED.get(out.dtype, 0.0) * np.nanmax(np.abs(expected), initial=0.0)
        what = f"{program[-1].function} {[one.dtype for one in program[-1].tensors]} {out.dtype}"
        np.testing.assert_allclose(found, expected, rtol=0, atol=room, err_msg=what)


def result(dtype: str, *shape: int) -> dict[str, torch.Tensor]:
    return {"y": torch.zeros(shape, dtype=getattr(torch, dtype))}


def maps() -> Iterator[tuple[tuple[Operation, ...], dict[str, torch.Tensor]]]:
    for function in TYPED[Kind.MAP]:
        if function in {"arange", "hide future"}:
            continue
        real_only = function not in FOR_BOTH and not function.startswith("bitwise")
        types = REAL if real_only else WHOLE if function.startswith("bitwise") else (*REAL, *WHOLE)
        for dtype in (*types, "bool") if function in {"copy", "logical not", "eq"} else types:
            out = "bool" if function in TRUTH else dtype
            names = ["c", "a", "b"] if function == "where" else ["a", "b"] if function in OF_TWO else ["a"]
            arrays = {name: content(name, "bool" if name == "c" else dtype) for name in names}
            inputs = tuple(dense(name, *SHAPE, dtype="bool" if name == "c" else dtype) for name in names)
            operation = Operation(Kind.MAP, function, dense("y", *SHAPE, dtype=out), inputs)
            yield (operation,), {**arrays, **result(out, *SHAPE)}


def test_every_function_of_a_map_in_every_type(on_the_sim: Ran) -> None:
    programs = list(maps())
    assert {program[0].function for program, _ in programs} | {"arange", "hide future"} == set(
        TYPED[Kind.MAP]
    )
    agree(on_the_sim, programs)


@pytest.mark.gpu
def test_every_function_of_a_map_on_a_gpu(on_the_gpu: Ran) -> None:
    agree(on_the_gpu, list(maps()))


def test_every_type_is_cast_to_every_other(on_the_sim: Ran) -> None:
    programs = []
    for source in DTYPES:
        for target in DTYPES:
            wanted = dense("y", *SHAPE, dtype=target)
            operation = Operation(Kind.MAP, "copy", wanted, (dense("a", *SHAPE, dtype=source),))
            programs.append(((operation,), {"a": content("a", source), **result(target, *SHAPE)}))
    agree(on_the_sim, programs)


def test_reductions_over_any_axes(on_the_sim: Ran) -> None:
    programs = []
    for function in TYPED[Kind.REDUCE]:
        for dtype in ("float16", "float32", "float64", "int64", "uint8", "bool"):
            if dtype == "bool" and function not in {"any", "all"}:
                continue
            if DTYPES[dtype].exact and function == "mean":
                continue
            out = "bool" if function in {"any", "all"} else "int64" if function.startswith("arg") else dtype
            for shape in ((3, 1, 40), (1, 5, 1), (1, 1, 1)):
                inputs = (dense("a", *SHAPE, dtype=dtype),)
                operation = Operation(Kind.REDUCE, function, dense("y", *shape, dtype=out), inputs)
                a = content("a", dtype)
                a = torch.ones_like(a) if function == "prod" else a  # of so many others nothing is left
                programs.append(((operation,), {"a": a, **result(out, *shape)}))
    agree(on_the_sim, programs)


def test_scans_along_any_axis(on_the_sim: Ran) -> None:
    programs = []
    for dtype in ("float16", "float32", "float64", "int32", "int64"):
        for axis in range(3):
            shape = (2, 700, 3) if axis == 1 else SHAPE
            operation = Operation(
                Kind.SCAN, "cumsum", dense("y", *shape, dtype=dtype), (dense("a", *shape, dtype=dtype),), axis
            )
            programs.append(((operation,), {"a": content("a", dtype, shape), **result(dtype, *shape)}))
    ones = (dense("a", 300),)
    product = Operation(Kind.SCAN, "cumprod", dense("y", 300), ones, 0)
    programs.append(
        ((product,), {"a": content("a", "float32", (300,)) * 0.1 + 0.95, **result("float32", 300)})
    )
    agree(on_the_sim, programs)


def test_products_of_matrices_that_fill_no_tile_and_are_transposed(on_the_sim: Ran) -> None:
    programs = []
    for dtype in ("float16", "bfloat16", "float32", "float64", "int64"):
        left = Tensor("a", (2, 19, 37), (19 * 37, 37, 1), dtype)
        right = Tensor("b", (2, 37, 21), (0, 1, 37), dtype)  # a transposed matrix, the same for both
        out = dense("y", 2, 19, 21, dtype=dtype)
        arrays = {"a": content("a", dtype, (2, 19, 37)), "b": content("b", dtype, (21, 37))}
        operation = Operation(Kind.MATMUL, "matmul", out, (left, right))
        programs.append(((operation,), {**arrays, **result(dtype, 2, 19, 21)}))
    agree(on_the_sim, programs)


def test_elements_are_gathered_and_scattered(on_the_sim: Ran) -> None:
    programs = []
    for dtype in ("float16", "float32", "int32", "int64", "bool"):
        index = torch.randint(0, 9, (50, 4), generator=torch.Generator().manual_seed(3))
        chosen = dense("i", 50, 4, dtype="int64")
        gather = Operation(
            Kind.INDEXED, "gather", dense("y", 50, 4, dtype=dtype), (dense("a", 9, 4, dtype=dtype), chosen), 0
        )
        programs.append(((gather,), {"a": content("a", dtype, (9, 4)), "i": index, **result(dtype, 50, 4)}))
        if dtype in {"float32", "int32", "int64"}:
            add = Operation(
                Kind.INDEXED,
                "scatter add",
                dense("y", 9, 4, dtype=dtype),
                (dense("a", 50, 4, dtype=dtype), chosen),
            )
            arrays = {"a": content("a", dtype, (50, 4)), "i": index, **result(dtype, 9, 4)}
            programs.append(((add,), arrays))
        order = (
            torch.randperm(9, generator=torch.Generator().manual_seed(3))[:, None].expand(9, 4).contiguous()
        )
        scatter = Operation(
            Kind.INDEXED,
            "scatter",
            dense("y", 9, 4, dtype=dtype),
            (dense("a", 9, 4, dtype=dtype), dense("i", 9, 4, dtype="int64")),
        )
        programs.append(((scatter,), {"a": content("a", dtype, (9, 4)), "i": order, **result(dtype, 9, 4)}))
    agree(on_the_sim, programs)


def test_every_line_is_sorted_in_either_order_and_equal_elements_keep_theirs(on_the_sim: Ran) -> None:
    programs = []
    for function in TYPED[Kind.SORT]:
        for dtype in ("float16", "float32", "float64", "int32", "int64", "uint8"):
            for shape, axis in (((2, 3, 40), 2), ((2, 37, 3), 1), ((1, 1, 1), 0)):
                out = "int64" if function.startswith("argsort") else dtype
                a = content("a", dtype, shape)
                a = torch.where(a > a.flatten()[0], a, a.flatten()[0])  # many equal ones
                operation = Operation(
                    Kind.SORT,
                    function,
                    dense("y", *shape, dtype=out),
                    (dense("a", *shape, dtype=dtype),),
                    axis,
                )
                programs.append(((operation,), {"a": a, **result(out, *shape)}))
    nan = torch.tensor([2.0, torch.nan, -torch.inf, torch.inf, 1.0])
    operation = Operation(Kind.SORT, "argsort", dense("y", 5, dtype="int64"), (dense("a", 5),))
    programs.append(((operation,), {"a": nan, **result("int64", 5)}))
    agree(on_the_sim, programs)


def test_segments_are_summed_and_may_be_empty(on_the_sim: Ran) -> None:
    programs = []
    for dtype in ("float16", "float32", "float64"):
        for places in ("int32", "int64"):
            a = Tensor("a", (20, 3), (1, 20), dtype)
            starts = Tensor("i", (5, 1), (1, 0), places)
            operation = Operation(Kind.SEGMENT, "segment sum", dense("y", 4, 3, dtype=dtype), (a, starts))
            cut = torch.tensor([0, 7, 7, 8, 20], dtype=getattr(torch, places))
            arrays = {"a": content("a", dtype, (3, 20)), "i": cut, **result(dtype, 4, 3)}
            programs.append(((operation,), arrays))
    agree(on_the_sim, programs)


def test_convolutions_of_any_window_and_number_of_dimensions(on_the_sim: Ran) -> None:
    programs = []
    for dtype in ("float16", "float32", "float64"):
        for extent, taps, shape, window in (
            ((2, 4, 9), (6, 2, 3), (2, 6, 5), Window((2,), (1,), (1,), 2)),
            ((1, 1, 6, 7), (1, 1, 3, 3), (1, 1, 6, 7), Window((1, 1), (1, 1), (1, 1), 1)),
            ((2, 3, 8, 9), (2, 3, 2, 3), (2, 2, 8, 3), Window((1, 3), (1, 2), (2, 2), 1)),
            ((1, 2, 4, 4, 4), (1, 2, 2, 2, 2), (1, 1, 3, 3, 3), Window((1,) * 3, (0,) * 3, (1,) * 3, 1)),
        ):
            operation = Operation(
                Kind.CONVOLUTION,
                "convolution",
                dense("y", *shape, dtype=dtype),
                (dense("a", *extent, dtype=dtype), dense("w", *taps, dtype=dtype)),
                window=window,
            )
            arrays = {
                "a": content("a", dtype, extent),
                "w": content("w", dtype, taps),
                **result(dtype, *shape),
            }
            programs.append(((operation,), arrays))
    agree(on_the_sim, programs)


def test_views_numbers_and_the_operations_of_hand_written_programs(on_the_sim: Ran) -> None:
    half = dense("a", 6, 7, dtype="float16")
    program = (
        mapped("scaled", "multiply constant", half, 1.5),
        mapped("hidden", "hide future", dense("scaled", 6, 7, dtype="float16")),
        reduced("top", "max", dense("hidden", 6, 7, dtype="float16"), axis=1),
        Operation(Kind.MAP, "copy", dense("y", 6, 7, dtype="float16"), (0.5,)),
        # every other column of rows 1 to 5, from right to left in pairs of rows
        Operation(
            Kind.MAP,
            "subtract",
            Tensor("y", (5, 3), (7, 2), "float16", 8),
            (Tensor("top", (5, 3), (1, 0), "float16", 1), Tensor("a", (5, 3), (1, 7), "float16", 3)),
        ),
    )
    steps = Operation(Kind.MAP, "arange", dense("y", 20, dtype="int32"), (3, 5))
    clamped = Operation(Kind.MAP, "maximum", dense("y", 6, 7, dtype="float16"), (half, 0.25))
    agree(
        on_the_sim,
        [
            (program, {"a": content("a", "float16", (6, 7)), **result("float16", 6, 7)}),
            ((steps,), result("int32", 20)),
            ((clamped,), {"a": content("a", "float16", (6, 7)), **result("float16", 6, 7)}),
        ],
    )


def test_what_there_is_no_kernel_for_is_refused_by_name() -> None:
    wanted = Operation(Kind.MAP, "digamma", dense("y", 4, dtype="float64"), (dense("a", 4, dtype="float64"),))
    with pytest.raises(ValueError, match="the baseline has no map 'digamma'"):
        step(wanted, {"y": 0, "a": 1})
    deep = dense("y", *(1,) * 9)
    with pytest.raises(ValueError, match="more than 8 dimensions"):
        step(Operation(Kind.MAP, "copy", deep, (deep,)), {"y": 0})
