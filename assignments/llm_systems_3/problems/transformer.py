"""The language model on the student's kernels: two autograd functions, two modules, and training steps.

The expectations come from ``decoder`` in float64, the bounds from ``rounding``. Fused and unfused must both
agree with them, so they agree with each other. In the training case each of the twenty steps starts from
weights of the judge's own trajectory: an error of one step is judged in that step, and is not multiplied by
those behind it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grader.problems import written
from grader.problems.distributions import generator, normal, padding
from grader.problems.problem import Case, Expectation, Inputs, KernelProblem, ModelProblem
from grader.problems.rounding import expectations, one_thread
from grader.problems.written import Written

from . import decoder, layernorm_backward, layernorm_forward, softmax_backward, softmax_forward
from .model_bugs import BUGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    Floats = NDArray[np.float32]

SOFTMAX, NORM, MODULES = "attn_softmax", "layer_norm", "attention and layer"
STEPS, DROPOUT, KERNELS = "twenty steps", "dropout", "your kernels"
GROUPS = (SOFTMAX, NORM, MODULES, STEPS, DROPOUT, KERNELS)

DENSE, EVERY_OTHER, TRANSPOSED, EXPANDED = range(4)  # as in the runner
LAYOUTS = ("dense", "every other element", "transposed", "one value for all")
PADDED, NO_MASK = "padded with -inf", "null mask"
MODEL = {"vocabulary": 29, "width": 12, "heads": 3, "hidden": 20, "positions": 11, "layers": 2}
TIMED = {"vocabulary": 10_000, "width": 256, "heads": 8, "hidden": 256, "positions": 40, "layers": 4}
LINES = 16  # batches of the timed text
WORDS = 97  # that occur in it
TIMED_DROP, TIMED_RATE = 0.1, 1e-3
DROP = 0.25
RATE = 0.5  # of the judge's own steps
MODEL_SAMPLES = 4


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content."""
    table: list[Case] = []

    def add(group: str, function: str, name: str, mask: str, **sizes: int) -> None:
        content = int(np.random.SeedSequence((seed, len(table))).generate_state(1, np.uint64)[0] >> 1)
        table.append(Case(name, group, sizes, mask, content, function=function))

    def softmax(inp: int, upstream: int, mask: str, *shape: int, future: bool) -> None:
        batch, heads, queries, keys = shape
        name = f"{' x '.join(map(str, shape))}, {LAYOUTS[inp]}, gradient {LAYOUTS[upstream]}, {mask}"
        add(
            SOFTMAX, "attn_softmax", name + (", future hidden" if future else ""), mask,
            batch_size=batch, nhead=heads, from_len=queries, to_len=keys, mask_future=int(future),
            layout=inp, upstream_layout=upstream,
        )  # fmt: skip

    softmax(DENSE, DENSE, PADDED, 2, 3, 7, 7, future=True)
    softmax(DENSE, EXPANDED, NO_MASK, 1, 2, 33, 33, future=False)
    softmax(TRANSPOSED, EVERY_OTHER, PADDED, 3, 5, 11, 11, future=True)
    softmax(EVERY_OTHER, TRANSPOSED, PADDED, 2, 3, 9, 37, future=False)
    softmax(DENSE, TRANSPOSED, NO_MASK, 1, 1, 70, 70, future=True)
    for shape, inp, upstream in (
        ((2, 5, 12), DENSE, DENSE),
        ((7, 20), DENSE, EXPANDED),
        ((3, 11, 36), TRANSPOSED, EVERY_OTHER),
        ((37, 100), EVERY_OTHER, TRANSPOSED),
    ):
        name = f"{' x '.join(map(str, shape))}, {LAYOUTS[inp]}, gradient {LAYOUTS[upstream]}"
        sizes = dict(zip(("hidden_dim", "length", "batch"), reversed(shape), strict=False))
        add(NORM, "layer_norm", name, "", **sizes, layout=inp, upstream_layout=upstream)
    block = {"batch": 3, "length": 7, "width": 12, "heads": 3}
    add(MODULES, "block", "MultiHeadAttention, padded", PADDED, **block)
    add(MODULES, "block", "MultiHeadAttention, no mask", NO_MASK, **{**block, "batch": 2, "length": 33})
    add(MODULES, "block", "TransformerLayer, padded", PADDED, **block, hidden=20)
    train = {**MODEL, "batch": 3, "length": 11}
    add(STEPS, "train", "DecoderLM, 20 steps, padded", PADDED, **train, steps=20)
    add(DROPOUT, "block", "MultiHeadAttention with dropout", PADDED, **block, dropout=1)
    add(DROPOUT, "block", "TransformerLayer with dropout", PADDED, **block, hidden=20, dropout=1)
    add(DROPOUT, "train", "DecoderLM with dropout, 2 steps", PADDED, **train, steps=2, dropout=1)
    add(KERNELS, "block", "MultiHeadAttention, results of the kernels marked", PADDED, **block, marked=1)
    add(KERNELS, "train", "DecoderLM, results of the kernels marked", PADDED, **train, steps=1, marked=1)
    return tuple(table)


def timing_cases(seed: int) -> tuple[Case, ...]:
    """The handout's model on batches of 128 lines."""
    sizes = {**TIMED, "batch": 128, "length": 40, "steps": 1}
    name = "{layers} layers, {heads} heads, width {width}, vocabulary {vocabulary}, {batch} x {length}"
    return (Case(name.format(**sizes), "", sizes, PADDED, seed, function="begin"),)


def inputs(case: Case) -> Inputs:
    """Arrays and scalars of the case's function, see ``grader/runner/model.py``."""
    random = generator(case.seed)
    with one_thread():
        return _FUNCTIONS[case.function][0](case, random)


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """What the function returns in float64, and how far float32 may be from it."""
    with one_thread():
        return _FUNCTIONS[case.function][1](case, data)


def needs(case: Case) -> tuple[tuple[KernelProblem, Case, int], ...]:
    """The launches of a case, once per use and step; backward runs twice where a function is judged alone."""
    sizes = case.sizes
    if case.function == "attn_softmax":
        shape = {name: sizes[name] for name in ("batch_size", "nhead", "from_len", "to_len", "mask_future")}
        return _softmax_needs(shape, case.distribution, 1, 2)
    if case.function == "layer_norm":
        return _norm_needs(sizes.get("batch", 1) * sizes["length"], sizes["hidden_dim"], 1, 2)
    layers, steps = sizes.get("layers", 1), sizes.get("steps", 1)
    batch, heads, length = sizes["batch"], sizes["heads"], sizes["length"]
    shape = {"batch_size": batch, "nhead": heads, "from_len": length, "to_len": length, "mask_future": 1}
    launches = _softmax_needs(shape, case.distribution, layers * steps, layers * steps)
    norms = (2 * layers + 1 if "vocabulary" in sizes else 2 if "hidden" in sizes else 0) * steps
    return launches + (_norm_needs(batch * length, sizes["width"], norms, norms) if norms else ())


def _softmax_needs(
    shape: Mapping[str, int], mask: str, forward: int, backward: int
) -> tuple[tuple[KernelProblem, Case, int], ...]:
    rows = shape["batch_size"] * shape["nhead"] * shape["from_len"]
    flat = {"rows": rows, "softmax_len": shape["to_len"]}
    return (
        (softmax_forward.PROBLEM, Case("", "", shape, mask, 0), forward),
        (softmax_backward.PROBLEM, Case("", "", flat, "normal", 0), backward),
    )


def _norm_needs(
    rows: int, hidden: int, forward: int, backward: int
) -> tuple[tuple[KernelProblem, Case, int], ...]:
    sizes = {"batch_size": rows, "hidden_dim": hidden}
    return (
        (layernorm_forward.PROBLEM, Case("", "", sizes, "normal", 0), forward),
        (layernorm_backward.PROBLEM, Case("", "", sizes, "normal", 0), backward),
    )


def _mask(case: Case, random: np.random.Generator, batch: int, keys: int) -> Floats | None:
    return padding(random, batch, keys, -np.inf) if case.distribution == PADDED else None


def _upstream(case: Case, random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    if case.sizes["upstream_layout"] == EXPANDED:
        return np.full(shape, random.uniform(0.5, 2), np.float32)
    return normal(random, shape)


def _layouts(case: Case) -> dict[str, int]:
    return {"layout": case.sizes["layout"], "upstream layout": case.sizes["upstream_layout"]}


def _gradients(names: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {
        f"gradient of {name}{again}": shape
        for name, shape in names.items()
        for again in ("", ", backward again")
    }


def _softmax_inputs(case: Case, random: np.random.Generator) -> Inputs:
    shape = tuple(case.sizes[name] for name in ("batch_size", "nhead", "from_len", "to_len"))
    mask = _mask(case, random, shape[0], shape[3])
    scores, upstream = normal(random, shape, scale=3), _upstream(case, random, shape)
    return Inputs(
        {"inp": scores, "attn_mask": mask, "upstream": upstream},
        {"output": shape, **_gradients({"inp": shape})},
        {**_layouts(case), "mask_future": bool(case.sizes["mask_future"])},
    )


def _softmax_oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    arrays = _doubles(data)
    mask, future = arrays.get("attn_mask"), bool(data.scalars["mask_future"])
    return _function_oracle(
        case,
        arrays,
        ("inp",),
        lambda leaves, marks: decoder.softmax(leaves["inp"], mask, future=future, marks=marks),
    )


def _norm_inputs(case: Case, random: np.random.Generator) -> Inputs:
    shape = tuple(case.sizes[name] for name in ("batch", "length", "hidden_dim") if name in case.sizes)
    hidden = shape[-1]
    arrays = {
        "inp": normal(random, shape, scale=2, mean=1),
        "scale": normal(random, (hidden,), mean=1, scale=0.3),
        "bias": normal(random, (hidden,)),
        "upstream": _upstream(case, random, shape),
    }
    outputs = {"output": shape, **_gradients({"inp": shape, "scale": (hidden,), "bias": (hidden,)})}
    return Inputs(arrays, outputs, _layouts(case))


def _norm_oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    return _function_oracle(
        case,
        _doubles(data),
        ("inp", "scale", "bias"),
        lambda leaves, marks: decoder.layer_norm(leaves["inp"], leaves["scale"], leaves["bias"], marks),
    )


def _function_oracle(
    case: Case,
    arrays: Mapping[str, Tensor],
    names: tuple[str, ...],
    forward: Callable[[Mapping[str, Tensor], Written], Tensor],
) -> Mapping[str, Expectation]:
    def program() -> dict[str, Tensor]:
        marks = Written({}, {})
        leaves = {name: arrays[name].clone().requires_grad_() for name in names}
        output = forward(leaves, marks)
        gradients = torch.autograd.grad(output, tuple(leaves.values()), arrays["upstream"])
        named = {f"gradient of {name}": value for name, value in zip(names, gradients, strict=True)}
        return {"output": output.detach(), **named, **marks.outputs}

    expected = expectations(program, case.seed)
    return expected | {
        f"{name}, backward again": expected[name] for name in expected if name.startswith("gradient")
    }


def _block_inputs(case: Case, random: np.random.Generator) -> Inputs:
    sizes = case.sizes
    batch, length, width, heads = (sizes[name] for name in ("batch", "length", "width", "heads"))
    shape = (batch, length, width)
    shapes = (
        decoder.layer_shapes(width, sizes["hidden"]) if "hidden" in sizes else decoder.attention_shapes(width)
    )
    shapes_of_drops = ((batch, heads, length, length), *((shape,) if "hidden" in sizes else ()))
    arrays = {
        "inp": normal(random, shape),
        "attn_mask": _mask(case, random, batch, length),
        "upstream": normal(random, shape),
        **{name: _weight(random, name, shape) for name, shape in shapes.items()},
        **_drops(case, random, shapes_of_drops),
    }
    results = {
        "output": shape,
        "gradient of inp": shape,
        **{f"gradient of {name}": shape for name, shape in shapes.items()},
    }
    scalars = {"heads": heads, "dropout": _probability(case), **_marks(case, random)}
    if "hidden" in sizes:
        scalars["hidden"] = sizes["hidden"]
    return Inputs(arrays, _both(results), scalars)


def _block_oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    arrays = _doubles(data)
    block = decoder.layer if "hidden" in case.sizes else decoder.attention
    names = ("inp", *(name for name in arrays if "." in name))

    def run(scalars: Mapping[str, Any]) -> Mapping[str, Expectation]:
        fields: dict[str, Tensor] = {}

        def program() -> dict[str, Tensor]:
            marks = Written(scalars, fields)
            leaves = {name: arrays[name].clone().requires_grad_() for name in names}
            mask, heads = arrays.get("attn_mask"), case.sizes["heads"]
            output = block(leaves, leaves["inp"], mask, heads, _factors(arrays), marks)
            gradients = torch.autograd.grad(output, tuple(leaves.values()), arrays["upstream"])
            named = {f"gradient of {name}": value for name, value in zip(names, gradients, strict=True)}
            return {"output": output.detach(), **named, **marks.outputs}

        return expectations(program, case.seed)

    return _expected_both(data, run)


def _train_inputs(case: Case, random: np.random.Generator) -> Inputs:
    sizes = {name: case.sizes[name] for name in MODEL}
    batch, length, steps = (case.sizes[name] for name in ("batch", "length", "steps"))
    text = (batch, length, sizes["width"])
    shapes_of_drops = (text, *((batch, sizes["heads"], length, length), text) * sizes["layers"])
    tokens = random.integers(1, sizes["vocabulary"], (steps, batch, length + 1))
    ends = random.integers(4, length + 1, (steps, batch, 1))
    ends[:, 0] = length
    begins = random.integers(1, 3, (steps, batch, 1))
    at = np.arange(length)
    arrays: dict[str, NDArray[np.generic] | None] = {
        "tokens": np.where(np.arange(length + 1) <= ends, tokens, 0),
        "attn_mask": np.where(at < ends, 0, -np.inf).astype(np.float32),
        "counted": ((at >= begins) & (at < ends)).astype(np.float32),
        **_drops(case, random, shapes_of_drops),
    }
    shapes = decoder.model_shapes(sizes)
    weights = {name: _weight(random, name, shape) for name, shape in shapes.items()}
    arrays |= _trajectory(
        weights, {name: _double(array) for name, array in arrays.items() if array is not None}, sizes
    )
    results = {"loss": (steps,), **{f"gradient of {name}": (steps, *shape) for name, shape in shapes.items()}}
    scalars = {**sizes, "dropout": _probability(case), **_marks(case, random)}
    return Inputs(arrays, _both(results), scalars)


def _begin_inputs(case: Case, random: np.random.Generator) -> Inputs:
    """Weights, and lines in which each word follows from the one before it, so that few steps can learn."""
    sizes = {name: case.sizes[name] for name in MODEL}
    length, lines = case.sizes["length"], LINES * case.sizes["batch"]
    words = min(WORDS, sizes["vocabulary"] - 1)
    tokens = np.empty((lines, length + 1), np.int64)
    tokens[:, 0] = random.integers(words, size=lines)
    for position in range(length):
        tokens[:, position + 1] = (5 * tokens[:, position] + 1) % words
    mask = padding(random, lines, length, -np.inf)
    weights = {name: _weight(random, name, shape) for name, shape in decoder.model_shapes(sizes).items()}
    scalars = {**sizes, "dropout": TIMED_DROP, "batch": case.sizes["batch"], "rate": TIMED_RATE}
    return Inputs(
        {"tokens": tokens + 1, "attn_mask": mask, "counted": np.isfinite(mask).astype(np.float32), **weights},
        {},
        {**scalars, "seed": int(random.integers(2**31))},
    )


def _trajectory(
    weights: Mapping[str, Floats], data: Mapping[str, Tensor], sizes: Mapping[str, int]
) -> dict[str, Floats]:
    """The weights at the beginning of each step, as steepest descent from ``weights`` makes them."""
    steps: dict[str, list[Floats]] = {name: [] for name in weights}
    now = {name: _double(array) for name, array in weights.items()}
    for step in range(data["tokens"].shape[0]):
        for name, value in now.items():
            steps[name].append(value.numpy().astype(np.float32))
        gradients = _gradients_at(now, data, step, sizes, {})
        now = {name: value - RATE * gradients[f"gradient of {name}"] for name, value in now.items()}
    return {name: np.stack(values) for name, values in steps.items()}


def _gradients_at(
    weights: Mapping[str, Tensor],
    data: Mapping[str, Tensor],
    step: int,
    sizes: Mapping[str, int],
    marks: decoder.Marks,
) -> dict[str, Tensor]:
    """Loss and gradients of one step."""
    leaves = {name: value.clone().requires_grad_() for name, value in weights.items()}
    tokens, mask, counted = (data[name][step] for name in ("tokens", "attn_mask", "counted"))
    loss = decoder.loss(leaves, tokens.long(), mask, counted, sizes, _factors(data), marks)
    gradients = torch.autograd.grad(loss, tuple(leaves.values()))
    return {
        "loss": loss.detach().reshape(1),
        **{f"gradient of {name}": value for name, value in zip(leaves, gradients, strict=True)},
    }


def _train_oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    arrays = _doubles(data)
    sizes = {name: case.sizes[name] for name in MODEL}

    def run(scalars: Mapping[str, Any]) -> Mapping[str, Expectation]:
        def expected(step: int) -> dict[str, Expectation]:
            weights = {name: array[step] for name, array in arrays.items() if "." in name}

            fields: dict[str, Tensor] = {}

            def program() -> dict[str, Tensor]:
                marks = Written(scalars, fields)
                return _gradients_at(weights, arrays, step, sizes, marks) | marks.outputs

            return expectations(program, case.seed + step, MODEL_SAMPLES)

        steps = [expected(step) for step in range(case.sizes["steps"])]
        stacked = {
            name: _stacked([step[name] for step in steps], name)
            for name in steps[0]
            if not written.is_written(name)
        }
        return stacked | written.in_turn(steps)

    return _expected_both(data, run)


def _stacked(steps: list[Expectation], name: str) -> Expectation:
    join = np.concatenate if name == "loss" else np.stack
    parts = [step.candidates[0] for step in steps]
    expected, allowed = (join([getattr(part, field) for part in parts]) for field in ("expected", "allowed"))
    return Expectation((type(parts[0])(expected, allowed),))


def _expected_both(
    data: Inputs, run: Callable[[Mapping[str, Any]], Mapping[str, Expectation]]
) -> Mapping[str, Expectation]:
    """The expectations of the fused and the unfused path, which differ only where results are marked.

    The launchers write in the fused one alone.
    """
    fused = run(data.scalars)
    unfused = run({}) if written.SEED in data.scalars else fused
    return {
        name if written.is_written(name) else f"{name}, fused": expectation
        for name, expectation in fused.items()
    } | {
        f"{name}, unfused": expectation
        for name, expectation in unfused.items()
        if not written.is_written(name)
    }


def _both(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {f"{name}, {path}": shape for path in ("fused", "unfused") for name, shape in shapes.items()}


def _weight(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> Floats:
    """Normal weights of a size that keeps activations near 1; scales of layer norms near 1."""
    if name.endswith("scale"):
        return normal(random, shape, scale=0.2, mean=1)
    return normal(random, shape, scale=0.2 if len(shape) == 1 else shape[-1] ** -0.5)


def _probability(case: Case) -> float:
    return DROP if case.sizes.get("dropout") else 0.0


def _drops(
    case: Case, random: np.random.Generator, shapes: tuple[tuple[int, ...], ...]
) -> dict[str, NDArray[np.generic] | None]:
    """Which elements dropout keeps, for each place of the model in the order of its forward pass."""
    if not case.sizes.get("dropout"):
        return {}
    return {
        f"dropout {number:02}": (random.random(shape) >= DROP).astype(np.float32)
        for number, shape in enumerate(shapes)
    }


def _factors(arrays: Mapping[str, Tensor]) -> Iterator[Tensor]:
    return iter([arrays[name] / (1 - DROP) for name in sorted(arrays) if name.startswith("dropout ")])


def _marks(case: Case, random: np.random.Generator) -> dict[str, int | bool | float]:
    """The seed of the factors on what the launchers write, if the case is marked."""
    return {written.SEED: int(random.integers(2**31))} if case.sizes.get("marked") else {}


def _double(array: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(array.astype(np.float64))


def _doubles(data: Inputs) -> dict[str, Tensor]:
    return {name: _double(array) for name, array in data.arrays.items() if array is not None}


_FUNCTIONS: Mapping[
    str,
    tuple[Callable[[Case, np.random.Generator], Inputs], Callable[[Case, Inputs], Mapping[str, Expectation]]],
] = {
    "attn_softmax": (_softmax_inputs, _softmax_oracle),
    "layer_norm": (_norm_inputs, _norm_oracle),
    "block": (_block_inputs, _block_oracle),
    "train": (_train_inputs, _train_oracle),
    "begin": (_begin_inputs, lambda _case, _data: {}),
}

PROBLEM = ModelProblem(
    id="transformer",
    file="transformer.py",
    groups=GROUPS,
    cases=cases,
    timing_cases=timing_cases,
    inputs=inputs,
    oracle=oracle,
    bugs=BUGS,
    harness=Path(__file__).with_name("transformer_harness.py"),
    modules=("kernels.py", "launchers.py"),
    launchers={
        "softmax_kernel.cu": ("launch_attn_softmax", "launch_attn_softmax_bw"),
        "layernorm_kernel.cu": ("launch_layernorm", "launch_layernorm_bw"),
    },
    needs=needs,
)
