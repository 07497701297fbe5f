"""The source lines around a finding, which the record keeps so that reports need no other file."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from grader.records.findings import BARRIER, STREAMS, parting
from grader.records.mangled import own_name
from grader.records.record import SourceLines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grader.records.findings import Finding

AROUND = 3  # lines before the place, and after it
MOST_CHARACTERS = 200  # of a line
_LAUNCH = r"^(?!\s*//).*?\b{}\s*(?:<[^;{{}}]*?>)?\s*<<<"
_CALL = r"^(?!\s*//).*?\b{}\s*\("
_NESTED = re.compile(r"_ZNK?(\d+)(\w+)")
_LIBRARIES = {
    "cublas": "cuBLAS",
    "cusparse": "cuSPARSE",
    "curand": "cuRAND",
    "cub": "CUB",
    "thrust": "Thrust",
}
_OF_HEADERS = ("thrust", "cub")  # whose calls have names of their own, and whose kernels are CUB's
_OTHERWISE = r"(?:Create|Destroy|Set|Get)\w*"  # calls that launch nothing
_NO_ALGORITHM = r"(?:\w+_vector|\w+_ptr|\w+_iterator|\w+_cast|tuple|pair)\b"


def excerpt(sources: Mapping[str, bytes], file: str, line: int) -> SourceLines | None:
    """The lines around ``line`` (from 1) of ``file``, of which only the end of its path is known.

    None if ``sources``, the submission's files by path, do not hold that line or hold several such files: it
    lies in a header of CUDA, or no line is known.
    """
    parts = PurePath(file).parts
    named = [path for path in sources if PurePath(path).name == parts[-1]] if parts else []
    if len(named) > 1:
        named = [path for path in named if PurePath(path).parts == parts[-len(PurePath(path).parts) :]]
    lines = _text(sources[named[0]]).split("\n") if len(named) == 1 else []
    if not 1 <= line <= len(lines) or lines == [""]:
        return None
    first = max(1, line - AROUND)
    shown = lines[first - 1 : line + AROUND]
    return SourceLines(first=first, lines=[text.rstrip("\r")[:MOST_CHARACTERS] for text in shown])


def line_of(sources: Mapping[str, bytes], file: str, line: int) -> str:
    """The text of ``line`` of ``file``; empty where ``excerpt`` has nothing."""
    lines = excerpt(sources, file, line)
    return lines.lines[line - lines.first] if lines else ""


def place_of(finding: Finding, sources: Mapping[str, bytes]) -> tuple[str, int]:
    """The file and the line of a finding, as far as they are known.

    Of a kernel that did not start, of a copy or fill, and of host code the simulator knows the name alone:
    its line is that of the launch, the call or the function, if the sources hold one such line. What races
    with another stream is also where it is launched: there its stream is chosen, and an event would be. So is
    what lacks the shared memory that a launch gives. Barriers that threads wait at apart are where the first
    of them is, or the call that leads to it.
    """
    if finding.kind == BARRIER and len(finding.places) > 1 and (ways := parting(*finding.places[:2])):
        first = min(ways, key=lambda way: way.line)
        return first.file, first.line
    if finding.line and finding.kind != STREAMS and finding.reason != "none_asked_for":
        return (
            _innermost(finding, sources) or _call_of_library(finding, sources) or (finding.file, finding.line)
        )
    host = next((str(fact.value) for fact in finding.facts if fact.name in {"function", "call"}), "")
    name = host or own_name(finding.kernel)
    if not name:
        return finding.file, finding.line
    pattern = _CALL if host or name.startswith("cuda") else _LAUNCH
    positions = _lines(pattern.format(re.escape(name)), sources)
    return positions[0] if len(positions) == 1 else (finding.file, finding.line)


def library_of(finding: Finding, sources: Mapping[str, bytes]) -> str:
    """The library of CUDA in which a finding is; "" if it is none, or a line of the sources leads there."""
    library = _namespace(finding.kernel)
    if library not in _LIBRARIES or not finding.line or _innermost(finding, sources):
        return ""
    return _LIBRARIES["thrust" if library == "cub" and _calls(("thrust",), sources) else library]


def _namespace(kernel: str) -> str:
    """The outermost namespace of a kernel, whose name may be too long to be read as a whole."""
    match = _NESTED.match(kernel)
    return match[2][: int(match[1])] if match else ""


def _innermost(finding: Finding, sources: Mapping[str, bytes]) -> tuple[str, int] | None:
    """The innermost line of the sources that leads to a finding; None where none does."""
    calls = finding.places[0].calls if finding.places else ()
    lines = [(finding.file, finding.line), *((place.file, place.line) for place in calls)]
    return next(((file, line) for file, line in lines if excerpt(sources, file, line)), None)


def _call_of_library(finding: Finding, sources: Mapping[str, bytes]) -> tuple[str, int] | None:
    """The line that calls the library in which a finding is, if the sources have one such line."""
    library = _namespace(finding.kernel)
    if library in _OF_HEADERS:
        calls = _calls(_OF_HEADERS, sources)
    elif library in _LIBRARIES:
        of_kernel = rf"{library}\w*?{re.escape(own_name(finding.kernel))}\w*"
        of_library = rf"{library}(?!{_OTHERWISE})[A-Z]\w*"
        calls = _lines(_CALL.format(of_kernel), sources) or _lines(_CALL.format(of_library), sources)
    else:
        return None
    return calls[0] if len(calls) == 1 else None


def _calls(libraries: Iterable[str], sources: Mapping[str, bytes]) -> list[tuple[str, int]]:
    """The lines that call algorithms of libraries of headers."""
    names = "|".join(libraries)
    algorithm = rf"(?:{names})::(?!{_NO_ALGORITHM})[\w:]+(?:<[^;(){{}}]*>)?"
    return _lines(_CALL.format(algorithm), sources)


def _lines(pattern: str, sources: Mapping[str, bytes]) -> list[tuple[str, int]]:
    """The files and the lines at which matches of a regular expression end."""
    search = re.compile(pattern, re.MULTILINE)
    texts = {file: _text(content) for file, content in sources.items()}
    return [
        (file, text.count("\n", 0, match.end()) + 1)
        for file, text in texts.items()
        for match in search.finditer(text)
    ]


def place_of_call(name: str, sources: Mapping[str, bytes]) -> tuple[str, int]:
    """The file and the line of the first call of a function; "" and 0 where the sources have none."""
    return next(iter(_lines(_CALL.format(re.escape(name)), sources)), ("", 0))


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")
