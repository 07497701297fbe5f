"""Describes where in its native code a submission was, from the stack trace that its runner wrote.

A submission may forge the addresses in the trace, so the text explains a time-out but proves nothing. The
names of functions come from the library as it was built.
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
_MOST = 100  # longest name, in characters


@dataclass(frozen=True)
class _Function:
    """The machine code of one function."""

    name: str  # demangled
    begin: int
    code: bytes
    machine: str

    def loops_at(self, address: int) -> bool:
        """Whether a backward jump makes a loop around ``address``."""
        if self.machine not in MACHINES:
            return False
        for position, _, name, operand in Cs(*MACHINES[self.machine]).disasm_lite(self.code, self.begin):
            target = _TARGET.fullmatch(operand)
            if (
                target
                and _JUMP.fullmatch(name)
                and self.begin <= int(target["target"], 16) <= address <= position
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
    """Where the host code was, such as "in wait_long, called by launch, asleep in nanosleep"; "" if unknown.

    Args:
        text: the stack trace that ``Running.witness`` returned.
        libraries: the submission's libraries as they were built, which the runner loaded by these paths.
        entry_points: the functions that the runner calls.
        asleep: whether the code slept for too long, rather than worked for too long.
        model: a PyTorch file of the submission, used if none of its libraries is in the trace.
    """
    frames = [match for line in text.splitlines() if (match := _NATIVE.fullmatch(line))]
    trusted = {str(path): path for path in libraries}
    first = next((index for index, frame in enumerate(frames) if frame["path"] in trusted), None)
    if first is None:
        return _in_model(text, model)
    called: list[str] = []
    loops = False
    for index, frame in enumerate(frames[first:], first):
        if frame["path"] in trusted:
            # All but the innermost frame hold a return address, which may already be in the next function.
            address = int(frame["offset"], 16) - (index > 0)
            function = _function(trusted[frame["path"]], address)
            if function is not None:
                called.append(function.name)
                loops |= index == 0 and function.loops_at(address)
    entry = next((name for name in reversed(called) if name in entry_points), "")
    inner = called[0] if called else ""
    if not inner:
        return ""
    function_name = f"{inner}, called by {entry}" if entry and entry != inner else inner
    callee = next((name for frame in reversed(frames[:first]) if (name := _readable(frame["symbol"]))), "")
    if callee:
        return f"in {function_name}, {'asleep' if asleep else 'working'} in {callee}"
    if asleep:
        return f"asleep in {function_name}"
    return f"in the loop of {function_name}" if loops else f"in {function_name}"


def _in_model(text: str, model: Path | None) -> str:
    for line in text.splitlines():
        frame = _PYTHON.fullmatch(line)
        if frame and model is not None and frame["path"] == str(model):
            return f"in {frame['function']}, line {frame['line']} of {model.name}"
    return ""


def _function(library: Path, address: int) -> _Function | None:
    """The function that contains ``address``, which may be static; None if the library has no name for it."""
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
        return None  # the message then lacks this function
    return None


def _readable(symbol: str) -> str:
    """The demangled name of ``symbol``, without the affixes that compilers and the C library add."""
    name = demangled(symbol.partition(".")[0]).replace("_GLOBAL__N_1::", "")
    return (name if symbol.startswith("_Z") else name.lstrip("_"))[:_MOST]
