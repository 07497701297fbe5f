"""Which further cases a submission's own code asks for.

What cases have reached is kept comparison by comparison. One that has seen only one side of its number is a
goal: a formula of the sizes that explains what it has met says which sizes meet the other side; where there
is none, larger and smaller cases of the same kind are tried. Numbers of the source that no comparison tells
of, such as the length of an array, are met by sizes and products around them, and by contents of one kind
with more elements for each block. Sizes for which a grid would need more blocks along y or z than it may
have, or more that wait for each other than a GPU holds at once, follow from formulas, too. Numbers that may
stand for "nothing yet" are met by inputs that hold them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from grader.judge.coverage.quantities import Quantity, fitting
from grader.records.coverage import Side, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.problems.problem import Case, Space
    from grader.records.coverage import Coverage, Met, Site
    from grader.records.findings import Line

    Sizes = Mapping[str, int]

TOLD_APART = "sizes that your code tells apart"
"""The case group of the sizes that a search proposes."""
MARKED = "numbers of your code"
"""The case group of inputs that hold a number of the source."""
FOLLOWING = (TOLD_APART, MARKED)

ATTEMPTS = 3  # at one side of one comparison
_BEYOND = (1.15, 1.3, 2.0)  # the limit of a grid, in each attempt
_LEAST_POWER = 0.25  # of a size in the fit of a number
_FEW = 3
SMALL = 33  # numbers below are met by the usual cases
_COUNTER = (
    1 << 12
)  # from so many elements of a block on, counters of few bits and lists of few places fill up
_STEERED = 1 << 50  # what is larger is an address
_CASE_WORK = 2_000_000  # warp instructions that a case costs beside its own
_ELEMENT_WORK = 4  # and each element of its arrays
MOST_ELEMENTS = 1 << 23  # of all arrays, as in the largest of the usual cases
_MOST_ACROSS = 65_535  # blocks along y or z of a grid, CUDA C++ Programming Guide, compute capabilities
_MOST_CASES = 24  # of a round
_MOST_MARKS = 8
_COMMON = tuple(1 << power for power in range(1, 17))


class Rank(IntEnum):
    """The order in which goals are looked for; the smallest comes first."""

    SIDE = 0  # below or above a number, where other code may be
    NUMBER_ITSELF = 1
    MARK = 2  # inputs that hold a number of the source
    COUNT = 3  # more elements of a block than a number of the source that no comparison tells of
    SIZE = 4  # sizes around such a number


@dataclass(frozen=True)
class Goal:
    """A side of a comparison's number that no case has met."""

    site: Site
    side: Side


@dataclass(frozen=True)
class Unreached:
    """A way of a branch, a block of host code or a side of a number that no case has reached.

    Attributes:
        line: in the submission.
        kernel: that it is in; empty for host code.
        side: what was never seen: of a comparison where the number was to ``constant``, of a block ``taken``.
        constant: that a comparison is with; None of branches.
    """

    line: Line
    kernel: str
    side: Side | Way
    constant: int | None = None


@dataclass(frozen=True)
class _Proposal:
    """A case that may be run, for the goals that led to it."""

    sizes: Sizes
    distribution: str
    goals: frozenset[Goal | str]
    work: float  # expected, in warp instructions
    rank: Rank
    marked: Case | None = None  # whose inputs hold a number of the source

    @property
    def key(self) -> tuple[object, ...]:
        return (*self.sizes.items(), self.distribution, self.marked and self.marked.mark)


@dataclass(frozen=True)
class _Run:
    """A case with what it reached and the warp instructions that it took."""

    case: Case
    coverage: Coverage
    work: int


@dataclass
class Search:
    """What the cases of one problem and one submission have reached, and what is left to look for.

    Attributes:
        space: which cases there may be.
        seed: of the run.
        literals: the whole numbers of the source.
        locate: the line of a site that is in the submission, and the site without the calls around that line;
            None where it is in no file of it.
        share: the most that all further cases may cost, as a share of the usual ones' warp instructions,
        least: and what they may cost in any case.
        marks: the numbers of the source that may stand for "nothing yet".
        runs: the cases so far,
        alone: and those of one call, whose sizes are those of the space;
        meeting: of these, those that met each comparison.
        lines: of the sites that they met.
        comparisons: all that each has met.
        ways: all that each branch has gone.
        blocks: of host code that ran.
    """

    space: Space
    seed: int
    literals: frozenset[int]
    locate: Callable[[Site, Coverage], tuple[Line, Site] | None]
    share: float = 0.25
    least: int = 40_000_000
    marks: frozenset[float] = frozenset()
    runs: list[_Run] = field(default_factory=list)
    alone: list[_Run] = field(default_factory=list)
    meeting: dict[Site, list[_Run]] = field(default_factory=dict)
    lines: dict[Site, Line] = field(default_factory=dict)
    comparisons: dict[Site, Met] = field(default_factory=dict)
    ways: dict[Site, frozenset[Way]] = field(default_factory=dict)
    blocks: set[int] = field(default_factory=set)
    _located: dict[Site, tuple[Line, Site] | None] = field(default_factory=dict)
    _expected: dict[str, float] = field(default_factory=dict)  # work of each proposal; once it ran, its own
    _beside_kernels: dict[str, int] = field(default_factory=dict)  # likewise, but that of the kernels
    _usual: int | None = None
    _magnitudes: NDArray[np.float64] = field(
        default_factory=lambda: np.empty((0, 0))
    )  # of the sizes of ``alone``
    _attempts: Counter[Goal | str] = field(default_factory=Counter)

    def add(self, case: Case, coverage: Coverage, work: int) -> None:
        """Add what a case has reached to what the cases before it have."""
        placed = self._placed(coverage)
        if case.name in self._expected:
            self._expected[case.name] = work + self._beside_kernels[case.name]
        run = _Run(case, placed, work)
        self.runs.append(run)
        if not case.queued and case.sizes.keys() == self.space.ranges.keys():
            self.alone.append(run)
            for site in placed.comparisons:
                self.meeting.setdefault(site, []).append(run)
        self.blocks |= placed.blocks
        for site, met in placed.comparisons.items():
            self.comparisons[site] = (
                _together(self.comparisons[site], met) if site in self.comparisons else met
            )
        for site, ways in placed.ways.items():
            self.ways[site] = self.ways.get(site, frozenset()) | ways

    def _placed(self, coverage: Coverage) -> Coverage:
        """The coverage without sites outside of the submission; sites that become one are put together."""
        comparisons: dict[Site, Met] = {}
        for site in coverage.comparisons.keys() | coverage.ways.keys():
            if site not in self._located:
                self._located[site] = self.locate(site, coverage)
        for site, met in coverage.comparisons.items():
            if (placed := self._located[site]) is not None:
                line, inner = placed
                self.lines[inner] = line
                comparisons[inner] = _together(comparisons[inner], met) if inner in comparisons else met
        ways = {}
        for site, ways_of_site in coverage.ways.items():
            if (placed := self._located[site]) is not None:
                self.lines[site], ways[site] = placed[0], ways_of_site
        return type(coverage)(ways, comparisons, coverage.blocks, coverage.launches)

    def next(self) -> tuple[Case, ...]:
        """Further cases that may reach something new; none if nothing is left or the budget is spent.

        They run in program order alone, and large outputs are compared at some places, as in the grid.
        """
        if not self.alone:
            return ()
        if self._usual is None:
            self._usual = sum(run.work + self._beside(run.case.sizes) for run in self.alone)
        self._magnitudes = np.array([self._magnitude(run.case.sizes) for run in self.alone])
        tried = {(*run.case.sizes.items(), run.case.distribution, run.case.mark) for run in self.runs}
        names = {run.case.name for run in self.runs}
        chosen: list[Case] = []
        met: set[Goal | str] = set()
        proposals = [proposal for proposal in self._merged(self._proposals()) if proposal.key not in tried]
        for proposal in sorted(
            proposals, key=lambda proposal: (proposal.rank, proposal.work / len(proposal.goals))
        ):
            fresh = proposal.goals - met
            if not fresh or len(chosen) >= _MOST_CASES or not self._affordable(proposal):
                continue
            case = replace(
                proposal.marked
                or self.space.case(TOLD_APART, proposal.sizes, proposal.distribution, self.seed),
                orders=1,
                at_places=self.space.elements(proposal.sizes) > self.space.budget.compared,
            )
            if case.name in names:
                continue
            met |= proposal.goals
            names.add(case.name)
            chosen.append(case)
            self._expected[case.name] = proposal.work
            self._beside_kernels[case.name] = self._beside(proposal.sizes)
        self._attempts.update(met)
        return tuple(chosen)

    def _affordable(self, proposal: _Proposal) -> bool:
        """Whether there is work left for a case, and memory for its arrays.

        Half of the work is left for what is looked for behind ``COUNT``, whose cases are large.
        """
        most = max(self.share * (self._usual or 0), self.least) / (2 if proposal.rank is Rank.COUNT else 1)
        spent = sum(self._expected.values())
        return spent + proposal.work <= most and self.space.elements(proposal.sizes) <= MOST_ELEMENTS

    def _merged(self, proposals: Iterable[_Proposal]) -> list[_Proposal]:
        """Each proposed case once, with all goals that lead to it."""
        table: dict[tuple[object, ...], _Proposal] = {}
        for proposal in proposals:
            before = table.get(proposal.key)
            if before is None:
                table[proposal.key] = proposal
            else:
                goals, rank = before.goals | proposal.goals, min(before.rank, proposal.rank)
                table[proposal.key] = replace(proposal, goals=goals, rank=rank)
        return list(table.values())

    def _proposals(self) -> Iterator[_Proposal]:
        for site, met in self.comparisons.items():
            yield from self._of_comparison(site, met)
        yield from self._of_grids()
        yield from self._of_literals()
        yield from self._of_marks()

    # What comparisons have met.

    def goals(self, site: Site, met: Met) -> frozenset[Goal]:
        """The sides that a comparison has not met, as far as sizes may decide them."""
        missing = set(Side) - met.sides
        if met.equality:
            missing = set() if {Side.EQUAL} < met.sides else missing & {Side.EQUAL} or {Side.ABOVE}
        return frozenset(Goal(site, side) for side in missing)

    def _of_comparison(self, site: Site, met: Met) -> Iterator[_Proposal]:
        goals = [goal for goal in sorted(self.goals(site, met), key=str) if self._attempts[goal] < ATTEMPTS]
        with_it = self.meeting.get(site, [])
        if not goals or not with_it:
            return
        one_number = met.second[0] == met.second[1]
        if not one_number and met.first[0] != met.first[1]:
            yield from self._of_two(site, goals, with_it)
            return
        constant = met.second[0] if one_number else met.first[0]
        turned = not one_number
        for goal in goals:
            side = _TURNED[goal.side] if turned else goal.side
            if abs(constant) > _STEERED or (constant <= 0 and side is Side.BELOW):
                continue
            numbers = [_number(run.coverage.comparisons[site], side, turned=turned) for run in with_it]
            pairs = [(run.case.sizes, _signed(number)) for run, number in zip(with_it, numbers, strict=True)]
            formulas = fitting(pairs, self.divisors)
            if formulas:
                targets = _targets(constant, side, self._constants(site))
                yield from self._solved(goal, formulas, targets, with_it, alike=side is Side.ABOVE)
            elif side is not Side.EQUAL and len(set(numbers)) > 1:
                nearest = sorted(zip(numbers, with_it, strict=True), key=lambda pair: _far(pair[0], constant))
                yield from self._scaled(goal, constant, side, nearest[0][0], nearest[0][1].case)

    def _solved(
        self,
        goal: Goal | str,
        formulas: Sequence[Quantity],
        targets: Sequence[int],
        with_it: Sequence[_Run],
        *,
        alike: bool,
    ) -> Iterator[_Proposal]:
        attempt, name = self._attempts[goal], _name(goal)
        for quantity in formulas[attempt:] or formulas[-1:]:
            base = self._smallest_but(quantity.sizes, with_it)
            for target in targets:
                legal = (
                    sizes
                    for sizes in quantity.solutions(target, base.sizes, self.space)
                    if self.space.legal(sizes, base.distribution)
                )
                if (sizes := next(legal, None)) is not None:
                    yield self._proposal(sizes, base.distribution, {goal, f"{name} {target}"}, Rank.SIDE)
            if alike and len(quantity.sizes) > 1:
                sizes = quantity.alike(targets[0], base.sizes, self.space)
                if self.space.legal(sizes, base.distribution):
                    yield self._proposal(sizes, base.distribution, {goal, f"{name} alike"})

    def _smallest_but(self, changed: Collection[str], with_it: Sequence[_Run]) -> Case:
        """The case that is smallest in all other sizes, with usual contents if there is one."""
        usual = self.space.distributions[0]

        def cost(case: Case) -> tuple[bool, int]:
            sizes = {**case.sizes, **{name: self.space.least[name] for name in changed}}
            return case.distribution != usual, self.space.elements(sizes)

        return min((run.case for run in with_it), key=cost)

    def _of_two(self, site: Site, goals: Sequence[Goal], with_it: Sequence[_Run]) -> Iterator[_Proposal]:
        """Sizes between which two numbers of the code change their order, where formulas tell both."""
        mets = [run.coverage.comparisons[site] for run in with_it]
        if any(met.first[0] != met.first[1] or met.second[0] != met.second[1] for met in mets):
            return
        sizes = [run.case.sizes for run in with_it]
        first = fitting(
            [(sample, met.first[0]) for sample, met in zip(sizes, mets, strict=True)], self.divisors
        )
        second = fitting(
            [(sample, met.second[0]) for sample, met in zip(sizes, mets, strict=True)], self.divisors
        )
        if not first or not second:
            return
        base = min(with_it, key=lambda run: abs(first[0].of(run.case.sizes) - second[0].of(run.case.sizes)))
        tried = [*self._around(first[0], second[0], base), *self._around(second[0], first[0], base)]
        for goal in goals:
            for candidate in tried:
                a, b = first[0].of(candidate), second[0].of(candidate)
                side = Side.BELOW if a < b else Side.ABOVE if a > b else Side.EQUAL
                if side is goal.side and self.space.legal(candidate, base.case.distribution):
                    yield self._proposal(candidate, base.case.distribution, {goal})
                    break

    def _around(self, changed: Quantity, fixed: Quantity, base: _Run) -> Iterator[dict[str, int]]:
        """Sizes that put one number on either side of what another is in a case."""
        target = fixed.of(base.case.sizes)
        for value in (target, target - 1, target + 1, 2 * target + 1, target // 2):
            yield from list(changed.solutions(value, base.case.sizes, self.space))[:4]

    def _scaled(
        self, goal: Goal | str, constant: int, side: Side, number: int, case: Case
    ) -> Iterator[_Proposal]:
        """Propose a case with sizes scaled by the factor that the number in the code lacks.

        ``number`` is to come to the given side of ``constant``.
        """
        attempt, name = self._attempts[goal], _name(goal)
        value = constant + 1 if side is Side.ABOVE else constant - 1
        factor = (value / max(1, number)) * (1.25, 2, 8)[attempt] ** (1 if side is Side.ABOVE else -1)
        if number <= 0 or not 1 / 4096 <= factor <= 1 << 20:
            return
        names = list(case.sizes)
        for group in [tuple(names), *((name,) for name in names)]:
            sizes = {
                size: limits.nearest(
                    math.ceil(case.sizes[size] * factor) if size in group else case.sizes[size]
                )
                for size, limits in self.space.ranges.items()
            }
            if sizes != case.sizes and self.space.legal(sizes, case.distribution):
                yield self._proposal(sizes, case.distribution, {goal, f"{name} {group} {attempt}"}, Rank.SIDE)

    def _constants(self, site: Site) -> list[int]:
        """The numbers that the same code compares with, from the smallest on."""
        return sorted(
            met.second[0]
            for other, met in self.comparisons.items()
            if other.kernel == site.kernel and met.second[0] == met.second[1]
        )

    # Grids.

    def _of_grids(self) -> Iterator[_Proposal]:
        """Sizes that take a grid beyond its limits, where formulas tell how many blocks it has.

        It may have so many blocks along y or z. Where blocks wait for each other, all have to be resident.
        """
        for kernel in sorted({kernel for run in self.alone for kernel in run.coverage.launches}):
            with_it = [run for run in self.alone if kernel in run.coverage.launches]
            launches = [run.coverage.launches[kernel] for run in with_it]
            across = [launch.most_across for launch in launches]
            yield from self._beyond(f"blocks along y or z of {kernel}", across, _MOST_ACROSS, with_it)
            if resident := min(launch.resident for launch in launches):
                blocks = [launch.most_blocks for launch in launches]
                yield from self._beyond(f"blocks of {kernel}", blocks, resident, with_it)

    def _beyond(
        self, goal: str, numbers: Sequence[int], limit: int, with_it: Sequence[_Run]
    ) -> Iterator[_Proposal]:
        """Sizes at which a number of each case is more than a limit that it has not come to yet."""
        if min(numbers) < max(numbers) <= limit and self._attempts[goal] < ATTEMPTS:
            pairs = [(run.case.sizes, number) for run, number in zip(with_it, numbers, strict=True)]
            if formulas := fitting(pairs, self.divisors):
                yield from self._solved(goal, formulas, (limit + 1,), with_it, alike=False)
            else:
                yield from self._grown(goal, limit, numbers, with_it)

    def _grown(
        self, goal: str, limit: int, numbers: Sequence[int], with_it: Sequence[_Run]
    ) -> Iterator[_Proposal]:
        """Propose a case whose blocks are full, larger by the factor that its number lacks.

        One size grows first; what its range does not hold is left to the others that the number follows. The
        sizes that it does not follow, such as a count of steps, are large, so that blocks wait.
        """
        names = self._followed(numbers, with_it)
        many = [pair for pair in zip(numbers, with_it, strict=True) if pair[0] * _FEW >= max(numbers)]
        many.sort(key=lambda pair: self.space.elements(pair[1].case.sizes) / pair[0], reverse=True)
        others = [name for name in self.space.ranges if name not in names]
        number, run = max(many[:_FEW], key=lambda pair: [pair[1].case.sizes[name] for name in others])
        for first in names:
            sizes, lacking = dict(run.case.sizes), _BEYOND[self._attempts[goal]] * (limit + 1) / number
            for name in (first, *(name for name in names if name != first)):
                before = sizes[name]
                sizes[name] = self.space.ranges[name].nearest(math.ceil(before * max(1.0, lacking)))
                lacking *= before / sizes[name]
            if lacking <= 1 and self.space.legal(sizes, run.case.distribution):
                yield self._proposal(sizes, run.case.distribution, {goal}, Rank.SIDE)

    def _followed(self, numbers: Sequence[int], with_it: Sequence[_Run]) -> list[str]:
        """The sizes that a number is about a product of: those with a power in the fit of its logarithms."""
        magnitudes = np.array([[*self._magnitude(run.case.sizes), 1.0] for run in with_it])
        powers, *_ = np.linalg.lstsq(magnitudes, np.log2([1 + number for number in numbers]))
        return [name for name, power in zip(self.space.ranges, powers, strict=False) if power > _LEAST_POWER]

    # Numbers of the source that no comparison tells of.

    def _of_literals(self) -> Iterator[_Proposal]:
        compared = {
            number
            for met in self.comparisons.values()
            for low, high in (met.first, met.second)
            if low == high
            for number in range(low - 1, low + 2)
        }
        large = sorted(number for number in self.literals - compared if number >= SMALL)
        base = self.space.distributions[0]
        shapes = [run.case.sizes for run in self.alone]
        for number in large:
            for value in (number - 1, number, number + 1):
                lacking = [
                    name
                    for name, limits in self.space.ranges.items()
                    if value in limits and not any(sizes[name] == value for sizes in shapes)
                ]
                for group in (lacking, *([name] for name in lacking)):
                    marks = {f"{name} is {value}" for name in group}
                    sizes = {**self._small(), **dict.fromkeys(group, value)}
                    if (
                        marks
                        and not any(self._attempts[mark] for mark in marks)
                        and self.space.legal(sizes, base)
                    ):
                        yield self._proposal(sizes, base, marks)
        yield from self._of_products(large, shapes)
        yield from self._per_block(large)

    def _of_products(self, large: Sequence[int], shapes: Sequence[Sizes]) -> Iterator[_Proposal]:
        base = self.space.distributions[0]
        groups = [*combinations(self.space.ranges, 2), *self.space.products.values()]
        for group in dict.fromkeys(groups):
            quantity = Quantity(tuple(group))
            met = [quantity.of(sizes) for sizes in shapes]
            for number in large:
                mark = f"{group} around {number}"
                if self._attempts[mark] or (
                    min(met) < number and any(number < value <= 4 * number for value in met)
                ):
                    continue
                for target in (number + 1, number + 2, 2 * number):
                    legal = (
                        sizes
                        for sizes in quantity.solutions(target, self._small(), self.space)
                        if self.space.legal(sizes, base) and min(sizes[name] for name in group) > 1
                    )
                    if (sizes := next(legal, None)) is not None:
                        yield self._proposal(sizes, base, {mark})
                        break

    def _per_block(self, large: Sequence[int]) -> Iterator[_Proposal]:
        """More elements for each block than a number of the source, in each distribution but the first."""
        numbers = [number for number in large if number >= _COUNTER]
        most = max(self.alone, key=lambda run: max(run.case.sizes.values()), default=None)
        if most is None or not numbers or not most.coverage.launches:
            return
        blocks = max(launch.most_blocks for launch in most.coverage.launches.values())
        name = max(most.case.sizes, key=lambda size: most.case.sizes[size])
        for distribution in self.space.distributions[1:]:
            met = max(
                (run.case.sizes[name] for run in self.alone if run.case.distribution == distribution),
                default=0,
            )
            for number in reversed(numbers):
                value = (number + 2) * blocks + 1
                mark = f"{value} {name} in {distribution}"
                sizes = {**most.case.sizes, name: self.space.ranges[name].nearest(value)}
                if met >= value or self._attempts[mark]:
                    break
                if sizes[name] >= value and self.space.legal(sizes, distribution):
                    proposal = self._proposal(sizes, distribution, {mark}, Rank.COUNT)
                    if self._affordable(proposal):
                        yield proposal
                        break

    # Numbers of the source that may stand for "nothing yet".

    def _of_marks(self) -> Iterator[_Proposal]:
        usual = [run.case.sizes for run in self.alone if self._fits(run.case.sizes)]
        sizes = max(usual, key=self.space.elements, default=None)
        if sizes is None:
            return
        for mark in sorted(self.marks, key=abs)[:_MOST_MARKS]:
            for case in self.space.marked(MARKED, sizes, mark, self.seed):
                goal = f"{case.distribution} with {mark}"
                if not self._attempts[goal] and self.space.legal(case.sizes, case.distribution):
                    proposal = self._proposal(case.sizes, case.distribution, {goal}, Rank.MARK)
                    yield replace(proposal, marked=case)

    def _fits(self, sizes: Sizes) -> bool:
        return self.space.elements(sizes) <= self.space.budget.contents

    # What is common to all.

    @property
    def divisors(self) -> tuple[int, ...]:
        """The numbers that the code may divide a size by."""
        return tuple(sorted({*_COMMON, *(number for number in self.literals if 1 < number <= _COMMON[-1])}))

    def _small(self) -> dict[str, int]:
        """Small sizes, and flags that are not set."""
        return {
            name: limits.nearest(_FEW if limits.high > 1 else 0) for name, limits in self.space.ranges.items()
        }

    def _proposal(
        self, sizes: Sizes, distribution: str, goals: Collection[Goal | str], rank: Rank = Rank.SIZE
    ) -> _Proposal:
        if sides := {goal.side for goal in goals if isinstance(goal, Goal)}:
            rank = Rank.NUMBER_ITSELF if sides == {Side.EQUAL} else Rank.SIDE
        return _Proposal(
            dict(sizes), distribution, frozenset(goals), self._work(sizes) + self._beside(sizes), rank
        )

    def _beside(self, sizes: Sizes) -> int:
        """The cost of a case beside its kernels, in warp instructions: its inputs, its oracle, its calls."""
        return _CASE_WORK + _ELEMENT_WORK * self.space.elements(sizes)

    def _work(self, sizes: Sizes) -> float:
        """Warp instructions that a case may take: those of the one most like it, in proportion."""
        distances = np.abs(self._magnitudes - self._magnitude(sizes)).sum(axis=1)
        nearest = self.alone[int(distances.argmin())]
        ratio = math.prod((1 + size) / (1 + nearest.case.sizes[name]) for name, size in sizes.items())
        return nearest.work * max(1.0, ratio)

    def _magnitude(self, sizes: Sizes) -> NDArray[np.float64]:
        """The logarithm of each size."""
        return np.log2([1 + sizes[name] for name in self.space.ranges])

    def unreached(self, blocks: Mapping[int, Line]) -> tuple[Unreached, ...]:
        """The lines, branches and sides of comparisons that no case has reached.

        Args:
            blocks: those of the submission's host code that may run, by address.
        """
        unreached: dict[Unreached, None] = {}
        ran = {line for address, line in blocks.items() if address in self.blocks}
        for line in sorted(set(blocks.values()) - ran, key=lambda line: (line.file, line.line)):
            unreached[Unreached(line, "", Way.TAKEN)] = None
        for site, ways in self.ways.items():
            if ways:
                unreached |= {
                    Unreached(self.lines[site], site.kernel, way): None for way in Way if way not in ways
                }
        for site, met in self.comparisons.items():
            for goal in sorted(self.goals(site, met), key=str):
                if self._attempts[goal] and met.second[0] == met.second[1]:
                    unreached[Unreached(self.lines[site], site.kernel, goal.side, met.second[0])] = None
        return tuple(unreached)

    @property
    def sites(self) -> int:
        """The branches and comparisons that were met."""
        return sum(map(bool, self.ways.values())) + len(self.comparisons)


_TURNED = {Side.BELOW: Side.ABOVE, Side.ABOVE: Side.BELOW, Side.EQUAL: Side.EQUAL}


def _name(goal: Goal | str) -> Site | str:
    """What goals for the two sides of a number share."""
    return goal.site if isinstance(goal, Goal) else goal


def _together(first: Met, other: Met) -> Met:
    return type(first)(
        first.sides | other.sides,
        (min(first.first[0], other.first[0]), max(first.first[1], other.first[1])),
        (min(first.second[0], other.second[0]), max(first.second[1], other.second[1])),
        first.equality,
    )


def _number(met: Met, side: Side, *, turned: bool) -> int:
    """The number of a call that is nearest to the side that is looked for."""
    low, high = met.second if turned else met.first
    return low if side is Side.BELOW else high


def _signed(number: int) -> int:
    """Read an unsigned number of 32 bits as a signed one, where a subtraction may have gone below 0."""
    return number - (1 << 32) if 1 << 31 <= number < 1 << 32 else number


def _far(number: int, constant: int) -> float:
    return abs(math.log2(max(1, number)) - math.log2(max(1, constant)))


def _targets(constant: int, side: Side, constants: Sequence[int]) -> tuple[int, ...]:
    """Numbers on a side of ``constant``: its neighbour, and an odd one on the way to the next constant.

    The constant itself comes with both neighbours.
    """
    if side is Side.EQUAL:
        return (constant, constant + 1, constant - 1)  # compilers make `n < 100` from `n <= 99`
    if side is Side.ABOVE:
        beyond = min((number for number in constants if number > constant), default=4 * constant)
        return (constant + 1, math.isqrt(max(1, constant) * beyond) | 1)
    under = max((number for number in constants if 0 < number < constant), default=1)
    return (constant - 1, math.isqrt(under * constant) | 1)
