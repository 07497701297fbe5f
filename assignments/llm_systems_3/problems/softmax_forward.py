"""Softmax forward: rows of attention scores plus a mask become weights, in place.

With l = fl32(inp + mask), the logit that any float32 kernel sees, and m the largest of a row:
    w_j = exp(l_j - m) / sum_k exp(l_k - m),   0 for hidden keys.

Bound of w_j, relative, from the pieces of ``bounds``, x_j = l_j - m:
    exp_error(x_j)                    the numerator
  + sum_k w_k exp_error(x_k)          the terms of the denominator
  + u (additions_of(w) + RESCALINGS)  their sum, also where a running maximum rescales it (online softmax)
  + u (QUOTIENT + |log sum|)          the division, also as exp(x - log(sum))
  + u min(|m|, LARGEST_OFFSET)        also as exp(l - (m + log(sum))), which a mask of -1e8 would break
  + EPSILON / sum                     with 1e-8 in the denominator or without
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from grader.problems import bounds
from grader.problems.contents import UNSAMPLED
from grader.problems.distributions import (
    STREAMS,
    build_case,
    build_cases,
    generator,
    normal,
    padding,
    with_one_huge,
)
from grader.problems.grid import MAGNITUDES, with_grid
from grader.problems.operations import Operation, dense, mapped, reduced, zipped
from grader.problems.problem import (
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Range,
    Role,
    ScalarParameter,
    Slices,
    Space,
    StreamParameter,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Array = NDArray[np.float64]

EPSILON = 1e-8
LOWEST = -1e300  # in place of -inf, of which none may be subtracted
RESCALINGS = 16.0  # the running maximum of random scores changes about log(2048) = 8 times
LEAST_ROW = 8  # elements that a row counts as
LARGEST_OFFSET = 2048.0  # of scores, up to which the logarithm of the sum may be added to it

SHORT, BORDER, LONG = "short rows", "lengths around a bucket border", "long rows"
LEFT = "any mask, padded on the left"
FAR = "rows far from 0"
HIDES_FIRST = frozenset({LEFT, "fully masked rows", "whole rows at -1e8"})
HEADS, NO_MASK, PADDING, FUTURE = "batches and heads", "no mask", "padding mask", "future mask"
OFFSET, MANY = "large offset", "many rows"
GROUPS = (SHORT, BORDER, LONG, HEADS, NO_MASK, PADDING, FUTURE, OFFSET, MANY, STREAMS)


def sizes(batch: int, heads: int, queries: int, keys: int, *, future: bool = False) -> Mapping[str, int]:
    """The sizes of one case in the words of the entry point."""
    return {
        "batch_size": batch,
        "nhead": heads,
        "from_len": queries,
        "to_len": keys,
        "mask_future": int(future),
    }


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and a few lengths drawn from the seed."""
    draw = generator(seed)
    short, long, odd = (int(draw.integers(*limits)) for limits in ((2, 31), (1026, 2047), (34, 64)))
    borders = (31, 32, 33, 64, 65, 127, 129, 257, 385, 513, 769, 1024, 1025)
    kernels = (12, 24, 64, 128, 256, 384, 512, 768, 1024, 2048)  # as the handout tells them apart, and full
    table = [
        (SHORT, sizes(1, 1, 5, 1), "normal"),
        (SHORT, sizes(1, 1, 7, short), "normal"),
        *((BORDER, sizes(1, 1, 5, keys), "normal") for keys in borders),
        (LONG, sizes(1, 1, 5, long), "normal"),
        (LONG, sizes(1, 1, 5, 1500), "normal"),
        (LONG, sizes(1, 1, 3, 2047), "normal"),
        (LONG, sizes(1, 1, 3, 2048), "uniform"),
        (HEADS, sizes(3, 4, 6, odd), "normal"),
        (HEADS, sizes(5, 3, 1, 130), "normal"),
        (NO_MASK, sizes(2, 2, 3, 20), "null mask"),
        (NO_MASK, sizes(2, 2, 3, 300), "null mask"),
        (NO_MASK, sizes(2, 2, 5, 384), "null mask, offset -1e5"),
        (PADDING, sizes(3, 2, 5, 29), "padded with -inf"),
        (PADDING, sizes(3, 2, 5, 260), "padded with -inf"),
        (PADDING, sizes(3, 2, 6, 260), "padded with -inf"),
        (PADDING, sizes(3, 2, 5, 70), "padded with -1e8"),
        (PADDING, sizes(2, 2, 3, 1100), "any mask"),
        (PADDING, sizes(3, 2, 5, 100), "whole rows at -1e8"),
        (PADDING, sizes(3, 2, 5, 24), "fully masked rows"),
        (PADDING, sizes(3, 2, 5, 200), "fully masked rows"),
        *((PADDING, sizes(2, 2, 5, keys), LEFT) for keys in kernels),
        (FUTURE, sizes(2, 2, 31, 31, future=True), "normal"),
        (FUTURE, sizes(1, 2, 67, 130, future=True), "normal"),
        (FUTURE, sizes(1, 2, 90, 50, future=True), "null mask"),
        (FUTURE, sizes(2, 1, 72, 72, future=True), "padded with -inf"),
        (FUTURE, sizes(1, 1, 300, 1028, future=True), "normal"),
        *((FUTURE, sizes(2, 2, 5, keys, future=True), "any mask with holes") for keys in kernels),
        *((FUTURE, sizes(2, 2, 5, keys, future=True), "null mask, rising scores") for keys in kernels),
        (OFFSET, sizes(1, 2, 3, 30), "offset 1000"),
        (OFFSET, sizes(1, 2, 3, 150), "offset 1000"),
        (OFFSET, sizes(1, 2, 3, 150), "offset -1000"),
        (OFFSET, sizes(1, 2, 3, 24), "offset -1000"),
        (OFFSET, sizes(1, 2, 3, 1100), "offset 1000"),
        (OFFSET, sizes(1, 2, 3, 600), "one huge element"),
        (OFFSET, sizes(1, 2, 3, 40), "wide"),
        (OFFSET, sizes(1, 2, 3, 65), "denormals"),
        (OFFSET, sizes(3, 1, 5, 512), "null mask, rising scores"),
        (MANY, sizes(4, 4, 66, 300), "normal"),
        (MANY, sizes(1, 1, 65_601, 3), "normal"),
        (MANY, sizes(3457, 61, 5, 2), "any mask"),
        (MANY, sizes(1, 1, 1030, 40), "normal"),
        (STREAMS, sizes(2, 2, 33, 70), "padded with -inf"),
        *((STREAMS, sizes(2, 2, 5, keys), "padded with -inf") for keys in kernels),
        (STREAMS, sizes(2, 2, 5, 512), "null mask"),
    ]
    return build_cases(seed, table)


def timing_cases(seed: int) -> tuple[Case, ...]:
    """Two launch-bound shapes and three that are larger than an L2 of 50 MB."""
    table = [
        ("small", sizes(2, 8, 64, 64), "padded with -inf"),
        ("small", sizes(32, 8, 40, 40), "padded with -inf"),
        ("large", sizes(8, 8, 512, 512), "padded with -inf"),
        ("large", sizes(4, 8, 1024, 1024), "padded with -inf"),
        ("large", sizes(2, 8, 1024, 1024, future=True), "padded with -inf"),
    ]
    return build_cases(seed, table)


def _masked(case: Case) -> bool:
    return not case.distribution.startswith("null mask")


def _zeros(_: np.random.Generator, batches: int, keys: int) -> Floats:
    return np.zeros((batches, keys), np.float32)


def _any_mask(random: np.random.Generator, batches: int, keys: int) -> Floats:
    return normal(random, (batches, keys), scale=3)


def _left_padded(random: np.random.Generator, batches: int, keys: int) -> Floats:
    """Hides the first keys of every sequence, of the first one half of them."""
    mask = _any_mask(random, batches, keys)
    hidden = random.integers(0, keys, size=batches)
    hidden[0] = keys // 2
    mask[np.arange(keys) < hidden[:, None]] = -np.inf
    return mask


def _with_holes(random: np.random.Generator, batches: int, keys: int) -> Floats:
    """Hides keys here and there, but never the first, which the future mask may leave alone visible."""
    mask = _any_mask(random, batches, keys)
    mask[random.random(mask.shape) < 0.3] = -np.inf
    mask[:, 0] = 0
    return mask


def _whole_rows(random: np.random.Generator, batches: int, keys: int, hidden: float) -> Floats:
    mask = padding(random, batches, keys, hidden)
    mask[1::2] = hidden
    return mask


_MASKS: Mapping[str, Callable[[np.random.Generator, int, int], Floats]] = {
    "padded with -inf": lambda random, batches, keys: padding(random, batches, keys, -np.inf),
    "padded with -1e8": lambda random, batches, keys: padding(random, batches, keys, -1e8),
    "any mask": _any_mask,
    LEFT: _left_padded,
    "any mask with holes": _with_holes,
    "whole rows at -1e8": lambda random, batches, keys: _whole_rows(random, batches, keys, -1e8),
    "fully masked rows": lambda random, batches, keys: _whole_rows(random, batches, keys, -np.inf),
}


def _far(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Scores whose largest one is anywhere, in half of the rows around 84 or -84, where exponentials end.

    The others of a row are close to it, or down to where they hardly weigh anything. None is below -1e8, with
    which the handout's own maximum begins.
    """
    rows = (*shape[:-1], 1)
    distance = np.where(
        random.random(rows) < 0.5, random.uniform(80, 90, rows), 10 ** random.uniform(2, 7.5, rows)
    )
    scores = normal(random, shape) * random.choice([0.1, 5.0], rows)
    largest = random.choice([-1.0, 1.0], rows) * distance
    return np.asarray(scores - scores.max(-1, keepdims=True) + largest, np.float32)


def _rising(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Scores of which later ones, which a future mask hides, are much larger."""
    return normal(random, shape, scale=2) + np.linspace(0, 400, shape[-1], dtype=np.float32)


_SCORES: Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "any mask with holes": _rising,
    "null mask, rising scores": _rising,
    "uniform": lambda random, shape: random.random(shape, np.float32),
    "offset 1000": lambda random, shape: normal(random, shape, scale=2, mean=1000),
    "offset -1000": lambda random, shape: normal(random, shape, scale=2, mean=-1000),
    "null mask, offset -1e5": lambda random, shape: normal(random, shape, scale=2, mean=-1e5),
    "one huge element": lambda random, shape: with_one_huge(random, normal(random, shape), 2000),
    "wide": lambda random, shape: normal(random, shape, scale=30),
    "denormals": lambda random, shape: normal(random, shape) * np.float32(1e-39),
    FAR: _far,
    **UNSAMPLED,
}


def inputs(case: Case) -> Inputs:
    """Scores [B, H, F, T] and the mask [B, T]."""
    random = generator(case.seed)
    shape = tuple(case.sizes[name] for name in ("batch_size", "nhead", "from_len", "to_len"))
    scores = _SCORES.get(case.distribution, normal)(random, shape)
    masks = _MASKS.get(case.distribution, _zeros)
    mask = masks(random, shape[0], shape[3]) if _masked(case) else None
    scalars = {name: case.sizes[name] for name in ("batch_size", "nhead", "from_len", "to_len")}
    return Inputs(
        arrays={"inp": scores, "attn_mask": mask},
        outputs={},
        scalars={**scalars, "mask_future": bool(case.sizes["mask_future"])},
    )


def _logits(data: Inputs) -> Array:
    """What a float32 kernel sees: inp + mask rounded to float32, -inf where the future mask hides."""
    logits = data.wide("inp")
    if data.arrays["attn_mask"] is not None:
        logits += data.wide("attn_mask")[:, None, None, :]
        logits = logits.astype(np.float32).astype(np.float64)  # exact: 53 bits are more than 2 x 24 + 2
    if data.scalars["mask_future"]:
        logits[..., _future(logits.shape[2], logits.shape[3])] = -np.inf
    return logits


def _future(queries: int, keys: int, diagonal: int = 1) -> NDArray[np.bool_]:
    """[F, T]: key j lies at least ``diagonal`` behind query i."""
    return np.triu(np.ones((queries, keys), np.bool_), k=diagonal)


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:  # noqa: ARG001 - the shape of a problem
    """The weights in float64; rows without a visible key may be zeros, uniform or NaN."""
    logits = _logits(data)
    masked = np.isneginf(logits).all(axis=-1, keepdims=True)
    shown = np.where(masked, 0.0, logits) if masked.any() else logits
    weights = torch.softmax(torch.from_numpy(shown), dim=-1).numpy()
    tolerance = _tolerance(shown, weights)
    if not masked.any():
        return {"inp": Expectation((Candidate(weights, tolerance),))}
    nothing = Candidate(np.where(masked, 0.0, weights), tolerance)
    nan = Candidate(np.where(masked, np.nan, weights), tolerance)
    return {"inp": Expectation((Candidate(weights, tolerance), nothing, nan))}


def _tolerance(logits: Array, weights: Array) -> Array:
    precision = bounds.PRECISIONS["float32"]
    unit = precision.unit
    top = logits.max(axis=-1, keepdims=True)
    distance = top - logits
    if not np.isfinite(distance).all():
        distance[np.isposinf(distance)] = 0.0
    error = bounds.exp_error(distance, unit)
    total = 1 / weights.max(axis=-1, keepdims=True)
    error += (
        np.einsum("...k,...k->...", weights, error)[..., None]
        + unit * (bounds.additions_of(weights, -1) + RESCALINGS)
        + unit * (bounds.QUOTIENT + np.log(total) + np.minimum(np.abs(top), LARGEST_OFFSET))
        + EPSILON / total
    )
    error *= weights
    return bounds.allowed(error, weights, precision)


def minimal_bytes(case: Case) -> int:
    """Every weight written, every visible score and the mask read once."""
    batch, heads, queries, keys = (case.sizes[name] for name in ("batch_size", "nhead", "from_len", "to_len"))
    visible = (
        sum(min(query + 1, keys) for query in range(queries)) if case.sizes["mask_future"] else queries * keys
    )
    mask = batch * keys if _masked(case) else 0
    return 4 * (batch * heads * (visible + queries * keys) + mask)


def rows(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """Some queries alone, each as a batch of its own; what the future mask hides goes into their masks."""
    scores, mask = data.arrays["inp"], data.arrays["attn_mask"]
    assert scores is not None
    batches, _, queries = np.unravel_index(index, scores.shape[:3])
    keys = scores.shape[3]
    masks = None if mask is None else mask[batches]
    if data.scalars["mask_future"]:
        shown = np.zeros((index.size, keys), np.float32) if masks is None else masks
        masks = np.where(np.arange(keys) > queries[:, None], np.float32(-np.inf), shown)
    return Inputs(
        arrays={"inp": scores.reshape(-1, 1, 1, keys)[index], "attn_mask": masks},
        outputs={},
        scalars={
            "batch_size": index.size,
            "nhead": 1,
            "from_len": 1,
            "to_len": keys,
            "mask_future": False,
        },
    )


def count_rows(case: Case) -> int:
    """The number of rows: all queries of all heads in all batches."""
    return math.prod(case.sizes[name] for name in ("batch_size", "nhead", "from_len"))


def elements(sizes: Mapping[str, int]) -> int:
    """The elements of the scores, of which the mask has fewer; a short row counts as ``LEAST_ROW``."""
    rows = math.prod(sizes[name] for name in ("batch_size", "nhead", "from_len"))
    return rows * max(LEAST_ROW, sizes["to_len"])


def allows(sizes: Mapping[str, int], distribution: str) -> bool:
    """Under the future mask the first queries see the first keys alone: the other mask must leave them."""
    return not (sizes["mask_future"] and distribution in HIDES_FIRST)


SPACE = Space(
    ranges={
        "batch_size": Range(1, 1 << 12),
        "nhead": Range(1, 64),
        "from_len": Range(1, 1 << 20),
        "to_len": Range(1, 2048),
        "mask_future": Range(0, 1),
    },
    distributions=(*dict.fromkeys(case.distribution for case in cases(0)), FAR, *UNSAMPLED),
    elements=elements,
    case=build_case,
    allows=allows,
    alike=("normal", "null mask", "padded with -inf", "any mask"),
    products={"rows": ("batch_size", "nhead", "from_len")},
)


def fused(arrays: Mapping[str, torch.Tensor], scalars: Mapping[str, float]) -> Callable[[], object]:
    """The masks added, and PyTorch's softmax."""
    scores = arrays["inp"]
    mask = arrays["attn_mask"][:, None, None, :] if "attn_mask" in arrays else None
    if scalars["mask_future"]:
        future = torch.zeros(scores.shape[-2:], device=scores.device).fill_(-torch.inf).triu(1)
        mask = future if mask is None else mask + future
    return lambda: torch.softmax(scores if mask is None else scores + mask, -1)


def _softmax(logits: Array) -> Array:
    return torch.softmax(torch.from_numpy(logits), dim=-1).numpy()


def _changed(change: Callable[[Inputs], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
    return lambda data: {"inp": change(data)}


def _without_mask(data: Inputs) -> Array:
    return _softmax(_logits(Inputs({**data.arrays, "attn_mask": None}, data.outputs, data.scalars)))


def _mask_of_first_batch(data: Inputs) -> Array:
    mask = data.arrays["attn_mask"]
    first = None if mask is None else np.broadcast_to(mask[:1], mask.shape)
    return _softmax(_logits(Inputs({**data.arrays, "attn_mask": first}, data.outputs, data.scalars)))


def _mask_subtracted(data: Inputs) -> Array:
    mask = data.arrays["attn_mask"]
    turned = None if mask is None else -data.wide("attn_mask").astype(np.float32)
    return _softmax(_logits(Inputs({**data.arrays, "attn_mask": turned}, data.outputs, data.scalars)))


def _without_future(data: Inputs) -> Array:
    return _softmax(_logits(Inputs(data.arrays, data.outputs, {**data.scalars, "mask_future": False})))


def _future_shifted(data: Inputs, diagonal: int) -> Array:
    logits = _logits(Inputs(data.arrays, data.outputs, {**data.scalars, "mask_future": False}))
    if data.scalars["mask_future"]:
        logits[..., _future(logits.shape[2], logits.shape[3], diagonal)] = -np.inf
    return _softmax(logits)


def _past_hidden(data: Inputs) -> Array:
    logits = _logits(Inputs(data.arrays, data.outputs, {**data.scalars, "mask_future": False}))
    if data.scalars["mask_future"]:
        logits[..., np.tril(np.ones(logits.shape[2:], np.bool_), k=-1)] = -np.inf
    return _softmax(logits)


def _future_always(data: Inputs) -> Array:
    return _softmax(_logits(Inputs(data.arrays, data.outputs, {**data.scalars, "mask_future": True})))


def _exponentials(data: Inputs) -> Array:
    logits = _logits(data)
    return np.asarray(np.exp(logits - logits.max(axis=-1, keepdims=True)))


def _without_last(data: Inputs) -> Array:
    exponentials = _exponentials(data)
    return np.asarray(exponentials / exponentials[..., :-1].sum(axis=-1, keepdims=True))


def _without_maximum(data: Inputs) -> Array:
    powers = np.exp(_logits(data).astype(np.float32))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float64)


def _maximum_from_zero(data: Inputs) -> Array:
    logits = _logits(data)
    powers = np.exp((logits - logits.max(axis=-1, keepdims=True).clip(min=0)).astype(np.float32))
    return np.asarray(powers / (powers.sum(axis=-1, keepdims=True) + np.float32(EPSILON)), np.float64)


def _maximum_of_magnitudes(data: Inputs) -> Array:
    logits = _logits(data)
    powers = np.exp((logits - np.abs(logits).max(axis=-1, keepdims=True)).astype(np.float32))
    return np.asarray(powers / (powers.sum(axis=-1, keepdims=True) + np.float32(EPSILON)), np.float64)


def _base_two(data: Inputs) -> Array:
    return _softmax(_logits(data) * np.log(2))


def _scaled(data: Inputs, divisor: float) -> Array:
    return _softmax(_logits(data) / np.sqrt(divisor))


def _own_maxima(data: Inputs, threads: int) -> tuple[Array, Array]:
    """The logits and, for each of them, the largest logit that the same thread has of ``threads``."""
    logits = _logits(data)
    maxima = np.full_like(logits, -np.inf)
    for thread in range(min(threads, logits.shape[-1])):
        elements = logits[..., thread::threads]
        maxima[..., thread::threads] = elements.max(axis=-1, keepdims=True)
    return logits, maxima.clip(min=LOWEST)


def _local_maxima_in_sum(data: Inputs, threads: int) -> Array:
    """Each thread's sum is relative to its own maximum, and they are added up as they are."""
    logits, maxima = _own_maxima(data, threads)
    return np.asarray(_exponentials(data) / np.exp(logits - maxima).sum(axis=-1, keepdims=True))


def _local_maximum_in_weights(data: Inputs, threads: int) -> Array:
    """The sum is relative to the maximum of the row, and each weight to that of its thread."""
    logits, maxima = _own_maxima(data, threads)
    return np.asarray(np.exp(logits - maxima) / _exponentials(data).sum(axis=-1, keepdims=True))


def _running_maximum(data: Inputs, threads: int) -> Array:
    """Online softmax whose threads do not rescale what they have when their maximum grows."""
    logits = _logits(data)
    largest = logits.max(axis=-1, keepdims=True).clip(min=LOWEST)
    total = np.zeros_like(largest)
    for thread in range(min(threads, logits.shape[-1])):
        elements = logits[..., thread::threads]
        running = np.maximum.accumulate(elements, axis=-1).clip(min=LOWEST)
        partial_sum = np.exp(elements - running).sum(axis=-1, keepdims=True)
        total += partial_sum * np.exp(running[..., -1:] - largest)
    return np.asarray(_exponentials(data) / total)


_ONLINE: Mapping[str, Callable[[Inputs, int], Array]] = {
    "each exponential of the sum is taken with the maximum so far: scale down what was added before": (
        _running_maximum
    ),
    "the sum is taken with each thread's own maximum, the weights with the row's: scale the threads' sums": (
        _local_maxima_in_sum
    ),
    "the weights are taken with each thread's own maximum, their sum with the row's": (
        _local_maximum_in_weights
    ),
}
"""What goes wrong where maximum and sum are taken in one pass, by the number of threads of a row."""


def _future_by_fours(data: Inputs) -> Array:
    """The future mask hides a group of four keys as a whole, or not at all."""
    logits = _logits(Inputs(data.arrays, data.outputs, {**data.scalars, "mask_future": False}))
    if data.scalars["mask_future"]:
        queries, keys = logits.shape[2:]
        hidden = np.arange(keys)[None, :] // 4 * 4 > np.arange(queries)[:, None]
        logits[..., hidden] = -np.inf
    return _softmax(logits)


def _mask_as_flag(data: Inputs) -> Array:
    mask = data.arrays["attn_mask"]
    logits = _logits(Inputs({**data.arrays, "attn_mask": None}, data.outputs, data.scalars))
    if mask is not None:
        logits = np.where(mask[:, None, None, :] != 0, np.minimum(logits, -1e8), logits)
    return _softmax(logits)


def _future_from_the_end(data: Inputs) -> Array:
    queries, keys = data.arrays["inp"].shape[2:] if data.arrays["inp"] is not None else (0, 0)
    return _future_shifted(data, 1 + keys - queries)


def _future_of_row(data: Inputs) -> Array:
    """The future mask with the row of the whole tensor in place of the query."""
    logits = _logits(Inputs(data.arrays, data.outputs, {**data.scalars, "mask_future": False}))
    if data.scalars["mask_future"]:
        rows = logits.reshape(-1, logits.shape[-1])
        rows[_future(*rows.shape)] = -np.inf
    return _softmax(logits)


def _twice(data: Inputs) -> Array:
    once = _softmax(_logits(data)).astype(np.float32)
    return _softmax(_logits(Inputs({**data.arrays, "inp": once}, data.outputs, data.scalars)))


def _maximum_in_sum_only(data: Inputs) -> Array:
    logits = _logits(data)
    return np.asarray(
        np.exp(logits) / np.exp(logits - logits.max(axis=-1, keepdims=True)).sum(-1, keepdims=True)
    )


def _log_softmax(data: Inputs) -> Array:
    return torch.log_softmax(torch.from_numpy(_logits(data)), dim=-1).numpy()


def _epsilon(data: Inputs, epsilon: float) -> Array:
    exponentials = _exponentials(data)
    return np.asarray(exponentials / (exponentials.sum(axis=-1, keepdims=True) + epsilon))


def unfused(case: Case) -> tuple[Operation, ...]:
    """Add the mask, hide the future, maximum, subtract, exp, sum, divide."""
    batch, heads, queries, keys = (case.sizes[name] for name in ("batch_size", "nhead", "from_len", "to_len"))
    program: list[Operation] = []
    logits = dense("inp", batch, heads, queries, keys)
    if _masked(case):
        program.append(zipped("logits", "add", logits, dense("attn_mask", batch, 1, 1, keys)))
        logits = program[-1].output
    if case.sizes["mask_future"]:
        program.append(mapped("visible", "hide future", logits))
        logits = program[-1].output
    largest = reduced("largest", "max", logits, axis=3)
    shifted = zipped("shifted", "subtract", logits, largest.output)
    exponential = mapped("exponential", "exp", shifted.output)
    total = reduced("total", "sum", exponential.output, axis=3)
    weights = zipped("inp", "divide", exponential.output, total.output)
    return (*program, largest, shifted, exponential, total, weights)


PROBLEM = KernelProblem(
    id="softmax_forward",
    file="softmax_kernel.cu",
    entry_point="launch_attn_softmax",
    parameters=(
        ArrayParameter("inp", Role.INOUT),
        ArrayParameter("attn_mask", Role.INPUT),
        ScalarParameter("batch_size", "int"),
        ScalarParameter("nhead", "int"),
        ScalarParameter("from_len", "int"),
        ScalarParameter("to_len", "int"),
        ScalarParameter("mask_future", "bool"),
        StreamParameter("stream"),
    ),
    groups=(*GROUPS, MAGNITUDES),
    cases=with_grid(cases, SPACE),
    timing_cases=timing_cases,
    inputs=inputs,
    oracle=oracle,
    minimal_bytes=minimal_bytes,
    unfused=unfused,
    slices=(Slices(("inp",), count_rows, rows),),
    turning=("inp", "attn_mask"),
    fused=fused,
    space=SPACE,
    bugs={
        "the mask is not added": _changed(_without_mask),
        "the mask of batch 0 is added to every batch": _changed(_mask_of_first_batch),
        "the mask is subtracted instead of added": _changed(_mask_subtracted),
        "the future mask is not applied": _changed(_without_future),
        "the future mask is applied although mask_future is false": _changed(_future_always),
        "the future mask is shifted by one: key j = i, the query itself, is hidden too": _changed(
            lambda data: _future_shifted(data, 0)
        ),
        "the future mask is shifted by one: key j = i + 1 is still visible": _changed(
            lambda data: _future_shifted(data, 2)
        ),
        "the future mask hides the past (j < i) instead of the future (j > i)": _changed(_past_hidden),
        "the division by the sum of the exponentials is missing": _changed(_exponentials),
        "the maximum is not subtracted, so the exponentials overflow or vanish": _changed(_without_maximum),
        "the maximum starts at 0, not at -infinity, or is not subtracted: rows far below 0 vanish": _changed(
            _maximum_from_zero
        ),
        "the maximum is of magnitudes: rows below 0 vanish, and all with a hidden key": _changed(
            _maximum_of_magnitudes
        ),
        "the last key is missing in the sum of the exponentials": _changed(_without_last),
        "the exponential has base 2 instead of e": _changed(_base_two),
        "the mask is taken for true or false, not added": _changed(_mask_as_flag),
        "the future mask counts from the last key, not from the first": _changed(_future_from_the_end),
        "the future mask takes the row of the whole tensor for the query": _changed(_future_of_row),
        "applied twice: the second time reads what the first has written": _changed(_twice),
        "the maximum is subtracted in the denominator but not in the numerator": _changed(
            _maximum_in_sum_only
        ),
        "this is the logarithm of the softmax": _changed(_log_softmax),
        "the future mask hides groups of four keys as a whole: some later keys are still visible": _changed(
            _future_by_fours
        ),
        **{
            f"the scores are divided by sqrt({size}), which is the caller's business": _changed(
                partial(_scaled, divisor=size)
            )
            for size in (32, 64, 128)
        },
        **{
            f"{text} ({threads} threads)": _changed(partial(wrong, threads=threads))
            for threads in (32, 64, 128, 256)
            for text, wrong in _ONLINE.items()
        },
        "epsilon is too large: 1e-3 instead of 1e-8": _changed(lambda data: _epsilon(data, 1e-3)),
        "epsilon is too large: 1e-5 instead of 1e-8": _changed(lambda data: _epsilon(data, 1e-5)),
    },
)
