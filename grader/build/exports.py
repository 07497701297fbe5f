"""What a built library exports: whether an entry point is there, or what was probably meant."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

if TYPE_CHECKING:
    from pathlib import Path

_MANGLED = re.compile(r"_Z(?P<length>\d+)(?P<rest>.*)")


def missing(library: Path, entry_point: str, source: str) -> str:
    """Why ``entry_point`` of ``source`` cannot be called, with what to do; "" if it is there."""
    names = functions(library)
    if entry_point in names:
        return ""
    if entry_point in {unmangled(name) for name in names}:
        return f'{source} defines {entry_point} as a C++ function. Put extern "C" before it.'
    near = difflib.get_close_matches(entry_point, names, n=1)
    hint = f" Found {near[0]}: rename it to {entry_point}." if near else ""
    return f'{source} has no function extern "C" {entry_point}.{hint}'


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


def unmangled(name: str) -> str:
    """The name of a C++ function outside any namespace; ``name`` itself where it is none."""
    match = _MANGLED.fullmatch(name)
    return match["rest"][: int(match["length"])] if match else name
