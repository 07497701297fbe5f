"""What a built library exports: whether an entry point is there, or what was probably meant."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from grader.languages.language import EntryPoint
from grader.records.mangled import demangled

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


def find(
    library: Path, entry_point: str, source: str, further: Collection[str] = (), text: bytes = b""
) -> EntryPoint:
    """``entry_point`` of ``source``, also where ``extern "C"`` was forgotten; or why it cannot be called.

    The ``further`` entry points are no misspelling of it. The ``text`` tells where what was meant stands.
    """
    names = functions(library)
    if entry_point in names:
        return EntryPoint(entry_point)
    mangled = [name for name in names if demangled(name).rpartition("::")[2] == entry_point]
    if len(mangled) == 1:
        return EntryPoint(mangled[0], f'{entry_point} was found although extern "C" is missing before it')
    if mangled:
        return EntryPoint(
            "", f'{source} defines {entry_point} {len(mangled)} times. Put extern "C" before one of them.'
        )
    others = [name for name in names if name not in further and not name.startswith("_")]
    near = difflib.get_close_matches(entry_point, others, n=1) or others[: len(others) == 1]
    hint = f" Found {near[0]}{_at(near[0], source, text)}: rename it to {entry_point}." if near else ""
    return EntryPoint("", f'{source} has no function extern "C" {entry_point}.{hint}')


def _at(name: str, source: str, text: bytes) -> str:
    """The line of ``text`` in which a function of that name is defined first, in brackets."""
    found = re.search(rb"\b" + name.encode() + rb"\s*\(", text)
    return f" ({source}:{len(text[: found.end()].splitlines())})" if found else ""


def functions(library: Path) -> tuple[str, ...]:
    """The functions that ``library`` exports, by their linker names."""
    with library.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        if not isinstance(table, SymbolTableSection):
            return ()
        return tuple(
            symbol.name
            for symbol in table.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF"
        )
