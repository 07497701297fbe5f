"""What two versions of a kernel have in common: their PTX, without lines, files and numbers of versions.

Layer: the standard library and an ELF reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from elftools.elf.elffile import ELFFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MODULE = re.compile(rb"\.version [^\0]*")
_FUNCTION = re.compile(
    r"^(?:\.(?:visible|weak|extern) )*\.(?P<kind>entry|func)\b[^{;]*?(?P<name>[\w$]+)\s*\([^{;]*\{.*?^\}",
    re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"(\$L__BB|__local_depot|\$str|__unnamed_)\d+")
_PLACE = re.compile(r"^\.(loc|file|pragma)\b.*$|^\s*//.*$", re.MULTILINE)
_VERSION = re.compile(r"version_\d")
_FILE = re.compile(r'^\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LINE = re.compile(r"^\.loc\s+(\d+)\s+(\d+).*\n(?=\s*(?:@!?%\w+ )?[a-z])", re.MULTILINE)  # of an instruction

Line = tuple[str, int]
"""A file's name and a line in it."""


@dataclass(frozen=True)
class Code:
    """The PTX of one version.

    Attributes:
        kernels: text of each kernel by its mangled name.
        rest: what all of them may use: functions that are not inlined, and variables.
        lines: the lines of the source that have instructions.
    """

    kernels: Mapping[str, str]
    rest: str
    lines: frozenset[Line]

    def differing(self, other: Code) -> frozenset[str]:
        """The kernels of which one of the two has none, or another text."""
        names = self.kernels.keys() | other.kernels.keys()
        if self.rest != other.rest:
            return frozenset(names)
        return frozenset(name for name in names if self.kernels.get(name) != other.kernels.get(name))


def code(library: Path, number: int) -> Code:
    """The PTX of one version of those in a library; its names are those of version 0."""
    text = "\n".join(_modules(library))
    version = f"version_{number}"
    kernels, rest = {}, []
    for match in _FUNCTION.finditer(text):
        if version not in match["name"]:
            continue
        if match["kind"] == "entry":
            kernels[same_version(match["name"])] = _bare(match[0])
        else:
            rest.append(_bare(match[0]))
    variables = re.findall(r"^(?:\.visible )?\.(?:global|const|shared) .*$", text, re.MULTILINE)
    rest += [_bare(variable) for variable in variables if version in variable]
    return Code(kernels, "\n".join(sorted(rest)), frozenset(_lines(text, version)))


def of_program(program: Path) -> str:
    """The PTX of a whole program, without lines and files: equal for programs with the same kernels."""
    return "\n".join(map(_bare, _modules(program)))


def _modules(file: Path) -> list[str]:
    with file.open("rb") as content:
        section = ELFFile(content).get_section_by_name(".nv_fatbin")
        modules = [] if section is None else _MODULE.findall(section.data())
    return [module.decode(errors="replace") for module in modules]


def same_version(name: str) -> str:
    """A mangled name as version 0 has it."""
    return _VERSION.sub("version_0", name)


def _bare(text: str) -> str:
    text = _LABEL.sub(r"\1", _PLACE.sub("", text))
    return "\n".join(line for line in same_version(text).split("\n") if line.strip())


def _lines(text: str, version: str) -> set[Line]:
    names = {
        number: PurePosixPath(path).name for number, path in _FILE.findall(text) if f"{version}/" in path
    }
    return {(names[file], int(line)) for file, line in _LINE.findall(text) if file in names}
