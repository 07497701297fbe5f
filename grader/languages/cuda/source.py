"""Reads CUDA C++ as far as the grader must: the functions that a file defines, their lines and parameters.

Tree-sitter's CUDA grammar parses the file twice. The first tree tells comments and literals from code, so
that directives are known; of ``#if`` alternatives the first one counts. The second tree is that of what is
left, without the bodies of functions and classes, so that no error in one of them costs another. No macro is
expanded and no header is read: whoever needs more asks the compiler.

The parser is C code, and its Python binding has crashed where a query was given a callback, or a source as a
memoryview. Here it parses bytes, and its nodes are walked; no query and no text is asked of them.

Layer: imports the parser alone.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import tree_sitter_cuda
from tree_sitter import Language, Parser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tree_sitter import Node, Tree

_LANGUAGE = Language(tree_sitter_cuda.language())
_QUIET = frozenset({"comment", "char_literal", "string_literal", "raw_string_literal"})
_OUTSIDE = frozenset({"translation_unit", "namespace_definition", "declaration_list"})
_PREFIXES = frozenset({"template_declaration", "linkage_specification"})
_BODIES = frozenset({"compound_statement", "try_statement"})
_PARAMETERS = frozenset({"parameter_declaration", "optional_parameter_declaration", "..."}) | {
    "variadic_parameter_declaration"
}
_ARRAYS = frozenset({"array_declarator", "abstract_array_declarator"})
_WITHOUT_FIELD = frozenset({"parenthesized_declarator", "reference_declarator", "variadic_declarator"})
_QUALIFIER = "type_qualifier"
_UNIMPORTANT = frozenset({_QUALIFIER, "attribute_declaration", "attribute_specifier", "struct", "="})
_ALIAS = re.compile(
    r"\btypedef\s+([^;{}()]+?)\s*\b(\w+)\s*;"
    r"|\busing\s+(\w+)\s*=\s*([^;{}()]+);"
    r"|^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([\w:][\w: \t]*[\w*])[ \t]*$",
    re.MULTILINE,
)
_IN_FRONT = frozenset({"const", "volatile", "struct", "typename"})  # of a type, or behind it
_CHAIN = 8  # aliases of aliases
_MOST_SECONDS = 1.0  # of processor time for a tree: 2,000 lines take a fiftieth of it


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function.

    Attributes:
        type: without qualifiers and spaces, such as ``float*``.
        name: maybe "".
        const: whether its base type is, so of ``const float*`` and ``float const*``, not of ``float* const``.
    """

    type: str
    name: str
    const: bool = False


@dataclass(frozen=True)
class Function:
    """A function that is defined outside of any class, in whatever namespace.

    Attributes:
        name: without namespace and template arguments.
        parameters: in order.
        begin: where its definition begins in the text, with a template's head.
        end: where it ends: behind its closing brace.
        first: the line of ``begin``, counted from 1.
        last: the line of the closing brace.
        words: every identifier in it.
        returns_nothing: whether its result is ``void``.
    """

    name: str
    parameters: tuple[Parameter, ...]
    begin: int
    end: int
    first: int
    last: int
    words: frozenset[str]
    returns_nothing: bool = False


def functions(text: str) -> tuple[Function, ...]:
    """The functions that ``text`` defines, in order.

    Of a file with errors, those that can be read; none where its braces do not match, and none of a file that
    takes the parser longer than any person's does.
    """
    quiet = _quiet(text)
    code = _chosen(quiet) if quiet is not None else ""
    heads = _heads(code)
    tree = _parsed(heads) if heads is not None else None
    if tree is None:
        return ()
    return tuple(
        function
        for first, definition in _definitions(tree.root_node)
        if (function := _function(code, first, definition)) is not None
    )


def aliases(text: str) -> dict[str, str]:
    """The types that ``text`` gives another name, by that name: by ``typedef``, ``using`` or a macro.

    Conditions, scopes and templates are not looked at: the last definition of a name counts.
    """
    found = {}
    for typedef, name, other, target, macro, replacement in _ALIAS.findall(_quiet(text) or ""):
        found[name or other or macro] = typedef or target or replacement
    return found


def resolved(parameter: Parameter, names: Mapping[str, str]) -> Parameter:
    """``parameter`` with the type that stands behind the ``names`` of other types."""
    kind, const = parameter.type, parameter.const
    for _ in range(_CHAIN):
        base = kind.rstrip("*")
        if base not in names:
            break
        words = names[base].replace("*", " * ").split()
        const = const or "const" in words
        kind = (
            " ".join(word for word in words if word not in _IN_FRONT).replace(" *", "*") + kind[len(base) :]
        )
    return replace(parameter, type=kind, const=const)


def without(text: str, removed: Iterable[Function]) -> str:
    """``text`` with spaces for some of its functions, so that all others keep their place.

    Directives stay: an ``#if`` may begin in one function and end behind it.
    """
    quiet = _quiet(text)
    directives = _directives((text if quiet is None else quiet).split("\n"))
    for function in removed:
        pairs = zip(
            text[function.begin : function.end].split("\n"),
            directives[function.first - 1 : function.last],
            strict=True,
        )
        lines = (line if directive else " " * len(line) for line, directive in pairs)
        text = text[: function.begin] + "\n".join(lines) + text[function.end :]
    return text


def _parsed(text: str) -> Tree | None:
    """The tree of ``text``, its places counted in characters; None if it took too long.

    Some repetitions take the parser a time that grows with the square of their length.
    """
    content = _one_byte_each(text)
    end = time.thread_time() + _MOST_SECONDS
    try:
        return Parser(_LANGUAGE).parse(
            lambda offset, _: content[offset:],
            progress_callback=lambda _offset, _error: time.thread_time() > end,
        )
    except ValueError:  # what it raises when it is told to stop
        return None


def _one_byte_each(text: str) -> bytes:
    """``text`` with a letter for each character that is not ASCII: but for literals, only names hold one."""
    return re.sub(r"[^\x00-\x7f]", "_", text).encode()


def _quiet(text: str) -> str | None:
    """``text`` with spaces for comments and empty strings for literals; None if it cannot be parsed."""
    tree = _parsed(text)
    if tree is None:
        return None
    parts: list[str] = []
    offset = 0
    pending = [tree.root_node]
    while pending:
        node = pending.pop()
        if (kind := node.type) in _QUIET:
            blank = _blank(text[node.start_byte : node.end_byte])
            quotes = kind != "comment" and blank.startswith("  ")
            parts += [text[offset : node.start_byte], '""' + blank[2:] if quotes else blank]
            offset = node.end_byte
        elif node.child_count:
            pending += node.children[::-1]
    return "".join(parts) + text[offset:]


def _chosen(quiet: str) -> str:
    """Code with spaces for directives, all alternatives but the first of each ``#if``, and ``#if 0``."""
    lines = quiet.split("\n")
    outer: list[tuple[bool, bool]] = []  # of each #if that is open, ``counts`` and ``found`` around it
    counts = True  # whether the lines here do
    taken = False  # whether an alternative of the innermost #if has counted
    for index, directive in enumerate(_directives(lines)):
        text = lines[index].lstrip()[1:].strip() if directive else ""
        if text.startswith("if"):
            outer.append((counts, taken))
            taken = _may_hold(text)
            counts = counts and taken
        elif text.startswith("el") and outer:
            counts = outer[-1][0] and not taken and _may_hold(text)
            taken = taken or _may_hold(text)
        elif text.startswith("endif") and outer:
            counts, taken = outer.pop()
        if directive or not counts:
            lines[index] = " " * len(lines[index])
    return "\n".join(lines)


def _may_hold(directive: str) -> bool:
    """Whether an ``#if``, ``#elif`` or ``#else`` says anything but that it never holds."""
    return directive.removeprefix("el").removeprefix("if").strip(" \t()") not in {"0", "false"}


def _directives(lines: list[str]) -> list[bool]:
    """Which lines belong to directives."""
    flags: list[bool] = []
    for index, line in enumerate(lines):
        continued = index > 0 and flags[-1] and lines[index - 1].rstrip().endswith("\\")
        flags.append(continued or line.lstrip().startswith("#"))
    return flags


def _heads(code: str) -> str | None:
    """Code with spaces for what is in braces, but for namespaces; None if the braces do not match."""
    parts: list[str] = []
    offset = start = inside = scopes = 0
    for match in re.finditer(r"[{}]", code):
        at = match.start()
        if (
            match[0] == "{"
            and not inside
            and _is_scope(code[max(start, code.rfind(";", start, at) + 1) : at])
        ):
            scopes += 1
        elif match[0] == "{":
            inside += 1
            if inside == 1:
                parts.append(code[offset : at + 1])
                offset = at + 1
        elif match[0] == "}" and inside:
            inside -= 1
            if inside == 0:
                parts.append(_blank(code[offset:at]))
                offset = at
        elif match[0] == "}":
            scopes -= 1
            if scopes < 0:
                return None
        start = at + 1
    return None if inside or scopes else "".join(parts) + code[offset:]


def _is_scope(head: str) -> bool:
    """Whether braces behind ``head`` hold functions: those of a namespace and of ``extern "C"``."""
    words = head.replace('""', " ").split()
    return "namespace" in words[:2] or words == ["extern"]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _definitions(root: Node) -> Iterator[tuple[Node, Node]]:
    """The functions outside of classes, each behind the node that it begins with.

    That is a template's head, ``extern "C"``, or a macro that the parser takes for an unfinished declaration.
    """
    pending = [(root, root)]
    while pending:
        first, node = pending.pop()
        if node.type == "function_definition":
            yield first, node
        elif node.type in _PREFIXES:
            pending += [(first, child) for child in reversed(node.children)]
        elif node.type in _OUTSIDE or node.is_error:
            firsts: list[Node] = []
            for index, child in enumerate(node.children):
                joined = index > 0 and _unfinished(node.children[index - 1])
                firsts.append(firsts[-1] if joined else child)
            pending += reversed(list(zip(firsts, node.children, strict=True)))


def _unfinished(node: Node) -> bool:
    """Whether the parser added the last token of a node itself."""
    while node.has_error and node.children:
        node = node.children[-1]
    return node.is_missing


def _function(code: str, first: Node, definition: Node) -> Function | None:
    """The function of a definition; None if that has no body or no name."""
    heads = [
        declarator for declarator in _declarators(definition) if declarator.type == "function_declarator"
    ]
    if not heads or not any(child.type in _BODIES for child in definition.children):
        return None
    head, named = heads[-1], heads[-1]
    if (
        len(heads) > 1 and heads[-2].child_by_field_name("declarator") == head
    ):  # a macro's call: NAMED(f)(int n)
        head = heads[-2]
    name, parameters = _name(code, named), _parameters(code, head)
    if head != named and len(arguments := _parameters(code, named)) == 1 and arguments[0].type.isidentifier():
        name = arguments[0].type
    return Function(
        name=name,
        parameters=tuple(parameters),
        begin=first.start_byte,
        end=definition.end_byte,
        first=first.start_point.row + 1,
        last=definition.end_point.row + 1,
        words=frozenset(re.findall(r"[^\W\d]\w*", code[first.start_byte : definition.end_byte])),
        returns_nothing=next(_declarators(definition)).type == "function_declarator"
        and _is_void(code, definition.child_by_field_name("type")),
    )


def _is_void(code: str, kind: Node | None) -> bool:
    return kind is not None and code[kind.start_byte : kind.end_byte] == "void"


def _declarators(node: Node) -> Iterator[Node]:
    """The declarators in a definition or a parameter, from the outermost to the name."""
    inner = node.child_by_field_name("declarator")
    while inner is not None:
        yield inner
        named = [child for child in inner.children if child.is_named] if inner.type in _WITHOUT_FIELD else []
        inner = named[-1] if named else inner.child_by_field_name("declarator")


def _name(code: str, head: Node) -> str:
    """The name that a function's declarator declares, without spaces."""
    node = inner = head.child_by_field_name("declarator")
    while inner is not None:
        node, inner = inner, inner.child_by_field_name("name")
    return "".join(code[node.start_byte : node.end_byte].split()) if node is not None else ""


def _parameters(code: str, head: Node) -> list[Parameter]:
    """The parameters of a function's declarator."""
    listed = head.child_by_field_name("parameters")
    parameters: list[Parameter] = []
    for child in listed.children if listed is not None else ():
        if child.type in _PARAMETERS:
            parameters.append(_parameter(code, child))
        elif (
            child.is_error and parameters and (name := code[child.start_byte : child.end_byte]).isidentifier()
        ):
            parameters[-1] = replace(
                parameters[-1], name=name
            )  # what came before it was a macro: float* RESTRICT x
    return [] if parameters == [Parameter("void", "")] else parameters


def _parameter(code: str, node: Node) -> Parameter:
    *_, last = (None, *_declarators(node))
    name = last if last is not None and last.type == "identifier" else None
    default = node.child_by_field_name("default_value")
    words: list[str] = []
    pending: list[Node | str] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            words.append(part)
        elif part.type in _ARRAYS:
            inner = part.child_by_field_name("declarator")
            pending += ["*", inner] if inner is not None else ["*"]
        elif part.type in _UNIMPORTANT or part in (name, default):
            continue
        elif part.child_count:
            pending += reversed(part.children)
        else:
            words.append(code[part.start_byte : part.end_byte])
    qualifiers = [
        code[child.start_byte : child.end_byte] for child in node.children if child.type == _QUALIFIER
    ]
    return Parameter(
        type=re.sub(r"(?<!\w) | (?!\w)", "", " ".join(words)),
        name=code[name.start_byte : name.end_byte] if name else "",
        const="const" in qualifiers,
    )
