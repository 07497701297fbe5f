"""Mutants that are right outside of a drawn interval: a wrong tier of sizes, as an adversary would hide one.

A tier is an edit that takes effect only where a condition holds that is drawn from a seed: a size, or a
product of sizes, is in an interval; two sizes are above limits; a count is. Operators are functions from a
setting, which is a function of a right kernel, to tiers.

Layer: imports problems, kernels, quantities, intervals, edits, operators and syntax.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from math import prod
from random import Random
from typing import TYPE_CHECKING

from grader.problems.problem import ScalarParameter
from grader.soundness import operators
from grader.soundness.edits import Edit, Source
from grader.soundness.intervals import Interval, Limit, log_uniform
from grader.soundness.quantities import product_of, scopes
from grader.soundness.syntax import arguments, callee, floats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tree_sitter import Node

    from grader.problems.problem import Space
    from grader.soundness.kernels import RightKernel
    from grader.soundness.quantities import Scope

FAMILY = "tier: "
"""What the names of these operators begin with."""

_DRAWS = 4  # of an interval, until one is within the simulator's budget
_MOST_OCTAVES = 6.0  # of a tier
_PER_BLOCK = 64  # elements at least, so that a cap on a grid has an effect
_MOST_COUNT = 1 << 18  # of steps, of tickets
_LAST_INT = (1 << 31) - 1
_SECOND_KERNELS = 3  # of a launch
_SIXTEEN_BITS = 1 << 16
_ALLOCATES = re.compile(r"cuda(Malloc\w*|HostAlloc)")
_ATOMIC = re.compile(r"atomic(Add|Sub|Inc|Dec)\w*")
_INTEGER = re.compile(r"(const\s+)?(unsigned(\s+int)?|int|size_t|long long|auto|u?int(32|64)_t)")
_BUILT_IN = re.compile(r"\b(thread|block|grid)(Idx|Dim)\.[xyz]")
_FLOATING = re.compile(r"\.\d|\d\.|\bfloat\b|\bdouble\b|\df\b")


@dataclass(frozen=True, kw_only=True)
class Tier(Edit):
    """An edit that takes effect in an interval alone.

    Attributes:
        interval: where.
        change: what it changes there, in words.
    """

    interval: Interval
    change: str

    @property
    def reason(self) -> str:
        """The change and the interval in which it takes effect."""
        return f"{self.change} where {self.interval}"


@dataclass(frozen=True)
class Condition:
    """An interval, and the condition in C++ that says whether an input is within."""

    interval: Interval
    text: str

    @property
    def blocks(self) -> int:
        """So many blocks the smallest input within may well have."""
        return max(1, prod(limit.low for limit in self.interval.limits) // _PER_BLOCK)

    def beyond(self, name: str, low: int) -> Interval:
        """The interval where a count is ``low`` or more, too."""
        return Interval((*self.interval.limits, Limit(name, (), low)))


@dataclass(frozen=True)
class Setting:
    """A function of a right kernel, and what tiers in it are drawn from.

    Attributes:
        source: of the file.
        scope: the function.
        space: of the problem's inputs.
        seed: of all that is drawn.
        kernels: the kernels of the file, by name.
    """

    source: Source
    scope: Scope
    space: Space
    seed: str
    kernels: Mapping[str, Scope]

    def of(self, *kinds: str) -> Iterator[Node]:
        """The nodes of these kinds in the function."""
        return (node for node in self.source.of(*kinds) if self.scope.holds(node))

    def random(self, operator: str, offset: int) -> Random:
        """The random numbers of the tier that ``operator`` makes at an offset in the text."""
        return Random(f"{self.seed} {self.scope.file} {operator} {offset}")

    def condition(self, operator: str, offset: int) -> Condition | None:
        """A drawn condition that can be written at an offset in the text; None where no size is known."""
        random, drawn = self.random(operator, offset), None
        quantities = self._visible(offset)
        for _ in range(_DRAWS if quantities else 0):
            drawn = _drawn(random, quantities, self.space) or drawn
            if drawn is not None and drawn.interval.in_budget(self.space):
                break
        return drawn

    def tier(self, operator: str, node: Node, new: str, interval: Interval, change: str) -> Tier:
        """The tier that puts ``new`` in the place of a node."""
        old = self.source.text_of(node)
        return self.over(operator, node.start_byte, node.end_byte, old, new, interval, change)

    def over(
        self, operator: str, begin: int, end: int, old: str, new: str, interval: Interval, change: str
    ) -> Tier:
        """The tier that puts ``new`` in the place of ``old``."""
        return Tier(FAMILY + operator, begin, end, old, new, str(interval), interval=interval, change=change)

    def text(self, node: Node) -> str:
        """The text of a node."""
        return self.source.text_of(node)

    def launches(self) -> Iterator[tuple[Node, list[Node]]]:
        """The calls that launch a kernel, with what stands between the angle brackets."""
        for call in self.of("call_expression"):
            for child in call.named_children:
                if child.type == "kernel_call_syntax":
                    yield call, [value for value in child.named_children if value.type != "comment"]

    def is_whole(self, node: Node) -> bool:
        """Whether an expression is of whole numbers, as far as its names tell."""
        text = _BUILT_IN.sub("", self.text(node))
        words = set(re.findall(r"[A-Za-z_]\w*", text))
        return not words & self._floats.keys() and _FLOATING.search(text) is None

    def counts(self, node: Node) -> bool:
        """Whether an expression can be large: it has a size in it, a block's number, a load or a local."""
        words = set(re.findall(r"[A-Za-z_]\w*", self.text(node)))
        return bool(words & (self.scope.quantities.keys() | {"blockIdx", "gridDim"})) or "[" in self.text(
            node
        )

    @cached_property
    def _floats(self) -> Mapping[str, int]:
        return floats(self.source)

    def _visible(self, offset: int) -> Mapping[str, tuple[str, ...]]:
        """The quantities that are declared before an offset, of sizes that have a range."""
        before = self.source.text[self.scope.function.begin : offset]
        varied = {name for name, sizes in self.space.ranges.items() if sizes.high > max(sizes.low, 1)}
        return {
            name: product
            for name, product in self.scope.quantities.items()
            if varied.issuperset(product) and re.search(rf"\b{name}\b", before)
        }


def tiers(kernel: RightKernel, space: Space, seed: int) -> tuple[tuple[str, Tier], ...]:
    """The tiers of a right kernel, with the names of the files that they change, in the order of the text."""
    scalars = {
        parameter.name for parameter in kernel.problem.parameters if isinstance(parameter, ScalarParameter)
    }
    reached = scopes(kernel, scalars & space.ranges.keys())
    sources = {file: Source(text) for file, text in kernel.files.items()}
    by_change: dict[tuple[str, int, int, str], Tier] = {}
    for scope in reached:
        launched = {
            other.function.name: other for other in reached if other.is_kernel and other.file == scope.file
        }
        setting = Setting(sources[scope.file], scope, space, f"{seed} {kernel.id}", launched)
        for operator in OPERATORS:
            for tier in operator(setting):
                by_change[scope.file, tier.begin, tier.end, tier.new] = tier
    return tuple((key[0], by_change[key]) for key in sorted(by_change))


def _drawn(random: Random, quantities: Mapping[str, tuple[str, ...]], space: Space) -> Condition | None:
    """A condition on one or two quantities that some input meets; None if the draw has none."""
    names = sorted(quantities)
    pairs = [
        (first, second)
        for first in names
        for second in names
        if first < second and not {*quantities[first]} & {*quantities[second]}
    ]
    kind = random.choices(("between", "above", "both", "product"), (3, 1, 3, 3) if pairs else (3, 1, 0, 0))[0]
    if kind in {"between", "above"}:
        name = random.choice(names)
        limits = [_limit(random, name, quantities[name], space, ends=kind == "between")]
        terms = [name]
    else:
        first, second = random.choice(pairs)
        if kind == "both":
            limits = [_limit(random, name, quantities[name], space, ends=False) for name in (first, second)]
            terms = [first, second]
        else:
            both = tuple(sorted(quantities[first] + quantities[second]))
            limits = [_limit(random, f"{first} * {second}", both, space, ends=random.random() < 0.5)]
            terms = [f"static_cast<long long>({first}) * {second}"]
    interval = Interval(tuple(limits))
    if interval.smallest(space) is None:
        return None
    return Condition(interval, " && ".join(map(_written, terms, limits)))


def _limit(random: Random, name: str, sizes: tuple[str, ...], space: Space, *, ends: bool) -> Limit:
    """An interval of a product of sizes: from a drawn value to its end, or for some octaves."""
    low = prod(space.ranges[size].low for size in sizes)
    high = min(prod(space.ranges[size].high for size in sizes), _LAST_INT)
    first = log_uniform(random, low + 1, high)
    beyond = int(first * 2 ** random.uniform(1.0, _MOST_OCTAVES)) if ends else high + 1
    return Limit(name, sizes, first, beyond if beyond <= high else None)


def _written(term: str, limit: Limit) -> str:
    begins = f"{term} >= {limit.low}"
    return begins if limit.high is None else f"{begins} && {term} < {limit.high}"


def grids(setting: Setting) -> Iterator[Tier]:
    """The last block of a grid is left out, or a grid has a cap."""
    for _, configuration in setting.launches():
        for node in _grid(setting, configuration[0]):
            grid = setting.text(node)
            if (condition := setting.condition("last block", node.start_byte)) is not None:
                new = f"({grid}) - (({grid}) > 1 && {condition.text})"
                change = f"`{grid}` is one block short"
                yield setting.tier("last block", node, new, condition.interval, change)
            if (condition := setting.condition("grid cap", node.start_byte)) is not None:
                cap = log_uniform(setting.random("cap", node.start_byte), 1, condition.blocks)
                new = f"(({grid}) > {cap} && {condition.text} ? {cap} : ({grid}))"
                interval = condition.beyond(grid, cap + 1)
                yield setting.tier("grid cap", node, new, interval, f"`{grid}` is at most {cap:,}")


def _grid(setting: Setting, node: Node) -> Iterator[Node]:
    """The dimensions of a grid that are no literals, also of one that is declared before."""
    if node.type == "identifier":
        for declarator in setting.of("init_declarator"):
            variable, value = (declarator.child_by_field_name(name) for name in ("declarator", "value"))
            named = variable is not None and setting.text(variable) == setting.text(node)
            if named and value is not None and value.type == "argument_list":
                yield from (
                    dimension for dimension in value.named_children if dimension.type != "number_literal"
                )
                return
    dimensions = (
        arguments(node)
        if node.type == "call_expression" and callee(setting.source, node) == "dim3"
        else [node]
    )
    yield from (dimension for dimension in dimensions if dimension.type != "number_literal")


def tails(setting: Setting) -> Iterator[Tier]:
    """A size is passed on without its tail."""
    for call in () if setting.scope.on_device else setting.of("call_expression"):
        if callee(setting.source, call).startswith(("cuda", "std::", "dim3")):
            continue
        for argument in arguments(call):
            name = setting.text(argument)
            condition = setting.condition("tail", argument.start_byte)
            if argument.type != "identifier" or condition is None or name not in setting.scope.quantities:
                continue
            random = setting.random("width", argument.start_byte)
            width = random.choice((2, 4, 8, 32)) * _step(setting, name)
            new = f"({condition.text} ? {name} - {name} % {width} : {name})"
            change = f"`{name}` is passed on without its tail `{name} % {width}`"
            yield setting.tier("tail", argument, new, condition.interval, change)


def _step(setting: Setting, name: str) -> int:
    return prod(setting.space.ranges[size].multiple_of for size in setting.scope.quantities[name])


def second_kernels(setting: Setting) -> Iterator[Tier]:
    """A second kernel is launched, a copy of the right one in which something else is wrong."""
    source, function = setting.source, setting.scope.function
    for call, _ in setting.launches():
        name = callee(source, call).partition("<")[0]
        statement = call.parent
        condition = setting.condition("second kernel", call.start_byte)
        if name not in setting.kernels or condition is None or statement is None:
            continue
        if statement.type != "expression_statement":
            continue
        right = setting.kernels[name].function
        copied = Source(source.text[right.begin : right.end])
        edits = operators.edits(copied)
        random = setting.random("edit", call.start_byte)
        for edit in random.sample(edits, min(_SECOND_KERNELS, len(edits))):
            copy = re.sub(rf"\b{name}\b", f"{name}_tier", edit.applied(copied.text))
            launch = setting.text(statement)
            other = launch.replace(name, f"{name}_tier", 1)
            old = source.text[function.begin : statement.end_byte]
            new = f"{copy}\n\n{old.removesuffix(launch)}{{ if ({condition.text}) {other} else {launch} }}"
            change = f"a second `{name}`, in which {edit.reason} ({edit.operator}), is launched"
            yield setting.over(
                "second kernel", function.begin, statement.end_byte, old, new, condition.interval, change
            )


def bounds(setting: Setting) -> Iterator[Tier]:
    """A bound in a kernel is off by one, on the side that leaves something out."""
    for node in setting.of("binary_expression") if setting.scope.on_device else ():
        left, right, sign = (node.child_by_field_name(name) for name in ("left", "right", "operator"))
        if left is None or right is None or sign is None or setting.text(sign) not in {"<", "<=", ">", ">="}:
            continue
        condition = setting.condition("bound", right.start_byte)
        if condition is None or not (setting.is_whole(left) and setting.is_whole(right)):
            continue
        step = "-" if setting.text(sign).startswith("<") else "+"
        bound = setting.text(right)
        new = f"({bound}) {step} ({condition.text})"
        change = f"`{setting.text(node)}` has `({bound}) {step} 1`"
        yield setting.tier("bound", right, new, condition.interval, change)


def early_returns(setting: Setting) -> Iterator[Tier]:
    """The blocks beyond a drawn number return at once."""
    if not setting.scope.is_kernel:
        return
    for body in setting.of("compound_statement"):
        offset = body.start_byte + 1
        if (condition := setting.condition("early return", offset)) is not None:
            blocks = log_uniform(setting.random("blocks", offset), 1, condition.blocks)
            new = f" if (blockIdx.x >= {blocks} && {condition.text}) return; "
            interval = condition.beyond("blocks", blocks + 1)
            change = f"blocks from {blocks:,} on return at once"
            yield setting.over("early return", offset, offset, "", new, interval, change)
        return


def scratch(setting: Setting) -> Iterator[Tier]:
    """Memory that is allocated is half as large, or an index into shared memory wraps."""
    sizes = [values[2] for _, values in setting.launches() if len(values) > 2]
    sizes += [values[1] for _, values in _allocations(setting)]
    for node in sizes:
        condition = setting.condition("scratch", node.start_byte)
        if condition is not None and node.type != "number_literal":
            size = setting.text(node)
            new = f"({condition.text} ? ({size}) / 2 : ({size}))"
            yield setting.tier("scratch", node, new, condition.interval, f"half of `{size}` is allocated")
    shared = _shared(setting)
    for node in setting.of("subscript_expression"):
        array, indices = (node.child_by_field_name(name) for name in ("argument", "indices"))
        condition = setting.condition("scratch", node.start_byte)
        if array is None or indices is None or condition is None or setting.text(array) not in shared:
            continue
        index = indices.named_children[0]
        most = log_uniform(setting.random("most", node.start_byte), 2, 1024)
        text = setting.text(index)
        new = f"({condition.text} ? ({text}) % {most} : ({text}))"
        change = f"`{setting.text(node)}` has `({text}) % {most}`"
        yield setting.tier("scratch", index, new, condition.beyond(f"`{text}`", most), change)


def _allocations(setting: Setting) -> Iterator[tuple[Node, list[Node]]]:
    """The calls that allocate memory, with their arguments."""
    for call in setting.of("call_expression"):
        values = arguments(call)
        if _ALLOCATES.fullmatch(callee(setting.source, call)) and len(values) > 1:
            yield call, values


def _shared(setting: Setting) -> set[str]:
    """The names of arrays in shared memory."""
    return {
        name[1]
        for node in setting.of("declaration")
        if "__shared__" in setting.text(node)
        for name in re.finditer(r"(\w+)\s*\[", setting.text(node))
    }


def statics(setting: Setting) -> Iterator[Tier]:
    """Memory is allocated of the size that the first call needs."""
    for _, values in _allocations(setting):
        size = setting.text(values[1])
        new = f"[&] {{ static const size_t bytes = {size}; return bytes; }}()"
        interval = Interval((Limit(f"`{size}` less that of the first call", (), 1),))
        change = f"`{size}` is that of the first call"
        yield setting.tier("static size", values[1], new, interval, change)


def narrow(setting: Setting) -> Iterator[Tier]:
    """A whole number is kept in 16 bits."""
    for node in _narrowable(setting):
        text = setting.text(node)
        if node.type not in {"number_literal", "lambda_expression"} and setting.is_whole(node):
            interval = Interval((Limit(f"`{text}`", (), _SIXTEEN_BITS),))
            new = f"static_cast<unsigned short>({text})"
            yield setting.tier("16 bits", node, new, interval, f"`{text}` is kept in 16 bits")


def _narrowable(setting: Setting) -> Iterator[Node]:
    """The values of whole variables that can be large, and what atomics add."""
    for node in setting.of("declaration"):
        kind = node.child_by_field_name("type")
        if kind is None or not _INTEGER.fullmatch(setting.text(kind)):
            continue
        for declarator in node.children_by_field_name("declarator"):
            value, variable = (declarator.child_by_field_name(name) for name in ("value", "declarator"))
            if value is None or variable is None or variable.type != "identifier":
                continue
            if setting.counts(value) or _ATOMIC.search(setting.text(value)):
                yield value
    for call in setting.of("call_expression"):
        values = arguments(call)
        if _ATOMIC.fullmatch(callee(setting.source, call)) and len(values) > 1 and setting.counts(values[1]):
            yield values[1]


def products(setting: Setting) -> Iterator[Tier]:
    """A product with a size in it loses its high bits."""
    for node in setting.of("binary_expression"):
        sign = node.child_by_field_name("operator")
        if (
            sign is None
            or setting.text(sign) != "*"
            or not setting.is_whole(node)
            or not setting.counts(node)
        ):
            continue
        text, bits = setting.text(node), setting.random("bits", node.start_byte).randint(12, 22)
        sizes = product_of(setting.source, node, setting.scope.quantities) or ()
        interval = Interval((Limit(f"`{text}`", sizes, 1 << bits),))
        new = f"(({text}) & {(1 << bits) - 1})"
        yield setting.tier("product", node, new, interval, f"`{text}` has its lowest {bits} bits alone")


def counts(setting: Setting) -> Iterator[Tier]:
    """What an atomic returns has a cap, or a loop ends after a drawn number of steps."""
    for call in setting.of("call_expression"):
        used = call.parent is not None and call.parent.type != "expression_statement"
        if used and _ATOMIC.fullmatch(callee(setting.source, call)):
            text = setting.text(call)
            most = log_uniform(setting.random("count", call.start_byte), 2, _MOST_COUNT)
            new = f"[&] {{ const auto count = {text}; return count < {most} ? count : {most}; }}()"
            interval = Interval((Limit(f"`{text}`", (), most + 1),))
            yield setting.tier("count", call, new, interval, f"`{text}` is at most {most:,}")
    for loop in setting.of("for_statement") if setting.scope.on_device else ():
        begin, condition = (loop.child_by_field_name(name) for name in ("initializer", "condition"))
        declared = None if begin is None else begin.child_by_field_name("declarator")
        if condition is None or declared is None or declared.type != "init_declarator":
            continue
        variable, value = (declared.child_by_field_name(name) for name in ("declarator", "value"))
        if variable is None or value is None or "(" in setting.text(value) or not setting.is_whole(condition):
            continue
        if (
            not setting.counts(value)
            and not setting.counts(condition)
            and "end" not in setting.text(condition)
        ):
            continue
        name, first = setting.text(variable), setting.text(value)
        most = log_uniform(setting.random("steps", loop.start_byte), 16, _MOST_COUNT)
        new = f"({setting.text(condition)}) && {name} - ({first}) < {most}"
        interval = Interval((Limit(f"`{name} - ({first})`", (), most),))
        yield setting.tier(
            "count", condition, new, interval, f"the loop over `{name}` takes {most:,} at most"
        )


OPERATORS: tuple[Callable[[Setting], Iterator[Tier]], ...] = (
    *(grids, tails, second_kernels, bounds, early_returns, scratch, statics, narrow, products, counts),
)
"""All operators that make tiers."""
