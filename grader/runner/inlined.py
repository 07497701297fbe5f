"""What a call that compiles C++ builds, as the judge names it, and the runner that asks for it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REQUIRED = ("name", "cpp_sources")
_OPTIONAL = (
    *("cuda_sources", "sycl_sources", "functions", "extra_cflags", "extra_cuda_cflags", "extra_sycl_cflags"),
    *("extra_ldflags", "extra_include_paths", "build_directory", "verbose", "with_cuda", "with_sycl"),
    *("is_python_module", "with_pytorch_error_handling", "keep_intermediates", "use_pch"),
    "no_implicit_headers",
)
PARAMETERS = (*REQUIRED, *_OPTIONAL)
"""Of PyTorch's function ``load_inline``, in order."""

USED = (
    "cpp_sources",
    "cuda_sources",
    "functions",
    "extra_cflags",
    "extra_cuda_cflags",
    "extra_ldflags",
    "no_implicit_headers",
)
"""The parameters that say what is built; the others say where and how loudly."""


def texts(value: Any) -> list[str]:  # noqa: ANN401
    """A parameter that is a text, texts, or nothing, as texts."""
    return [value] if isinstance(value, str) else [str(text) for text in value or ()]


def key(parameters: Mapping[str, Any]) -> str:
    """The name of what a call of ``load_inline`` builds, by its parameters in ``USED``."""
    lists = {name: texts(parameters.get(name)) for name in USED[:-1]}
    content = json.dumps([lists, bool(parameters.get(USED[-1]))], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def key_of_kernels(code: str, options: Sequence[str]) -> str:
    """The name of what a text of kernels is built to, which a file compiles when it runs."""
    return hashlib.sha256(json.dumps([code, " ".join(options)]).encode()).hexdigest()


def flags_of_program(options: Mapping[str, Any]) -> list[str]:
    """The flags of the compiler that ``ProgramOptions`` of ``cuda.core`` stand for, of those in ``FLAGS``."""
    flags = []
    for name, flag in FLAGS.items():
        value = options.get(name)
        if value is None:
            continue
        if name == "define_macro":
            several = isinstance(value, list) or (isinstance(value, tuple) and len(value) != _NAME_AND_VALUE)
            macros = value if several else [value]
            flags += [flag + (name if isinstance(name, str) else "=".join(map(str, name))) for name in macros]
        elif name == "use_fast_math":
            flags += [flag] if value else []
        else:
            flags.append(flag + (str(value).lower() if isinstance(value, bool) else str(value)))
    return flags


_NAME_AND_VALUE = 2
FLAGS = {
    "define_macro": "-D",
    "fmad": "--fmad=",
    "ftz": "--ftz=",
    "max_register_count": "--maxrregcount=",
    "prec_div": "--prec-div=",
    "prec_sqrt": "--prec-sqrt=",
    "use_fast_math": "--use_fast_math",
}
"""Options of ``cuda.core`` that say what is built, and their flags; others say for which GPU."""
