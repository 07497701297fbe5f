"""What a call of PyTorch's ``load_inline`` builds, as the judge names it, and the runner that asks for it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
