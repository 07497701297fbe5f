"""The ways in which kernels go wrong, each as a function from a source to edits.

An operator knows the text alone, no types: an edit that does not compile is left out later, and one that
changes nothing is known by its PTX.

Layer: imports edits and syntax.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grader.soundness.syntax import (
    arguments,
    array_sizes,
    assignments,
    binaries,
    callee,
    configurations,
    floats,
    only_call,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tree_sitter import Node

    from grader.soundness.edits import Edit, Source

    Operator = Callable[[Source], Iterator[Edit]]

_BARRIER = re.compile(r"__sync\w+|__threadfence\w*|(.*(\.|::|->))?(sync|arrive_and_wait)|__nanosleep")
_SHUFFLE = re.compile(r"__shfl\w*_sync")
_MASKED = re.compile(r"__(shfl\w*|ballot|any|all|reduce_\w+|match_\w+)_sync")
_STRICTNESS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/"}
_ORDERED = frozenset({"-", "/", "%", "<<", ">>"})
_EXTREMES = {"fmaxf": "fminf", "fmax": "fmin", "max": "min", "fminf": "fmaxf", "fmin": "fmax", "min": "max"}
_ZERO = re.compile(r"0?\.0*f?|0\.f?")
_INFINITE = re.compile(r"(?P<sign>-?)\s*(INFINITY|FLT_MAX|HUGE_VALF?|std::numeric_limits.*)")
_FLOATING = re.compile(r"\d*\.\d*(e[-+]?\d+)?f?|\d+e[-+]?\d+f?", re.IGNORECASE)
_WHOLE = re.compile(r"(?P<digits>\d+)(?P<suffix>[uUlL]*)")
_COUNTED_ELSEWHERE = frozenset({"array_declarator", "template_parameter_list", "kernel_call_syntax"})
_INTEGERS = re.compile(r"\b(int|unsigned|size_t|long|auto|u?int(32|64)_t)\b")


def barriers(source: Source) -> Iterator[Edit]:
    """A barrier or fence is removed."""
    for statement in source.of("expression_statement"):
        name = only_call(source, statement)
        if name and _BARRIER.fullmatch(name):
            yield source.replaced("barrier", statement, ";", "a thread overtakes another one there")


def comparisons(source: Source) -> Iterator[Edit]:
    """A comparison becomes strict, or stops being so: ``<`` for ``<=`` and the like."""
    for node, sign, left, right in binaries(source, _STRICTNESS):
        yield source.replaced(
            "comparison", sign, _STRICTNESS[source.text_of(sign)], _equal(source, left, right)
        )
        assert node is not None


def bounds(source: Source) -> Iterator[Edit]:
    """A bound is off by one, on the side that leaves something out."""
    for _, sign, left, right in binaries(source, {"<", "<=", ">", ">="}):
        step = "- 1" if source.text_of(sign).startswith("<") else "+ 1"
        yield source.replaced(
            "bound", right, f"({source.text_of(right)}) {step}", _equal(source, left, right, f" {step}")
        )


def guards(source: Source) -> Iterator[Edit]:
    """A condition, or a part of one, is dropped."""
    for statement in source.of("if_statement"):
        clause = statement.child_by_field_name("condition")
        value = None if clause is None else clause.child_by_field_name("value")
        then = statement.child_by_field_name("consequence")
        if value is None or then is None or any(child.type == "constexpr" for child in statement.children):
            continue
        parts = _conjuncts(source, value)
        returns = then.type == "return_statement"
        held = "holds" if returns else "does not hold"
        if len(parts) == 1:
            needs = f"`{source.text_of(value)}` {held}"
            yield source.replaced("guard", value, "false" if returns else "true", needs)
        for part in parts if len(parts) > 1 else ():
            yield source.replaced("guard", part, "true", f"`{source.text_of(part)}` does not hold")


def operands(source: Source) -> Iterator[Edit]:
    """Operands of an index or of an operation whose order counts are swapped."""
    for node, _, left, right in binaries(source, _ORDERED):
        between = source.text[left.end_byte : right.start_byte]
        yield source.replaced("operands", node, f"({source.text_of(right)}){between}({source.text_of(left)})")
    for node, _, left, right in binaries(source, {"+"}):
        factors = _factors(source, left)
        if factors is not None and _counts(source, node):
            new = f"{source.text_of(right)} * {source.text_of(factors[1])} + {source.text_of(factors[0])}"
            yield source.replaced("operands", node, new)
    for node in source.of("subscript_expression"):
        outer = node.child_by_field_name("argument")
        if outer is not None and outer.type == "subscript_expression":
            first, second = (subscript.child_by_field_name("indices") for subscript in (outer, node))
            if first is not None and second is not None and source.text_of(first) != source.text_of(second):
                array = outer.child_by_field_name("argument")
                assert array is not None
                swapped = source.text_of(array) + source.text_of(second) + source.text_of(first)
                yield source.replaced("operands", node, swapped, "there are not as many rows as columns")


def shuffles(source: Source) -> Iterator[Edit]:
    """A warp mask or the distance of a shuffle is changed."""
    for call in source.of("call_expression"):
        name, values = callee(source, call), arguments(call)
        if _MASKED.fullmatch(name) and values:
            yield source.replaced("mask", values[0], f"({source.text_of(values[0])}) & 0xffffu")
        if _SHUFFLE.fullmatch(name) and len(values) > 2:
            yield source.replaced("distance", values[2], f"({source.text_of(values[2])}) / 2")


def initials(source: Source) -> Iterator[Edit]:
    """What a reduction begins with is changed, or left uninitialised."""
    for node in source.of("init_declarator", "assignment_expression"):
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        named = node.child_by_field_name("declarator")
        if value is None or (value.type == "initializer_list" and named is None):
            continue
        if (
            value.type == "initializer_list"
            and source.text_of(value).strip("{} ") == ""
            and named is not None
        ):
            filled = source.replaced("initial value", node, source.text_of(named))
            yield filled
        for part in value.named_children if value.type == "initializer_list" else (value,):
            text = source.text_of(part)
            if _ZERO.fullmatch(text):
                yield source.replaced("initial value", part, "1.0f")
            elif _INFINITE.fullmatch(text):
                yield source.replaced("initial value", part, "0.0f", "all values lie on the other side of 0")


def reductions(source: Source) -> Iterator[Edit]:
    """A maximum for a sum, a minimum for a maximum."""
    variables = floats(source)
    for call in source.of("call_expression"):
        name, values = callee(source, call), arguments(call)
        if name in _EXTREMES and len(values) == 2:
            function = call.child_by_field_name("function")
            assert function is not None
            yield source.replaced("reduction", function, _EXTREMES[name])
            both = " + ".join(f"({source.text_of(value)})" for value in values)
            yield source.replaced("reduction", call, f"({both})")
    for node, sign, left, right in assignments(source):
        if source.text_of(sign) == "+=" and _is_float(source, left, variables):
            target = source.text_of(left)
            yield source.replaced("reduction", node, f"{target} = fmaxf({target}, {source.text_of(right)})")
    for node, _, left, right in binaries(source, {"+"}):
        if node.parent is not None and node.parent.type == "return_statement":
            yield source.replaced(
                "reduction", node, f"fmaxf({source.text_of(left)}, {source.text_of(right)})"
            )


def accumulations(source: Source) -> Iterator[Edit]:
    """``=`` for ``+=`` and the like."""
    for node, sign, _, _ in assignments(source):
        in_loop_head = node.parent is not None and node.parent.type == "for_statement"
        if source.text_of(sign) != "=" and not in_loop_head:
            yield source.replaced("accumulation", sign, "=", "there is more than one term")


def streams(source: Source) -> Iterator[Edit]:
    """Work goes to the default stream."""
    for configuration in configurations(source):
        if len(configuration) > 3:
            yield source.replaced("stream", configuration[3], "0", "inputs arrive through the given stream")
    for call in source.of("call_expression"):
        if not callee(source, call).startswith("cuda"):
            continue
        for argument in arguments(call):
            if re.search(r"\bstream\w*$", source.text_of(argument)):
                yield source.replaced("stream", argument, "nullptr")


def runtime_calls(source: Source) -> Iterator[Edit]:
    """A call of the CUDA runtime is left out."""
    for statement in source.of("expression_statement"):
        if only_call(source, statement).startswith("cuda"):
            yield source.replaced("runtime call", statement, ";")


def launches(source: Source) -> Iterator[Edit]:
    """A grid or block is short by one, and shared memory has half its size."""
    for configuration in configurations(source):
        for dimension, argument in zip(("grid", "block"), configuration, strict=False):
            first = arguments(argument) if argument.type == "call_expression" else []
            short = first[0] if first and callee(source, argument) == "dim3" else argument
            yield source.replaced(dimension, short, f"({source.text_of(short)}) - 1")
        if len(configuration) > 2 and source.text_of(configuration[2]) != "0":
            yield source.replaced(
                "shared memory", configuration[2], f"({source.text_of(configuration[2])}) / 2"
            )


def shared_arrays(source: Source) -> Iterator[Edit]:
    """A shared array has half its size."""
    for declaration in source.of("declaration"):
        if not any(source.text_of(child) == "__shared__" for child in declaration.children):
            continue
        for declarator in declaration.children_by_field_name("declarator"):
            for size in array_sizes(declarator):
                yield source.replaced("shared memory", size, f"(({source.text_of(size)}) + 1) / 2")


def precisions(source: Source) -> Iterator[Edit]:
    """Half precision inside, and float for double."""
    variables = floats(source)
    for declaration in source.of("declaration"):
        kind = declaration.child_by_field_name("type")
        if kind is None or source.text_of(kind) != "float":
            continue
        for declarator in declaration.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            if value is not None and value.type != "initializer_list" and not _exact(source.text_of(value)):
                yield source.replaced("half precision", value, _halved(source.text_of(value)))
    for _, sign, left, right in assignments(source):
        if _is_float(source, left, variables) and source.text_of(sign) in {"=", "+=", "*="}:
            yield source.replaced("half precision", right, _halved(source.text_of(right)))
    for kind in source.of("primitive_type"):
        if source.text_of(kind) == "double":
            yield source.replaced("float for double", kind, "float")


def returns(source: Source) -> Iterator[Edit]:
    """A function ends too early: before its last statement, or for one thread of a kernel."""
    for function in source.of("function_definition"):
        body, kind = function.child_by_field_name("body"), function.child_by_field_name("type")
        if body is None or kind is None or source.text_of(kind) != "void":
            continue
        statements = [child for child in body.named_children if child.type != "comment"]
        if "__global__" in source.text[function.start_byte : body.start_byte] and statements:
            early = " if (threadIdx.x + 1 == blockDim.x) return; "
            yield source.inserted("early return", body.start_byte + 1, early)
        if len(statements) > 1:
            yield source.inserted("early return", statements[-1].start_byte, "if (true) return; ")


def aliases(source: Source) -> Iterator[Edit]:
    """A kernel writes to an array that it may only read."""
    for function in source.of("function_definition"):
        body = function.child_by_field_name("body")
        if body is None or "__global__" not in source.text[function.start_byte : body.start_byte]:
            continue
        for parameter in source.of("parameter_declaration"):
            if not function.start_byte <= parameter.start_byte < body.start_byte:
                continue
            match = re.fullmatch(
                r"(?s)const\s+([\w:]+)\s*\*\s*(?:__restrict__\s*)?(\w+)", source.text_of(parameter)
            )
            if match is not None:
                element, name = match.groups()
                write = f" const_cast<{element}*>({name})[0] = {element}(); "
                yield source.inserted("write to an input", body.end_byte - 1, write)


def constants(source: Source) -> Iterator[Edit]:
    """A number is changed: one more, or twice as much."""
    for number in source.of("number_literal"):
        text, parent = source.text_of(number), number.parent
        if parent is None or parent.type in _COUNTED_ELSEWHERE:
            continue
        integer = _WHOLE.fullmatch(text)
        if integer is not None and not (len(text) > 1 and text.startswith("0")):
            yield source.replaced("constant", number, f"{int(integer['digits']) + 1}{integer['suffix']}")
        elif _FLOATING.fullmatch(text) and not _ZERO.fullmatch(text):
            yield source.replaced("constant", number, f"(2 * {text})")


def arithmetic(source: Source) -> Iterator[Edit]:
    """An arithmetic operator becomes another one."""
    for _, sign, _, _ in binaries(source, _ARITHMETIC):
        yield source.replaced("arithmetic", sign, _ARITHMETIC[source.text_of(sign)])


OPERATORS: tuple[Operator, ...] = (
    *(barriers, comparisons, bounds, guards, operands, shuffles, initials, reductions, accumulations),
    *(streams, runtime_calls, launches, shared_arrays, precisions, returns, aliases, constants, arithmetic),
)
"""All of them."""


def edits(source: Source) -> tuple[Edit, ...]:
    """The edits of all operators, in the order of the text; each change once."""
    changes = [edit for operator in OPERATORS for edit in operator(source)]
    first = {(edit.begin, edit.end, edit.new): edit for edit in reversed(changes)}
    return tuple(sorted(first.values(), key=lambda edit: (edit.begin, edit.end, edit.operator, edit.new)))


def _equal(source: Source, left: Node, right: Node, step: str = "") -> str:
    return f"`{source.text_of(left)}` equals `{source.text_of(right)}{step}`"


def _conjuncts(source: Source, node: Node) -> list[Node]:
    """The parts of a condition that ``&&`` joins."""
    sign = node.child_by_field_name("operator")
    if node.type != "binary_expression" or sign is None or source.text_of(sign) != "&&":
        return [node]
    sides = (node.child_by_field_name(name) for name in ("left", "right"))
    return [part for side in sides if side is not None for part in _conjuncts(source, side)]


def _factors(source: Source, node: Node) -> tuple[Node, Node] | None:
    while node.type == "parenthesized_expression":
        node = node.named_children[0]
    sign = node.child_by_field_name("operator")
    if node.type != "binary_expression" or sign is None or source.text_of(sign) != "*":
        return None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    return None if left is None or right is None else (left, right)


def _counts(source: Source, node: Node) -> bool:
    """Whether an expression is an index, or initialises a variable of an integer type."""
    parent = node.parent
    while parent is not None and parent.type in {"parenthesized_expression", "binary_expression"}:
        parent = parent.parent
    if parent is None or parent.type != "init_declarator":
        return parent is not None and parent.type == "subscript_argument_list"
    declaration = parent.parent
    kind = None if declaration is None else declaration.child_by_field_name("type")
    return kind is not None and _INTEGERS.search(source.text_of(kind)) is not None


def _is_float(source: Source, node: Node, floats: Mapping[str, int]) -> bool:
    """Whether what is assigned to is a float, as far as the declarations tell."""
    text = source.text_of(node)
    base = re.split(r"[\[(]", text.lstrip("*"))[0].rpartition(".")[2].strip()
    return floats.get(base) == text.count("[") + text.startswith("*")


def _exact(value: str) -> bool:
    """Whether half precision holds a value as it is."""
    return (_ZERO.fullmatch(value) or _INFINITE.fullmatch(value)) is not None


def _halved(value: str) -> str:
    return f"__half2float(__float2half({value}))"
