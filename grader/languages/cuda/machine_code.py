"""How many bytes of machine code each kernel of a built library has, read from the cubins in it."""

from __future__ import annotations

import io
import re

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

_CUBIN = re.compile(rb"\x7fELF\x02\x01")
_TEXT = ".text."
_UNREADABLE = (ELFError, UnicodeDecodeError, AssertionError, KeyError, ValueError)
"""What the reader raises over bytes that a submission has put there and that are no cubin."""


def machine_code(library: bytes) -> dict[str, int]:
    """Bytes by the mangled names of kernels, with the padding behind each; none of what cannot be read."""
    sizes: dict[str, int] = {}
    try:
        section = ELFFile(io.BytesIO(library)).get_section_by_name(".nv_fatbin")
        held = b"" if section is None else section.data()
        for match in _CUBIN.finditer(held):
            for part in ELFFile(io.BytesIO(held[match.start() :])).iter_sections():
                if part.name.startswith(_TEXT):
                    sizes[part.name.removeprefix(_TEXT)] = int(part["sh_size"])
    except _UNREADABLE:
        return {}
    return sizes
