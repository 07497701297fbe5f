"""Stores and additions by descriptors, as a GPU makes them: 16 bytes at a time, also behind the end.

An sm_80 has none. Triton compiles them to stores with masks for it, which end where the tensor ends, and a
kernel that overwrites on a GPU what follows its tensor would be right on the simulator.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from typing import Any

CHUNK_BITS = 128

_MADE = re.compile(
    r"(?P<name>%\S+) = (?P<start>tt\.make_tensor_descriptor %\S+, \[(?:%[^\s\]]+, )*)(?P<last>[^\s,\]]+)"
    r"(?P<end>\].* : (?:!tt\.ptr)?<[a-z]+(?P<bits>\d+).*)"
)
_STORED = re.compile(r"(tt\.descriptor_(?:store|reduce \w+,) )(%[^[\s]+)")


def store_whole_chunks(module: Any) -> Any:  # noqa: ANN401 (Triton's)
    """A kernel in which descriptors end with a whole chunk where something is stored by them.

    What is loaded stays as it is, as a GPU loads zeros from behind the end. A descriptor that a loop or a
    branch gives is not followed to where it was made.

    Args:
        module: the kernel in Triton's first representation. If it stores so, its functions are inlined.
    """
    if not _STORED.search(str(module)):
        return module
    library = importlib.import_module("triton._C.libtriton")
    passes = library.ir.pass_manager(module.context)
    library.passes.common.add_inliner(passes)
    passes.run(module, "inline")
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(_with_whole_chunks(str(module)))
        file.flush()
        changed = library.ir.parse_mlir_module(file.name, module.context)
    changed.context = module.context
    return changed


def _with_whole_chunks(text: str) -> str:
    lines: list[str] = []
    descriptors: dict[str, str] = {}  # the descriptor to store by, for each
    for line in text.splitlines():
        if "tt.func" in line:  # names are those of a function
            descriptors.clear()
        lines.append(_STORED.sub(lambda call: call[1] + descriptors.get(call[2], call[2]), line))
        if match := _MADE.search(line):
            new = descriptors[match["name"]] = f"%whole_chunks_{len(lines)}"
            each = max(CHUNK_BITS // int(match["bits"]), 1)
            lines += [
                f"{new}_more = arith.constant {each - 1} : i32",
                f"{new}_mask = arith.constant {-each} : i32",
                f"{new}_sum = arith.addi {match['last']}, {new}_more : i32",
                f"{new}_last = arith.andi {new}_sum, {new}_mask : i32",
                f"{new} = {match['start']}{new}_last{match['end']}",
            ]
    return "\n".join(lines)
