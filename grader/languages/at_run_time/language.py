"""Python files that compile kernels when they run, by CuPy or by NVRTC, as languages; see ``Language``.

The judge reads the texts of the kernels, and builds them before the file runs. All else is as for a file that
builds C++ by ``load_inline``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.languages import policy
from grader.languages.at_run_time import cupy, nvrtc
from grader.languages.inline.language import Inline

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Collection, Mapping, Sequence

    from grader.languages.at_run_time.kernels import Kernels


@dataclass(frozen=True)
class Way:
    """A way to compile kernels in Python.

    Attributes:
        kernels: reads the texts of a file.
        modules: what a file may use for it, by module.
        attributes: what it may read of its objects.
    """

    kernels: Callable[[ast.Module, bytes], tuple[Kernels, ...]]
    modules: Mapping[str, Collection[str]]
    attributes: Collection[str]


WAYS: Mapping[str, Way] = {
    "cupy": Way(cupy.kernels, cupy.MODULES, cupy.ATTRIBUTES),
    "nvrtc": Way(nvrtc.kernels, nvrtc.MODULES, nvrtc.ATTRIBUTES),
}
"""The ways, by the name of the language."""


@dataclass(frozen=True, kw_only=True)
class AtRunTime(Inline):
    """nvcc, and where it is installed Triton, in a sandbox; ``name`` is one of ``WAYS``."""

    def _modules(self, tree: ast.Module, content: bytes) -> Sequence[Kernels]:
        """What a file compiles; see ``Inline``."""
        return WAYS[self.name].kernels(tree, content)

    def _review(self, tree: ast.Module, _content: bytes, file: str) -> policy.Review:
        """The places of a file that break the policy."""
        way = WAYS[self.name]
        return policy.review(tree, file, way.modules, way.attributes, self.taken)
