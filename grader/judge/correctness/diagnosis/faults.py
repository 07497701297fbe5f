"""Faults of any kernel that reads rows and reduces them: what a problem's program gives with each of them.

Threads that share a row each own some of its columns: thread t of T owns every T-th group of one column, or
of the four of a ``float4``. A reduction that is incomplete gives a thread, a warp or everybody a part of the
whole, which follows from who owns what.

Layer: imports numpy, the program and the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from grader.judge.correctness.diagnosis.evidence import WARP, WIDTHS, Likeness, match
from grader.judge.correctness.diagnosis.programs import row_result

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.judge.correctness.comparison import Comparison
    from grader.judge.correctness.diagnosis.evidence import Evidence, Match
    from grader.judge.correctness.diagnosis.programs import Array, Reduction, Steps

    InHand = Callable[[Array, np.ufunc], Array]

TRIED_ELEMENTS = 1 << 12  # of some rows: there are hundreds of faults
MOST_TRIED_ELEMENTS = 1 << 15  # in all: a fault is there in smaller cases, too
THREADS = (32, 64, 128, 256, 512, 1024, 96, 192, 384, 768, 48, 16, 8, 4, 2)  # that may share a row
PLACES = (1, 4, 32, 64, 128, 256, 512, 1024, 2048, 4096)  # columns by which an index may be wrong
MOST_THREADS = 1024  # of a block
LEAST_COLUMNS = 8  # of fewer, any number is near to what some fault makes
SURE = Likeness(only_wrong_rows=False, rest=0.003)  # nearer than this, no other fault is looked for
COMMONER = 1000  # bugs of a problem come before
GROUPS = (2, 4, 8, 16, 32)  # rows of a block or of a warp
ONES = (
    "columns past the end of a row count as ones in a reduction: does a value begin with 1, or is it exp(0)?"
)
"""A rare fault, which has to explain all that is wrong, where no other does so."""
COMPONENTS = ("first", "second", "third", "last")  # of a float4
ROUNDED = (32, 64, 128, 256, 512, 1024, 2048)  # what the columns of a row may be rounded up to


@dataclass(frozen=True)
class Layout:
    """Which of ``threads`` owns which column, ``width`` neighbours at a time."""

    threads: int
    width: int

    def chunks(self, values: Array, combine: np.ufunc) -> Array:
        """[..., turn, thread, column of the thread's], what is past the end has no effect."""
        turns = -(-values.shape[-1] // (self.threads * self.width))
        shape = (*values.shape[:-1], turns * self.threads * self.width)
        padded = np.full(shape, _start(combine))
        padded[..., : values.shape[-1]] = values
        return padded.reshape(*values.shape[:-1], turns, self.threads, self.width)

    def reduction(self, in_hand: InHand) -> Reduction:
        """The reduction after which thread t has in its hands ``in_hand(chunks, combine)[..., t]``."""

        def reduce(values: Array, combine: np.ufunc) -> Array:
            held = in_hand(self.chunks(values, combine), combine)
            if held.shape[-1] == 1:
                return held
            return held[..., np.arange(values.shape[-1]) // self.width % self.threads]

        return reduce

    def __str__(self) -> str:
        """How the text of a fault names it."""
        return (
            f"{self.threads} threads, {self.width} columns each"
            if self.width > 1
            else f"{self.threads} threads"
        )


def _start(combine: np.ufunc) -> float:
    return 0.0 if combine is np.add else -np.inf


def _by_thread(chunks: Array, combine: np.ufunc) -> Array:
    """What each thread has from its own columns."""
    return np.asarray(combine.reduce(combine.reduce(chunks, axis=-1), axis=-2))


def _first_components(chunks: Array, combine: np.ufunc) -> Array:
    return row_result(combine.reduce(chunks[..., 0], axis=-2), combine)


def _of_components(components: Sequence[int]) -> InHand:
    """Of the numbers of each vector only these count, some of them perhaps twice."""

    def in_hand(chunks: Array, combine: np.ufunc) -> Array:
        return row_result(combine.reduce(combine.reduce(chunks[..., components], axis=-1), axis=-2), combine)

    return in_hand


def _warps(held: Array, combine: np.ufunc) -> Array:
    """What the threads hold, with the axes [..., warp, lane]; the last warp is filled up."""
    lanes = np.full((*held.shape[:-1], -(-held.shape[-1] // WARP) * WARP), _start(combine))
    lanes[..., : held.shape[-1]] = held
    return lanes.reshape(*held.shape[:-1], -1, WARP)


def _own_warp(chunks: Array, combine: np.ufunc) -> Array:
    held = _by_thread(chunks, combine)
    lanes = row_result(_warps(held, combine), combine)
    return np.repeat(lanes[..., 0], WARP, axis=-1)[..., : held.shape[-1]]


def _own_warp_twice(chunks: Array, combine: np.ufunc) -> Array:
    """The whole beside what the warp had before that was added to it."""
    return np.asarray(combine(row_result(_by_thread(chunks, combine), combine), _own_warp(chunks, combine)))


def _own_part_twice(chunks: Array, combine: np.ufunc) -> Array:
    """The whole beside what the thread had before that was added to it."""
    held = _by_thread(chunks, combine)
    return np.asarray(combine(row_result(held, combine), held))


def _first_warp(chunks: Array, combine: np.ufunc) -> Array:
    return row_result(_by_thread(chunks, combine)[..., :WARP], combine)


def _first_lane(chunks: Array, combine: np.ufunc) -> Array:
    """The first lane has the result, the others what ``__shfl_down_sync`` leaves them."""
    return shuffled_down(_by_thread(chunks, combine), combine)


def shuffled_down(lanes: Array, combine: np.ufunc) -> Array:
    """What ``__shfl_down_sync`` with ever smaller steps leaves in each lane."""
    offset = lanes.shape[-1] // 2
    while offset > 0:
        theirs = lanes.copy()
        theirs[..., :-offset] = lanes[..., offset:]
        lanes = combine(lanes, theirs)
        offset //= 2
    return lanes


def _warps_first(rest: InHand) -> InHand:
    """The first warp has the whole, the others have ``rest``."""

    def in_hand(chunks: Array, combine: np.ufunc) -> Array:
        held = np.broadcast_to(rest(chunks, combine), (*chunks.shape[:-3], chunks.shape[-2])).copy()
        held[..., :WARP] = row_result(_by_thread(chunks, combine), combine)
        return held

    return in_hand


def _lanes_first(chunks: Array, combine: np.ufunc) -> Array:
    """The first lane of each warp has the whole, the others what the warps' results leave them."""
    warps = row_result(_warps(_by_thread(chunks, combine), combine), combine)[..., 0]
    lanes = np.full((*warps.shape[:-1], WARP), _start(combine))
    lanes[..., : warps.shape[-1]] = warps
    return np.tile(shuffled_down(lanes, combine), warps.shape[-1])[..., : chunks.shape[-2]]


def _thread_first(chunks: Array, combine: np.ufunc) -> Array:
    """The first warp has what ``_lanes_first`` gives; the lanes of other warps keep what they had before."""
    held = shuffled_down(_warps(_by_thread(chunks, combine), combine), combine)
    held[..., 0, :] = _lanes_first(chunks, combine)[..., :WARP]
    return held.reshape(*held.shape[:-2], -1)[..., : chunks.shape[-2]]


def _nothing(_: Array, combine: np.ufunc) -> Array:
    return np.array([_start(combine)])


def _without_neighbours(chunks: Array, combine: np.ufunc) -> Array:
    """The last step of a butterfly is missing: even lanes and odd ones keep to themselves."""
    held = _by_thread(chunks, combine)
    if held.shape[-1] > WARP:
        return row_result(held[..., ::2], combine)
    pair = [row_result(held[..., parity::2], combine) for parity in range(2)]
    return np.tile(np.concatenate(pair, axis=-1), held.shape[-1] // 2)


def _without_halves(chunks: Array, combine: np.ufunc) -> Array:
    """The first step is missing: each half of the threads, or of a warp, keeps to itself."""
    held = _by_thread(chunks, combine)
    if held.shape[-1] > WARP:
        return row_result(_warps(held, combine)[..., : WARP // 2].reshape(*held.shape[:-1], -1), combine)
    half = held.shape[-1] // 2
    pair = [row_result(part, combine) for part in (held[..., :half], held[..., half:])]
    return np.repeat(np.concatenate(pair, axis=-1), half, axis=-1)


def _halved(chunks: Array, combine: np.ufunc) -> Array:
    """A tree that halves the number of threads, rounded down, until one is left."""
    slots = _by_thread(chunks, combine)
    half = slots.shape[-1] // 2
    while half > 0:
        slots[..., :half] = combine(slots[..., :half], slots[..., half : 2 * half])
        half //= 2
    return slots[..., :1]


_HAND_ON = "hand it to every thread, through shared memory"
_SET = "only the last column of each thread counts: is it set (=) where it should be added to (+=)?"
_ONCE = "only the first column of each thread counts: a loop over the row is missing"
_TREE = "a tree loses some of the threads: it halves a number of threads that is no power of two"
_OF_BLOCKS: Mapping[str, InHand] = {
    "one warp's result is used for the whole block, or a loop takes steps that are too large: add up the "
    "results of all warps, and compare the step with the number of threads": _first_warp,
    "each warp uses a result of its own: the results of the warps are not combined": _own_warp,
    "each warp counts its own part of a sum twice: set the variable to 0 before the parts of all warps are "
    "added to it": _own_warp_twice,
    f"only the first warp gets the result of a reduction, the others keep that of their own: {_HAND_ON}": (
        _warps_first(_own_warp)
    ),
    f"only the first warp gets the result of a reduction, the others keep each thread's own: {_HAND_ON}": (
        _warps_first(_by_thread)
    ),
    "only the first warp gets the result of a reduction, the others 0 or a variable that is never set: "
    f"{_HAND_ON}": (_warps_first(_nothing)),
    f"only the first thread gets the result of a reduction: {_HAND_ON}": _thread_first,
    f"only the first lane of each warp gets the result of a reduction: {_HAND_ON}": _lanes_first,
}
_OF_GROUPS: Mapping[str, InHand] = {
    "each thread uses a result of its own: a reduction over threads is missing, or its result stays with "
    "the first thread": _by_thread,
    "each thread counts its own part of a sum twice: set the variable to the sum of all threads, and do not "
    "add that to it": _own_part_twice,
    "a reduction over threads lacks the step between neighbours: even and odd threads are not combined": (
        _without_neighbours
    ),
    "a reduction over threads lacks its first step: two halves of the threads are not combined": (
        _without_halves
    ),
}
_OF_WARPS: Mapping[str, InHand] = {
    "only the first lane of a warp gets the result of __shfl_down_sync: use __shfl_xor_sync, or hand it on": (
        _first_lane
    )
}


def layouts(columns: int) -> Iterator[Layout]:
    """Who may own which column of a row; of those in which a thread has one turn, the smallest alone."""
    for width in (elements for elements in WIDTHS if columns % elements == 0):
        needed = -(-columns // width)
        yield from (Layout(threads, width) for threads in THREADS if threads < needed)
        yield Layout(needed, width)
        if needed % WARP:
            yield Layout(-(-needed // WARP) * WARP, width)


def reductions(columns: int) -> Iterator[tuple[str, Reduction]]:
    """Reductions that give less than the whole of a row, and what is wrong with them."""
    for layout in layouts(columns):
        for text, in_hand in _of(layout).items():
            yield f"{text} ({layout})", layout.reduction(in_hand)
    for layout in layouts(columns):
        turn = layout.threads * layout.width
        if turn < columns:
            yield f"{_SET} ({layout})", _of_some(slice(columns - turn, columns))
            yield f"{_ONCE} ({layout})", _of_some(slice(0, turn))
    if columns % len(COMPONENTS) == 0:
        yield from _of_vectors(Layout(columns // len(COMPONENTS), len(COMPONENTS)))
    for count in dict.fromkeys((columns - 1, columns // WARP * WARP, columns - WARP + 1, *ROUNDED)):
        if 0 < count < columns:
            yield (
                f"a reduction is over the first {count} of {columns} columns only",
                _of_some(slice(0, count)),
            )
    yield "a maximum starts at 0, so that rows below 0 get 0", _from_zero
    for group in GROUPS:
        yield f"{group} rows get what the first of them was reduced to", _of_first_row(group)


def _of_vectors(layout: Layout) -> Iterator[tuple[str, Reduction]]:
    """What can go wrong with the numbers of a ``float4``, of which each thread has one."""
    yield "only the first of the four numbers of each float4 counts", layout.reduction(_first_components)
    for number, word in enumerate(COMPONENTS):
        others = [each for each in range(len(COMPONENTS)) if each != number]
        text = f"the {word} of the four numbers of each float4 does not count"
        yield text, layout.reduction(_of_components(others))
        for twice in others:
            instead = f"{text}, and the {COMPONENTS[twice]} counts twice"
            yield instead, layout.reduction(_of_components([*others, twice]))


def _of(layout: Layout) -> Mapping[str, InHand]:
    """What can go wrong where threads share a row in this way."""
    kinds: dict[str, InHand] = {}
    power, warps = layout.threads & (layout.threads - 1) == 0, layout.threads % WARP == 0
    if warps and WARP < layout.threads <= MOST_THREADS:
        kinds |= _OF_BLOCKS
    if warps or power:
        kinds |= _OF_GROUPS
    if power and layout.threads <= WARP:
        kinds |= _OF_WARPS
    return kinds if power else {**kinds, _TREE: _halved}


def _of_some(columns: slice) -> Reduction:
    return lambda values, combine: row_result(values[..., columns], combine)


def _from_zero(values: Array, combine: np.ufunc) -> Array:
    return (
        np.maximum(row_result(values, combine), 0) if combine is np.maximum else row_result(values, combine)
    )


def _of_first_row(group: int) -> Reduction:
    def reduce(values: Array, combine: np.ufunc) -> Array:
        result = row_result(values, combine)
        rows = np.arange(result.size)
        return np.asarray(result.ravel()[rows // group * group].reshape(result.shape))

    return reduce


def readings(steps: Steps) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """Inputs that are read in a wrong place, and what is wrong with them."""
    for name, array in steps.arrays.items():
        columns = array.shape[-1]
        column = np.arange(columns)
        for behind in (distance for distance in PLACES if distance < columns):
            source = np.where(column < behind, column, column - behind)
            text = f"{name} is read {behind} columns too early, from column {behind} on"
            yield text, {name: array[..., source]}
        whole = steps.source(name)
        if whole.ndim == 1:  # a single row, of which this may be a part
            continue
        rows = whole.reshape(-1, columns)
        row = steps.row_numbers(whole.shape)
        for group in (size for size in GROUPS if size < len(rows)):
            text = f"{name} is read from the first of {group} rows for all of them"
            yield text, {name: rows[row // group * group]}
        if len(rows) > 1:
            yield f"{name} is read from the row before", {name: rows[row - 1]}
            yield f"{name} is read from the first row for all rows", {name: array * 0 + rows[0]}


def misplaced_rows(steps: Steps, sizes: Mapping[str, int]) -> Iterator[tuple[str, Steps]]:
    """Rows whose number follows from another size than theirs: of an input, and of what hides the future."""
    columns = steps.shape[-1]
    row = steps.row_numbers(steps.shape)
    for name, whole in ((name, steps.source(name)) for name in steps.arrays):
        count = prod(whole.shape[:-1])
        if whole.shape[-1] != columns or count == 1:
            continue
        flat, own_row = whole.ravel(), steps.row_numbers(whole.shape)
        for length, names in _by_value(sizes).items():
            if length != columns and (count - 1) * length + columns <= flat.size:
                text = f"{name} is read at row * {names} + column, but its rows have {columns} columns"
                read = flat[own_row[..., None] * length + np.arange(columns)]
                yield text, replace(steps, arrays={**steps.arrays, name: read})
        if whole.shape == steps.shape:
            continue
        for formula, numbers in _of_row(row, sizes):
            if numbers.max() < count:
                read = whole.reshape(-1, columns)[numbers]
                text = f"{name} is read in row {formula}, where r is a row of the whole tensor"
                yield text, replace(steps, arrays={**steps.arrays, name: read})
    if any(operation.function == "hide future" for operation in steps.program):
        for formula, queries in _of_row(row, sizes):
            text = f"the future is hidden behind key {formula}, where r is a row of the whole tensor"
            yield text, replace(steps, queries=queries)


def _by_value(sizes: Mapping[str, int]) -> dict[int, str]:
    """The names of sizes by their values, which are larger than 1."""
    values = dict.fromkeys(value for value in sizes.values() if value > 1)
    names = {value: [name for name in sizes if sizes[name] == value] for value in values}
    return {value: f"({' or '.join(same)})" if len(same) > 1 else same[0] for value, same in names.items()}


def _of_row(row: NDArray[np.intp], sizes: Mapping[str, int]) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Numbers that a kernel may work out of the number of a row."""
    for value, names in _by_value(sizes).items():
        yield f"r % {names}", row % value
        yield f"r / {names}", row // value


def skipped_columns(steps: Steps) -> Iterator[tuple[str, Steps]]:
    """Steps of a kernel that works in place and leave the last columns of each row as they were."""
    columns, program = steps.shape[-1], steps.program
    if program[-1].output.name not in steps.arrays:
        return
    counts = (columns - 1, columns // WARP * WARP, *(columns // size * size for size in ROUNDED))
    loops = sorted(combinations(range(len(program) + 1), 2), key=lambda loop: loop[1] - loop[0])
    for begin, end in loops:
        names = ", ".join(operation.function for operation in program[begin:end])
        for count in dict.fromkeys(count for count in counts if 0 < count < columns):
            text = f"columns from {count} on are left out of a loop over the row ({names})"
            yield text, replace(steps, left_out=(range(begin, end), count))


def padded(steps: Steps) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """Inputs with zeros or ones behind the last column, which threads without a column may count."""
    columns = steps.shape[-1]
    for size in dict.fromkeys(-(-columns // multiple) * multiple for multiple in ROUNDED):
        for value in (0, 1) if size > columns else ():
            more = {
                name: np.concatenate([array, np.full((*array.shape[:-1], size - columns), value)], axis=-1)
                for name, array in steps.arrays.items()
                if array.shape[-1] == columns
            }
            yield (ONES if value else "columns past the end of a row count as zeros in a reduction"), more


def variations(steps: Steps, sizes: Mapping[str, int]) -> Iterator[tuple[str, Steps]]:
    """``steps`` with one fault each, the commonest first; ``sizes`` of the case have their names."""
    reductions_of_rows = steps.reductions
    wherever = [
        reductions_of_rows,
        *((index,) for index in reductions_of_rows if len(reductions_of_rows) > 1),
    ]
    for text, faulty in reductions(steps.shape[-1]):
        for some in wherever:
            yield text, replace(steps, faulty=dict.fromkeys(some, faulty))
    for text, arrays in (*padded(steps), *readings(steps)):
        yield text, replace(steps, arrays={**steps.arrays, **arrays})
    yield from misplaced_rows(steps, sizes)
    yield from skipped_columns(steps)


def matches(
    ways: Sequence[Steps],
    evidence: Mapping[str, Evidence],
    right: Mapping[str, Comparison],
    sizes: Mapping[str, int],
) -> list[Match]:
    """The faults that outputs follow in the rows around the first wrong one; ``right`` outputs should stay.

    None is looked for any more behind one that explains all that a program gives row by row.
    """
    matching: list[Match] = []
    for steps in ways:
        candidates = {
            name: output_evidence
            for name, output_evidence in evidence.items()
            if len(output_evidence.actual) == steps.shape[0]
        }
        if not candidates or steps.shape[-1] < LEAST_COLUMNS:
            continue
        window = _from_first_wrong(candidates.values(), steps.shape)
        parts = {
            name: part
            for name, output_evidence in candidates.items()
            if (part := output_evidence.part(window)).wrong.any()
        }
        if sum(part.actual.size for part in parts.values()) > MOST_TRIED_ELEMENTS:
            continue
        for number, (text, faulty) in enumerate(variations(steps.part(window), sizes)):
            predicted = faulty.outputs()
            if (formula := match(parts, predicted, COMMONER + number, text)) is None:
                continue
            spoilt = sum(not _stays(predicted.get(name), other, window) for name, other in right.items())
            unexplained = len(evidence) - len(formula.names)
            matching.append(replace(formula, unexplained=unexplained, spoilt=spoilt))
            sure = len(formula.names) == len(parts) and not spoilt and formula.likeness < SURE
            if sure and text != ONES:
                return usual(matching)
            if text == ONES and not sure:
                matching.pop()
    return usual(matching)


def usual(matching: Sequence[Match]) -> list[Match]:
    """Without the rare fault, unless it explains more than every other one."""
    if matching and min(matching).text == ONES:
        return list(matching)
    return [each for each in matching if each.text != ONES]


def _stays(predicted: Array | None, right: Comparison, window: tuple[slice, ...]) -> bool:
    """Whether a fault leaves an output right, of which it gives a part, or does not touch it."""
    here = window[: right.expected.ndim]
    expected = right.expected[here]
    if predicted is None or predicted.size != expected.size:
        return True
    return bool((np.abs(predicted.reshape(expected.shape) - expected) <= 4 * right.bound[here]).all())


def _from_first_wrong(evidence: Collection[Evidence], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Indices of the leading axes, as many as are quickly tried, from about the first wrong one on.

    Axes before the last two, of which a mask may tell the indices apart, or the first of two.
    """
    largest = max(evidence, key=lambda output_evidence: output_evidence.wrong.size)
    first = np.argwhere(largest.wrong)[0]
    window: list[slice] = []
    for axis in range(max(1, len(shape) - 2)):
        count = max(1, TRIED_ELEMENTS // prod(shape[axis + 1 :]))
        begin = int(first[axis])
        group = max(size for size in (1, *GROUPS) if size <= count)
        window.append(slice(begin - begin % group, begin - begin % group + count))
        if count > 1:
            break
    return tuple(window)
