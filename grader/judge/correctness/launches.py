"""Watches the launches of a model in one call, which the judge makes for it.

The runner of a model has no device: it sends the judge what its file hands to a launcher, and gets what the
launcher wrote. So the judge sees the inputs and outputs of each launch, and no code of the submission has a
say in them. It looks at three things:

* Is what a launcher wrote right for what it was given? That is a question to the oracle of its own problem.
* Is it what the model has there? The oracle of the model problem expects it (``grader.problems.written``).
  Rows are found by their content, so that a model may launch on reshaped, split or padded tensors.
* Are the results of the model made of it? Where a case is marked, each element is multiplied by a factor
  of its own, which this process alone knows, before the model gets it.

Layer: imports the comparison, the devices' calls and the problems.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import ArrayArgument, ScalarArgument
from grader.devices.models import too_rarely
from grader.judge.correctness.comparison import compare
from grader.problems import written
from grader.problems.problem import ArrayParameter, Inputs, Role, ScalarParameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from grader.devices.device import Argument
    from grader.problems.problem import Case, Expectation, KernelProblem, ModelProblem, Scalar

    Arrays = Mapping[str, NDArray[np.generic]]
    Mask = NDArray[np.bool_]

_ASKED = 16  # launches of a call, about, that the oracle of their own problem is asked about
_NEXT = 4  # uses of a launcher whose rows are looked at first
_PADDED = 64  # times the elements of its tensors: how large the sizes may be that a launcher is told of


@dataclass
class _Output:
    """What one output of a launcher must hold, use by use: ``expected`` and ``allowed`` [uses, rows, row]."""

    expected: NDArray[np.float64]
    allowed: NDArray[np.float64]
    fields: NDArray[np.float32] | None
    taken: NDArray[np.intp] = field(init=False)  # how often each row of each use was written

    def __post_init__(self) -> None:
        self.taken = np.zeros(self.expected.shape[:2], np.intp)

    def holds(self, rows: NDArray[np.float64], use: int) -> bool:
        """Whether these rows are all of one use, in their order."""
        if rows.size != self.expected[use].size:
            return False
        return _near(rows.reshape(self.expected[use].shape), self.expected[use], self.allowed[use])

    def find(self, rows: NDArray[np.float64]) -> list[tuple[int, int] | None]:
        """The use and the row that each of these is, or None; of several that fit the one written least.

        Rows of the uses that are least complete are looked at first.
        """
        order = np.argsort(self.taken.min(axis=1), kind="stable")
        for uses in (order[:_NEXT], order[_NEXT:]):
            if len(uses) and any(uses_and_rows := self._among(rows, np.sort(uses))):
                return uses_and_rows
        return [None] * len(rows)

    def _among(self, rows: NDArray[np.float64], uses: NDArray[np.intp]) -> list[tuple[int, int] | None]:
        """The use and the row that each of ``rows`` is, or None, among the rows of these uses alone."""
        count, length = self.expected.shape[1:]
        if rows.shape[-1] < length:
            return [None] * len(rows)
        expected, allowed = (part[uses].reshape(-1, length) for part in (self.expected, self.allowed))
        times = self.taken[uses].reshape(-1)
        matches: list[tuple[int, int] | None] = []
        for row in rows:
            fits = (np.abs(row[:length] - expected) <= allowed).all(axis=-1)
            index = int(np.where(fits, times, np.iinfo(np.intp).max).argmin())
            times[index] += fits[index]
            matches.append((int(uses[index // count]), index % count) if fits[index] else None)
        return matches


class _Launcher:
    """One launcher in the model: its problem, how often it is needed, and what it must write."""

    def __init__(self, problem: KernelProblem, case: Case, times: int) -> None:
        self.problem = problem
        self.case = case
        self.times = times
        self.calls = 0
        self.elements = 0
        self.use = 0  # that comes next
        self.outputs: dict[str, _Output] = {}  # by parameter, the ones of most rows first
        self.lost = False  # whether a launch wrote nothing of what the model has

    def needed(self) -> int:
        """The elements of one use's largest array."""
        inputs = self.problem.inputs(self.case)
        arrays = [array.size for array in inputs.arrays.values() if array is not None]
        return max([*arrays, *map(math.prod, inputs.outputs.values())])


class Launches:
    """The launches of one call of a model.

    Args:
        problem: the model problem.
        case: that is called.
        scalars: of its inputs, with the seed of the factors if it is marked.
        expected: what the oracle says of it.
    """

    def __init__(
        self,
        problem: ModelProblem,
        case: Case,
        scalars: Mapping[str, object],
        expected: Mapping[str, Expectation],
    ) -> None:
        self.marked = written.SEED in scalars
        self._random = np.random.default_rng(case.seed)
        self._faults: dict[str, None] = {}
        self._launchers: dict[str, _Launcher] = {}
        for launcher, needed, times in problem.needs(case):
            before = self._launchers.get(launcher.entry_point)
            more = before.times if before else 0
            self._launchers[launcher.entry_point] = _Launcher(launcher, needed, times + more)
        self._share = min(1.0, _ASKED / max(1, sum(launcher.times for launcher in self._launchers.values())))
        self._expect(expected, scalars)

    def _expect(self, expected: Mapping[str, Expectation], scalars: Mapping[str, object]) -> None:
        uses: Counter[str] = Counter()
        for name in filter(written.is_written, expected):
            uses[written.output(name)] += 1
        outputs: dict[str, _Output] = {}
        for output, count in uses.items():
            names = [written.key(output, use) for use in range(count)]
            (first, *_), *_ = (candidates := [expected[name].candidates for name in names])
            shape = first.expected.shape
            rows = (count, math.prod(shape[:-1]), shape[-1])
            fields = None
            if self.marked:
                seed = int(str(scalars[written.SEED]))
                factors = [
                    written.factors(seed, name, candidate.expected.astype(np.float64))
                    for name, (candidate, *_) in zip(names, candidates, strict=True)
                ]
                fields = np.stack(factors).reshape(rows)
            outputs[output] = _Output(
                np.stack([accepted[0].expected for accepted in candidates]).reshape(rows),
                np.stack([accepted[0].allowed for accepted in candidates]).reshape(rows),
                fields,
            )
        for output in sorted(outputs, key=lambda output: -outputs[output].expected.shape[1]):
            launcher, _, parameter = output.partition(".")
            if launcher in self._launchers:
                self._launchers[launcher].outputs[parameter] = outputs[output]

    @property
    def most(self) -> int:
        """How many launches a call may make: as many as a model that launches on row after row may need."""
        return sum(launcher.times * launcher.needed() for launcher in self._launchers.values()) + 1000

    def take(self, entry_point: str, arguments: tuple[Argument, ...], arrays: Arrays) -> Arrays:
        """What the model gets of the ``arrays`` that a launcher left, by the names in ``arguments``."""
        launcher = self._launchers.get(entry_point)
        if launcher is None:
            return arrays
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):  # of what no launcher wrote
            return self._looked_at(launcher, arguments, arrays)

    def _looked_at(self, launcher: _Launcher, arguments: tuple[Argument, ...], arrays: Arrays) -> Arrays:
        launcher.calls += 1
        named = {
            argument.name: parameter.name
            for argument, parameter in zip(arguments, launcher.problem.parameters, strict=False)
            if isinstance(argument, ArrayArgument) and isinstance(parameter, ArrayParameter)
        }
        after = {named[name]: array for name, array in arrays.items() if name in named}
        launcher.elements += max((array.size for array in after.values()), default=0)
        sizes = self._sizes(launcher, arguments)
        if sizes is None:
            return arrays
        if self._random.random() < self._share:
            self._ask(launcher, sizes, arguments, named, after)
        marked = self._marked(launcher, after)
        return {name: marked.get(named.get(name, ""), array) for name, array in arrays.items()}

    def _sizes(self, launcher: _Launcher, arguments: tuple[Argument, ...]) -> dict[str, int] | None:
        """The sizes that a launcher was told, if it was called as its problem says and they are no larger."""
        scalars = _scalars(launcher, arguments)
        sizes = {name: scalars.get(name, old) for name, old in launcher.case.sizes.items()}
        most = max(
            (math.prod(argument.shape) for argument in arguments if isinstance(argument, ArrayArgument)),
            default=0,
        )
        counts = {name: int(value) for name, value in sizes.items() if isinstance(value, int | bool)}
        fits = len(counts) == len(sizes) and all(value >= 0 for value in counts.values())
        if fits and math.prod(max(1, value) for value in counts.values()) <= _PADDED * max(1, most):
            return counts
        self._faults[f"{launcher.problem.entry_point} is told of sizes that its tensors do not have"] = None
        return None

    def _ask(
        self,
        launcher: _Launcher,
        sizes: Mapping[str, int],
        arguments: tuple[Argument, ...],
        named: Mapping[str, str],
        after: Arrays,
    ) -> None:
        """Ask the oracle of the launcher's own problem about one launch."""
        problem, case = launcher.problem, replace(launcher.case, sizes=dict(sizes))
        like = problem.inputs(case)
        scalars = _scalars(launcher, arguments)
        if any(scalars[name] != value for name, value in like.scalars.items() if name in scalars):
            return  # such as another epsilon, which that oracle does not know
        before = {
            named[argument.name]: argument.data
            for argument in arguments
            if isinstance(argument, ArrayArgument) and argument.name in named and not argument.null
        }
        arrays: dict[str, NDArray[np.generic] | None] = dict.fromkeys(like.arrays)
        shapes = dict(like.outputs)
        for array in problem.arrays:
            data, model = before.get(array.name), like.arrays.get(array.name)
            shape = shapes.get(array.name, None if model is None else model.shape)
            if data is None or array.name not in {*arrays, *shapes}:
                continue
            if shape is not None and math.prod(shape) != data.size:
                text = f"{problem.entry_point} gets {data.size:,} elements of {array.name}, and is told of "
                self._faults[f"{text}{math.prod(shape):,}"] = None
                return
            if array.role is not Role.OUTPUT:
                arrays[array.name] = data if shape is None else data.reshape(shape)
        inputs = Inputs(arrays, shapes, like.scalars)
        for name, expectation in problem.oracle(case, inputs).items():
            if name in after and not compare(name, expectation, _shaped(after[name], expectation)).right:
                text = f"{problem.entry_point} writes a wrong {name} for what the model gives it"
                self._faults[text] = None

    def _marked(self, launcher: _Launcher, after: Arrays) -> dict[str, NDArray[np.generic]]:
        """Find what a launch wrote among what the model has, and mark it."""
        outputs = {name: output for name, output in launcher.outputs.items() if name in after}
        if not outputs:
            return {}
        first, *_ = outputs
        count = len(outputs[first].expected)
        use = launcher.use % count
        launcher.use += 1
        rows = {name: after[name].astype(np.float64).reshape(-1) for name in outputs}
        if outputs[first].holds(rows[first], use):
            return {
                name: self._of_use(after[name], output, rows[name], use) for name, output in outputs.items()
            }
        return self._row_by_row(launcher, outputs, after)

    @staticmethod
    def _of_use(
        array: NDArray[np.generic], output: _Output, rows: NDArray[np.float64], use: int
    ) -> NDArray[np.generic]:
        if output.holds(rows, use):
            output.taken[use] += 1
        if output.fields is None or array.size != output.fields[use].size:
            return array
        marked: NDArray[np.generic] = (array * output.fields[use].reshape(array.shape)).astype(array.dtype)
        return marked

    def _row_by_row(
        self, launcher: _Launcher, outputs: Mapping[str, _Output], after: Arrays
    ) -> dict[str, NDArray[np.generic]]:
        """Mark the rows of a launch that works on some rows of the model's tensor, and not on all of it."""
        first, *further = outputs
        table = _rows(after[first])
        if launcher.lost:
            return {}
        marked = {name: np.array(after[name]) for name in outputs}
        largest = outputs[first]
        uses_and_rows = largest.find(table.astype(np.float64))
        for number, use_and_row in enumerate(uses_and_rows):
            if use_and_row is not None:
                largest.taken[use_and_row] += 1
                _mark(marked[first], number, largest, use_and_row)
        uses = Counter(use_and_row[0] for use_and_row in uses_and_rows if use_and_row is not None)
        if not uses:
            launcher.lost = True
            return {}
        (mostly, _), *_ = uses.most_common()
        for name in further:
            other = outputs[name]
            if other.expected.shape[1] == largest.expected.shape[1] and len(_rows(after[name])) == len(
                uses_and_rows
            ):
                for number, use_and_row in enumerate(uses_and_rows):
                    if use_and_row is not None:
                        other.taken[use_and_row] += 1
                        _mark(marked[name], number, other, use_and_row)
            else:  # a sum over rows, of which this launch may have only some
                other.taken[mostly] += 1
                _mark(marked[name], 0, other, (mostly, 0))
        return marked

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the launches, whatever came of them."""
        faults = dict(self._faults)
        for name, launcher in self._launchers.items():
            if launcher.calls < launcher.times:
                faults[too_rarely(name, launcher.calls, launcher.times)] = None
            elif launcher.elements < (needed := launcher.times * launcher.needed()):
                text = f"{name} worked on {launcher.elements:,} elements, but the model has {needed:,} for it"
                faults[f"{text}: does PyTorch do the work?"] = None
        return tuple(faults)

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """What of the model no launch wrote: a fault where its results are right all the same."""
        unwritten = []
        for name, launcher in self._launchers.items():
            for parameter, output in launcher.outputs.items():
                if missing := int((output.taken == 0).sum()):
                    rows = output.taken.size
                    text = f"no launch of {name} wrote {missing:,} of the {rows:,} rows of {parameter}"
                    unwritten.append(f"{text} that the model has: does PyTorch do the work?")
        return tuple(unwritten)


def _scalars(launcher: _Launcher, arguments: tuple[Argument, ...]) -> dict[str, Scalar]:
    """What a launcher was told by value, by the names of its problem."""
    return {
        parameter.name: argument.value
        for parameter, argument in zip(launcher.problem.parameters, arguments, strict=False)
        if isinstance(parameter, ScalarParameter) and isinstance(argument, ScalarArgument)
    }


def _near(rows: NDArray[np.float64], expected: NDArray[np.float64], allowed: NDArray[np.float64]) -> bool:
    return bool((np.abs(rows - expected) <= allowed).all())


def _rows(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return array.reshape(-1, array.shape[-1] if array.ndim else 1)


def _shaped(array: NDArray[np.generic], expectation: Expectation) -> NDArray[np.generic]:
    return array.reshape(expectation.candidates[0].expected.shape)


def _mark(array: NDArray[np.generic], number: int, output: _Output, use_and_row: tuple[int, int]) -> None:
    """Multiply a row by the factors of the row of the model that it is."""
    if output.fields is not None:
        factors = output.fields[use_and_row]
        row = _rows(array)[number, : len(factors)]
        row[...] = (row * factors).astype(array.dtype)
