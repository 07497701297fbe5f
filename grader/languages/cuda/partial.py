"""What can still be built of a file that does not compile: all but the functions that the errors are in.

Left out are the functions that hold an error, and those that mention one that is left out, until none does.
What stays is the student's text, on its own lines; as nothing of it mentions what is gone, it means what it
meant before. An error that is in no function of the file itself, such as one in a header or a missing brace,
leaves nothing to build.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grader.languages.cuda.compile import short_name
from grader.languages.cuda.source import functions, without
from grader.languages.language import LeftOut, Partial

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from grader.languages.cuda.source import Function
    from grader.languages.language import Build

_ROUNDS = 4  # of compiling: errors of one kind hide those of the next
_ERROR = re.compile(r"(?:\./)?(?P<file>[^\s:()][^:()]*)[(:](?P<line>\d+)(?:\)|:\d+)?: *(?:[a-z ]*)error\b")
_INSTANTIATED = re.compile(r"instantiation of .* at line (?P<line>\d+)(?: of (?:\./)?(?P<file>\S+))?$")
_ENTRY = re.compile(r"ptxas (?:error|fatal) .*'(?P<name>[^']*)'")
_CALLER = re.compile(r"in function [`'](?P<name>[^']*)'")


def build_partly(
    failed: Build,
    contents: Mapping[str, bytes],
    entry_points: Collection[str],
    compiled: Callable[[Mapping[str, bytes]], Build],
) -> Partial | None:
    """The rest of a file, if that compiles and has one of ``entry_points`` left; else None.

    Args:
        failed: the build of the whole file.
        contents: the file and what it may include.
        entry_points: what is worth building it for.
        compiled: compiles changed contents.
    """
    text = contents[failed.source].decode(errors="surrogateescape")
    definitions = functions(text)
    gone: set[Function] = set()
    build = failed
    for _ in range(_ROUNDS):
        blamed = _blamed(build, definitions)
        if not blamed or blamed <= gone:
            return None
        gone |= blamed
        while mentioning := {
            function
            for function in definitions
            if function not in gone and function.words & {f.name for f in gone}
        }:
            gone |= mentioning
        remaining = {function.name for function in definitions if function not in gone}
        if not remaining & set(entry_points) or any(not function.name.isidentifier() for function in gone):
            return None
        rest = without(text, gone).encode(errors="surrogateescape")
        build = compiled({**contents, failed.source: rest})
        if build.ok:
            left_out = (
                LeftOut(function.name, function.first, function.last)
                for function in definitions
                if function in gone
            )
            return Partial(build, tuple(left_out))
    return None


def _blamed(build: Build, definitions: Collection[Function]) -> set[Function]:
    """The functions that the errors are in; none if one of the errors is elsewhere."""
    blamed: set[Function] = set()
    for error in _errors(build):
        holders = {
            function
            for function in definitions
            if (
                function.name == error if isinstance(error, str) else function.first <= error <= function.last
            )
        }
        if not holders:
            return set()
        blamed |= holders
    return blamed


def _errors(build: Build) -> Iterator[int | str]:
    """The line, or the function's name, of each error; 0 where it is in no line of the file itself."""
    foreign = False  # an error in a header, whose instantiation in the file is yet to be named
    for line in build.log.splitlines():
        if error := _ERROR.match(line):
            if foreign:
                yield 0
            foreign = error["file"] != build.source
            if not foreign:
                yield int(error["line"])
        elif foreign and (user := _INSTANTIATED.search(line)) and user["file"] == build.source:
            foreign = False
            yield int(user["line"])
        elif named := _ENTRY.search(line) or _CALLER.search(line):
            yield short_name(named["name"]).partition("<")[0].rpartition("::")[2]
    if foreign:
        yield 0
