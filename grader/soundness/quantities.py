"""Which integers of a kernel's functions hold sizes of its problem, or products of sizes.

They are followed from the launcher's parameters through calls, launches and locals. A parameter holds a size
where every call of its function passes the same one; what is assigned to again, or passed as anything else,
is unknown. This is constant propagation (Wegman and Zadeck 1991) with the names of sizes for constants.

Layer: imports kernels, edits and syntax.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.languages.cuda.source import functions
from grader.problems.problem import ScalarParameter
from grader.soundness.edits import Source
from grader.soundness.syntax import arguments, assignments, callee

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tree_sitter import Node

    from grader.languages.cuda.source import Function
    from grader.soundness.kernels import RightKernel

Product = tuple[str, ...]
"""The names of sizes whose product an integer is, in order of the alphabet."""

_UNKNOWN: Product = ()
_CAST = re.compile(r"(static_cast\s*<.*>|int|unsigned|size_t|u?int(32|64)_t)")
_WRITING = frozenset(
    {"update_expression", "pointer_expression", "lambda_declarator", "abstract_function_declarator"}
)
_DECLARES_INTEGER = re.compile(r"\b(int|unsigned|size_t|long|auto|u?int(32|64)_t)\b")


@dataclass(frozen=True)
class Scope:
    """A function that a launcher reaches, and what its integers hold.

    Attributes:
        file: that it is in.
        function: its place and parameters.
        on_device: whether it is a kernel or a function of the device.
        is_kernel: whether it is launched.
        quantities: by the name of a parameter or local.
    """

    file: str
    function: Function
    on_device: bool
    is_kernel: bool
    quantities: Mapping[str, Product]

    def holds(self, node: Node) -> bool:
        """Whether a node of the file is in it."""
        return self.function.begin <= node.start_byte and node.end_byte <= self.function.end


@dataclass
class _Definition:
    """A function with the nodes in it, and what is known of its parameters so far: nothing, or a product."""

    file: str
    source: Source
    function: Function
    nodes: tuple[Node, ...]
    parameters: dict[str, Product] = field(default_factory=dict)

    def names(self, functions: Collection[str]) -> Iterator[Node]:
        """The nodes in its body that are names of these functions."""
        for node in self.nodes:
            declares = node.parent is not None and node.parent.type == "function_declarator"
            if node.type == "identifier" and not declares and self.source.text_of(node) in functions:
                yield node

    def meet(self, name: str, product: Product) -> bool:
        """Take what one more call passes; whether that changes anything."""
        before = self.parameters.get(name)
        self.parameters[name] = product if before in {None, product} else _UNKNOWN
        return self.parameters[name] != before


def scopes(kernel: RightKernel, sizes: Collection[str]) -> tuple[Scope, ...]:
    """The functions that a kernel's launcher can come to call, with what their integers hold.

    Args:
        kernel: with one entry point or several, one for each element type.
        sizes: the names of the scalar parameters that count.
    """
    definitions = _definitions(kernel)
    by_name = defaultdict(list)
    for definition in definitions:
        by_name[definition.function.name].append(definition)
    pending = []
    for name in kernel.problem.entry_points:
        for launcher in by_name.get(name, ()):
            pairs = zip(launcher.function.parameters, kernel.problem.parameters, strict=False)
            for parameter, meaning in pairs:
                counts = isinstance(meaning, ScalarParameter) and meaning.name in sizes
                launcher.meet(parameter.name, (meaning.name,) if counts else _UNKNOWN)
            pending.append(launcher)
    reached = {id(launcher): launcher for launcher in pending}
    while pending:
        caller = pending.pop()
        for target, passed in _calls(caller, by_name):
            changes = [target.meet(name, product) for name, product in passed.items()]
            if any(changes) or id(target) not in reached:
                reached[id(target)] = target
                pending.append(target)
    return tuple(_scope(definition) for definition in definitions if id(definition) in reached)


def _definitions(kernel: RightKernel) -> list[_Definition]:
    definitions = []
    for file, text in kernel.files.items():
        source = Source(text)
        for function in functions(text):
            inside = (
                node
                for node in source.nodes
                if function.begin <= node.start_byte and node.end_byte <= function.end
            )
            definitions.append(_Definition(file, source, function, tuple(inside)))
    return definitions


def _scope(definition: _Definition) -> Scope:
    function, text = definition.function, definition.source.text
    head = text[function.begin : function.end].partition("{")[0]
    products = {name: product for name, product in _products(definition).items() if product}
    return Scope(
        definition.file,
        function,
        ("__global__" in head or "__device__" in head) and "__host__" not in head,
        "__global__" in head,
        products,
    )


def _calls(
    caller: _Definition, by_name: Mapping[str, list[_Definition]]
) -> Iterator[tuple[_Definition, Mapping[str, Product]]]:
    """The functions that ``caller`` calls, launches or takes the address of, with what their parameters get.

    A parameter of which nothing is known yet is left out, so that a function that calls itself learns from
    the other calls.
    """
    products, source = _products(caller), caller.source
    followed: set[int] = set()  # where the names of functions stand that are followed
    aliases: dict[str, set[str]] = {}
    for variable, value in _initialised(caller):
        if value.type != "lambda_expression":
            names = [node for node in caller.names(by_name) if _encloses(value, node)]
            aliases[variable] = {source.text_of(node) for node in names}
            followed |= {node.start_byte for node in names}
    for call in caller.nodes:
        function = call.child_by_field_name("function") if call.type == "call_expression" else None
        if function is None:
            continue
        followed.add(function.start_byte)
        name = source.text_of(function).partition("<")[0].rpartition("::")[2].strip()
        values = arguments(call)
        for definition in (
            candidate for target in aliases.get(name) or {name} for candidate in by_name.get(target, ())
        ):
            if len(values) <= len(definition.function.parameters):
                passed = {
                    parameter.name: product
                    for parameter, value in zip(definition.function.parameters, values, strict=False)
                    if (product := product_of(source, value, products)) is not None
                }
                yield definition, passed
    for node in caller.names(by_name):
        if node.start_byte not in followed:  # passed on, and called where nobody looks
            for definition in by_name[source.text_of(node)]:
                yield definition, {parameter.name: _UNKNOWN for parameter in definition.function.parameters}


def _encloses(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _products(definition: _Definition) -> dict[str, Product | None]:
    """The product of sizes that each integer of a function holds; None while nothing is known of it."""
    products: dict[str, Product | None] = {
        parameter.name: definition.parameters.get(parameter.name)
        for parameter in definition.function.parameters
    }
    written = _written(definition)
    for name, value in _initialised(definition):
        products[name] = (
            _UNKNOWN if name in products else product_of(definition.source, value, products)
        )  # a second variable of the same name hides the first one somewhere
    return {name: _UNKNOWN if name in written else product for name, product in products.items()}


def _initialised(definition: _Definition) -> Iterator[tuple[str, Node]]:
    """The locals of integer types, or of one that follows from the value, with their values."""
    for node in definition.nodes:
        kind = node.child_by_field_name("type") if node.type == "declaration" else None
        if kind is None or not _DECLARES_INTEGER.search(definition.source.text_of(kind)):
            continue
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            variable = declarator.child_by_field_name("declarator")
            if value is not None and variable is not None and variable.type == "identifier":
                yield definition.source.text_of(variable), value


def _written(definition: _Definition) -> set[str]:
    """The variables that are assigned to or whose address is taken, and the parameters of lambdas."""
    source = definition.source
    lefts = [left for node, _, left, _ in assignments(source) if _within(definition, node)]
    writes = [node for node in definition.nodes if node.type in _WRITING]
    return {word for node in (*lefts, *writes) for word in re.findall(r"\w+", source.text_of(node))}


def _within(definition: _Definition, node: Node) -> bool:
    return definition.function.begin <= node.start_byte and node.end_byte <= definition.function.end


def product_of(source: Source, node: Node, products: Mapping[str, Product | None]) -> Product | None:
    """The sizes whose product an expression is.

    It is empty for an expression of another kind, and None while a variable in it is not known yet.
    """
    while node.type in {"parenthesized_expression", "cast_expression"}:
        node = node.named_children[-1]
    if node.type == "identifier":
        return products.get(source.text_of(node), _UNKNOWN)
    if node.type == "call_expression" and _CAST.fullmatch(callee(source, node)) and len(arguments(node)) == 1:
        return product_of(source, arguments(node)[0], products)
    if node.type == "binary_expression":
        left, sign, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
        if left is not None and right is not None and sign is not None and source.text_of(sign) == "*":
            factors = product_of(source, left, products), product_of(source, right, products)
            if _UNKNOWN in factors:
                return _UNKNOWN
            if factors[0] is not None and factors[1] is not None:
                return tuple(sorted(factors[0] + factors[1]))
            return None
    return _UNKNOWN
