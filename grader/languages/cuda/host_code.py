"""Where the blocks and comparisons of a library's host code are in its sources.

The compiler puts a call into each block of code and before each comparison. What follows the call is what the
simulator tells of it, as an address in the library.
"""

from __future__ import annotations

import io
from pathlib import PurePath
from typing import TYPE_CHECKING

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from grader.languages.language import HostCode
from grader.records.findings import Line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from elftools.dwarf.lineprogram import LineProgram

_BLOCK = "__sanitizer_cov_trace_pc"
_CALL_BYTES = 4  # of the place that the linker fills in, at the end of a call


def host_code(library: Path) -> HostCode:
    """What the library holds, which has to be linked with ``--emit-relocs``.

    Raises:
        ELFError: it cannot be read.
    """
    elf = ELFFile(io.BytesIO(library.read_bytes()))
    rows: list[tuple[int, Line]] = []
    if elf.has_dwarf_info():
        debug = elf.get_dwarf_info(relocate_dwarf_sections=False)  # the linker has done it
        for unit in debug.iter_CUs():
            program = debug.line_program_for_CU(unit)
            rows += () if program is None else _rows(program)
    rows.sort(key=lambda row: row[0])
    return HostCode(
        frozenset(_blocks(elf)),
        _functions(elf),
        [start for start, _ in rows],
        [line for _, line in rows],
    )


def _functions(elf: ELFFile) -> list[int]:
    table = elf.get_section_by_name(".symtab")
    symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
    return sorted({symbol["st_value"] for symbol in symbols if symbol["st_info"]["type"] == "STT_FUNC"})


def _blocks(elf: ELFFile) -> Iterator[int]:
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection) or not section.name.startswith(".rela.text"):
            continue
        symbols = elf.get_section(section["sh_link"])
        if not isinstance(symbols, SymbolTableSection):
            continue
        numbers = [n for n, symbol in enumerate(symbols.iter_symbols()) if symbol.name == _BLOCK]
        for relocation in section.iter_relocations():
            if relocation["r_info_sym"] in numbers:
                yield relocation["r_offset"] + _CALL_BYTES


def _rows(program: LineProgram) -> Iterator[tuple[int, Line]]:
    """The address of each row of a line table, and its line; 0 where a sequence of code ends."""
    names = [PurePath(entry.name.decode(errors="replace")).name for entry in program["file_entry"]]
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        file = names[state.file - 1] if 0 < state.file <= len(names) else ""
        yield state.address, Line(file, 0 if state.end_sequence else state.line)
