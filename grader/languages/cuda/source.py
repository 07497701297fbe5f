"""Reads CUDA C++ as far as the grader must: the functions that a file defines, their lines and parameters.

It is no parser. Comments, literals and directives are blanked, of ``#if`` alternatives the first one counts,
and what is left is cut into declarations where braces close. Whoever needs more asks the compiler.

Layer: standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(
    r"""//(?:\\\r?\n|[^\n])* | /\*.*?\*/ | R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | ^[ \t]*\#(?:\\\r?\n|[^\n])*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_TRANSPARENT = re.compile(r'(?:extern\s*"\s*"|(?:inline\s+)?namespace(?:\s+[\w:]+)?)\s*')
_NAME = re.compile(r"(?P<name>operator\s*\S+?|~?\w+)\s*(?P<special><[^()]*>)?\s*$")
_TRAILER = re.compile(r"(?:const|noexcept|override|final|->[^()]*|\s)*$")
_QUALIFIER = re.compile(r"\b(?:const|volatile|struct|restrict|__restrict__|__restrict)\b")
_NO_FUNCTIONS = frozenset({"if", "for", "while", "switch", "return", "sizeof", "decltype"})


@dataclass(frozen=True)
class Parameter:
    """One parameter: its type without qualifiers and spaces, such as ``float*``, and its name, maybe ""."""

    type: str
    name: str


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
    """

    name: str
    parameters: tuple[Parameter, ...]
    begin: int
    end: int
    first: int
    last: int
    words: frozenset[str]


def functions(text: str) -> tuple[Function, ...]:
    """The functions that ``text`` defines, in order; none where its braces do not match."""
    code = blanked(text)
    found: list[Function] = []
    start = place = depth = 0
    while True:
        place = _next(code, place)
        if place == len(code):
            return tuple(found) if depth == 0 else ()
        mark = code[place]
        if mark == "{":
            head = code[start:place]
            if _TRANSPARENT.fullmatch(head.strip()):
                depth += 1
            else:
                end = _closing(code, place)
                if end is None:
                    return ()
                if (function := _function(code, start, place, end)) is not None:
                    found.append(function)
                else:
                    end = _after_class(code, end)
                place = end
        elif mark == "}":
            depth -= 1
            if depth < 0:
                return ()
        place += 1
        start = place


def without(text: str, removed: Iterable[Function]) -> str:
    """``text`` with spaces for some functions, so that all others keep their place.

    Directives stay: an ``#if`` may begin in one function and end behind it.
    """
    directives = _directives(_quiet(text).split("\n"))
    for function in removed:
        lines_of_it = text[function.begin : function.end].split("\n")
        kept = zip(lines_of_it, directives[function.first - 1 : function.last], strict=True)
        lines = (line if directive else " " * len(line) for line, directive in kept)
        text = text[: function.begin] + "\n".join(lines) + text[function.end :]
    return text


def blanked(text: str) -> str:
    """``text`` with spaces for comments, the inside of literals, and directives.

    With the directives go all alternatives but the first of each ``#if``, and the whole of ``#if 0``.
    """
    lines = _quiet(text).split("\n")
    taken: list[bool] = []  # of each #if that is open, whether its present alternative counts
    for index, directive in enumerate(_directives(lines)):
        match = re.match(r"\s*#\s*(?P<word>\w*)(?P<rest>.*)", lines[index]) if directive else None
        word, rest = (match["word"], match["rest"]) if match is not None else ("", "")
        if word.startswith("if"):
            taken.append(not (word == "if" and rest.strip() in {"0", "false"}))
        elif word in {"else", "elif"} and taken:
            taken[-1] = not taken[-1] and word == "else"
        elif word == "endif" and taken:
            taken.pop()
        if directive or not all(taken):
            lines[index] = " " * len(lines[index])
    return "\n".join(lines)


def _quiet(text: str) -> str:
    """``text`` with spaces for comments and the inside of literals."""

    def quiet(match: re.Match[str]) -> str:
        token = match[0]
        if token.lstrip().startswith("#"):
            return token  # a quote in it is no literal's
        if token[0] in "\"'":
            return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(quiet, text)


def _directives(lines: list[str]) -> list[bool]:
    """Which lines belong to directives."""
    found: list[bool] = []
    for index, line in enumerate(lines):
        continued = index > 0 and found[-1] and lines[index - 1].rstrip().endswith("\\")
        found.append(continued or line.lstrip().startswith("#"))
    return found


def _next(code: str, place: int) -> int:
    """The next ``;``, ``{`` or ``}`` outside of parentheses; the end of the code if there is none."""
    depth = 0
    for index in range(place, len(code)):
        mark = code[index]
        if mark in "([":
            depth += 1
        elif mark in ")]":
            depth -= 1
        elif mark in ";{}" and depth <= 0:
            return index
    return len(code)


def _closing(code: str, place: int) -> int | None:
    """Where the brace at ``place`` is closed."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, place):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return None


def _after_class(code: str, place: int) -> int:
    """The end of a class or an initialised variable whose braces end at ``place``: its semicolon."""
    end = _next(code, place + 1)
    return end if end < len(code) and code[end] == ";" else place


def _function(code: str, start: int, brace: int, end: int) -> Function | None:
    """The function whose head begins at ``start``; None if it is something else with braces."""
    whole = code[start:brace]
    head = _TRAILER.sub("", _without_template(whole))
    if not head.endswith(")"):
        return None
    opening = _opening(head)
    match = _NAME.search(head[:opening])
    before = head[: match.start()] if match is not None else ""
    if match is None or match["name"] in _NO_FUNCTIONS or "=" in before:
        return None
    begin = start + len(whole) - len(whole.lstrip())
    return Function(
        name=match["name"],
        parameters=tuple(map(_parameter, _split(head[opening + 1 : -1]))),
        begin=begin,
        end=end + 1,
        first=code.count("\n", 0, begin) + 1,
        last=code.count("\n", 0, end) + 1,
        words=frozenset(re.findall(r"[A-Za-z_]\w*", code[start : end + 1])),
    )


def _without_template(head: str) -> str:
    """A head without ``template <...>``."""
    match = re.match(r"\s*template\s*<", head)
    if match is None:
        return head
    depth = 1
    for index in range(match.end(), len(head)):
        depth += {"<": 1, ">": -1}.get(head[index], 0)
        if depth == 0:
            return _without_template(head[index + 1 :])
    return head


def _opening(head: str) -> int:
    """Where the parenthesis that ends ``head`` was opened; its end if nowhere."""
    depth = 0
    for index in range(len(head) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(head[index], 0)
        if depth == 0:
            return index
    return len(head)


def _split(parameters: str) -> list[str]:
    """A parameter list, cut at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for index, mark in enumerate(parameters):
        depth += (mark in "(<[{") - (mark in ")>]}")
        if mark == "," and depth == 0:
            parts.append(parameters[start:index])
            start = index + 1
    parts.append(parameters[start:])
    return [part.strip() for part in parts if part.strip() not in {"", "void"}]


def _parameter(text: str) -> Parameter:
    declared = _QUALIFIER.sub(" ", text.partition("=")[0])
    array = "*" if "[" in declared else ""
    declared = declared.partition("[")[0]
    match = re.fullmatch(r"\s*(?P<type>.*?[\s*&])\s*(?P<name>[A-Za-z_]\w*)\s*", declared, re.DOTALL)
    words = {"unsigned", "int", "long", "short", "bool", "float", "double", "size_t"}
    if match is None or match["name"] in words or not match["type"].strip():
        return Parameter("".join(declared.split()) + array, "")
    return Parameter(" ".join(match["type"].split()).replace(" *", "*") + array, match["name"])
