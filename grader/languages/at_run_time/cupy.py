"""What a Python file compiles by CuPy: ``RawKernel`` and ``RawModule``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.languages.at_run_time.kernels import Kernels, calls, listed, merged, text
from grader.languages.inline.constants import Constants, SourceError, parameters

if TYPE_CHECKING:
    import ast

_OF_KERNEL = (
    "code",
    "name",
    "options",
    "backend",
    "translate_cucomplex",
    "enable_cooperative_groups",
    "jitify",
)
_OF_MODULE = (
    *("code", "path", "options", "backend", "translate_cucomplex", "enable_cooperative_groups"),
    *("name_expressions", "jitify"),
)
_FUNCTIONS = {"RawKernel": _OF_KERNEL, "RawModule": _OF_MODULE}

_TYPES = (
    "bool_ float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128"
)
MODULES = {
    "cupy": (
        *("RawKernel", "RawModule", "asarray", "ascontiguousarray", "dtype", "empty", "empty_like"),
        *("from_dlpack", "ndarray", "zeros", "zeros_like", *_TYPES.split()),
    ),
    "cupy.cuda": ("Device", "ExternalStream", "Stream", "get_current_stream"),
    "torch": ("as_tensor", "from_dlpack"),
}
"""What a file may use of it."""

ATTRIBUTES = frozenset(
    {
        *("RawKernel", "compile", "compute_capability", "get_function", "max_dynamic_shared_size_bytes"),
        *("null", "ptr", "use", "attributes", "id", "nbytes", "itemsize", "shape", "strides", "size"),
    }
)


def kernels(tree: ast.Module, content: bytes) -> tuple[Kernels, ...]:
    """The texts that a file compiles.

    Raises:
        SourceError: a call cannot be built from what the file says.
    """
    constants = Constants(tree, content)
    return merged(_kernels(constants, called, call) for called, call in calls(tree, _FUNCTIONS))


def _kernels(constants: Constants, called: str, call: ast.Call) -> Kernels:
    nodes = parameters(call, called, _FUNCTIONS[called])
    if "code" not in nodes:
        raise SourceError(call.lineno, f"{called} gets no code: write the text of the kernels there")
    return Kernels(
        call.lineno,
        called,
        text(constants, call, called, "code", nodes["code"]),
        listed(constants, call, called, "options", nodes.get("options")),
        listed(constants, call, called, "name_expressions", nodes.get("name_expressions")),
    )
