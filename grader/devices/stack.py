"""Where in its native code a submission was, in words, from what its runner told of itself.

The addresses are the runner's, which a submission may forge: the words explain, and prove nothing. The names
are those of the library as it was built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capstone import CS_ARCH_ARM64, CS_ARCH_X86, CS_MODE_64, CS_MODE_ARM, Cs
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from grader.records.mangled import demangled

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

MACHINES = {"EM_X86_64": (CS_ARCH_X86, CS_MODE_64), "EM_AARCH64": (CS_ARCH_ARM64, CS_MODE_ARM)}
"""How to disassemble the code of a machine, by the name that ELF has for it."""

_NATIVE = re.compile(r"(?P<path>/.*)\+0x(?P<offset>[0-9a-f]{1,16}) (?P<symbol>\w*)")
_PYTHON = re.compile(r' *File "(?P<path>.*)", line (?P<line>\d{1,7}) in (?P<function>[\w<>.]{1,100})')
_JUMP = re.compile(r"(?:b|b\..*|cbn?z|tbn?z|j\w+|loop\w*)")
_TARGET = re.compile(r"(?:.*, *)?#?0x(?P<target>[0-9a-f]+)")
_MOST = 100  # characters of a name


@dataclass(frozen=True)
class _Function:
    """A piece of a library's code."""

    name: str  # as it is written
    begin: int
    code: bytes
    machine: str

    def loops_at(self, address: int) -> bool:
        """Whether a jump back leads around ``address``."""
        if self.machine not in MACHINES:
            return False
        for place, _, name, operand in Cs(*MACHINES[self.machine]).disasm_lite(self.code, self.begin):
            target = _TARGET.fullmatch(operand)
            if (
                target
                and _JUMP.fullmatch(name)
                and self.begin <= int(target["target"], 16) <= address <= place
            ):
                return True
        return False


def where(
    text: str,
    libraries: Collection[Path],
    entry_points: Collection[str],
    *,
    asleep: bool,
    model: Path | None = None,
) -> str:
    """What the host was at, such as "in wait_long, called by launch, asleep in nanosleep"; or "".

    Args:
        text: what ``Running.witness`` returned.
        libraries: the submission's, as they were built, which the runner loaded by these paths.
        entry_points: the functions that the runner calls.
        asleep: whether it was the sleep that was too long, and not the work.
        model: a PyTorch file of the submission, named where none of its libraries was at work.
    """
    frames = [found for line in text.splitlines() if (found := _NATIVE.fullmatch(line))]
    trusted = {str(path): path for path in libraries}
    first = next((place for place, frame in enumerate(frames) if frame["path"] in trusted), None)
    if first is None:
        return _in_model(text, model)
    called: list[str] = []
    loops = False
    for place, frame in enumerate(frames[first:], first):
        if frame["path"] in trusted:
            # Others than the innermost say where the call returns to, which may be the next function.
            address = int(frame["offset"], 16) - (place > 0)
            function = _function(trusted[frame["path"]], address)
            if function is not None:
                called.append(function.name)
                loops |= place == 0 and function.loops_at(address)
    entry = next((name for name in reversed(called) if name in entry_points), "")
    inner = called[0] if called else ""
    if not inner:
        return ""
    way = f"{inner}, called by {entry}" if entry and entry != inner else inner
    callee = next((name for frame in reversed(frames[:first]) if (name := _readable(frame["symbol"]))), "")
    if callee:
        return f"in {way}, {'asleep' if asleep else 'working'} in {callee}"
    return f"asleep in {way}" if asleep else f"in the loop of {way}" if loops else f"in {way}"


def _in_model(text: str, model: Path | None) -> str:
    for line in text.splitlines():
        found = _PYTHON.fullmatch(line)
        if found and model is not None and found["path"] == str(model):
            return f"in {found['function']}, line {found['line']} of {model.name}"
    return ""


def _function(library: Path, address: int) -> _Function | None:
    """The function that holds ``address``, also a static one; None if the library has no name for it."""
    try:
        with library.open("rb") as file:
            elf = ELFFile(file)
            for table in (elf.get_section_by_name(".symtab"), elf.get_section_by_name(".dynsym")):
                if not isinstance(table, SymbolTableSection):
                    continue
                for symbol in table.iter_symbols():
                    begin, size = symbol["st_value"], symbol["st_size"]
                    if symbol["st_info"]["type"] == "STT_FUNC" and begin <= address < begin + size:
                        section = elf.get_section(symbol["st_shndx"])
                        start = begin - section["sh_addr"]
                        code = section.data()[start : start + size]
                        return _Function(_readable(symbol.name), begin, code, elf["e_machine"])
    except (ELFError, OSError, UnicodeDecodeError, AssertionError, KeyError, ValueError, TypeError):
        return None  # an explanation less
    return None


def _readable(symbol: str) -> str:
    """A name as a person writes it, without what compilers and the C library add."""
    name = demangled(symbol.partition(".")[0]).replace("_GLOBAL__N_1::", "")
    return (name if symbol.startswith("_Z") else name.lstrip("_"))[:_MOST]
