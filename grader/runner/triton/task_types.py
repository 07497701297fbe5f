"""The types that files of the GPU MODE form import for annotations, where nobody else has defined them."""

from __future__ import annotations

import sys
from types import ModuleType

_MODULE, _NAMES = "task", ("TestSpec", "input_t", "output_t")


def define() -> None:
    """Let the module of these types be imported: they say nothing here."""
    types = ModuleType(_MODULE)
    vars(types).update(dict.fromkeys(_NAMES, object))
    sys.modules.setdefault(_MODULE, types)
