"""The baseline's libraries: built like a submission, from the sources beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grader.languages.cuda.compile import build_all
from grader.languages.jobs import BuildError, compile_limits

if TYPE_CHECKING:
    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain
    from grader.sandbox.sandbox import Sandbox

FUNCTIONS = {
    "generic.cu": ("baseline_map", "baseline_zip", "baseline_reduce"),
    "typed.cu": (
        *("typed_map", "typed_reduce", "typed_scan", "typed_matmul", "typed_indexed"),
        *("typed_segment", "typed_convolution", "typed_sort"),
    ),
    "restore.cu": ("launch_restore",),
    "stream.cu": ("launch_stream",),
    "arithmetic.cu": ("launch_multiply_adds",),
}


def build_baseline(
    toolchain: Toolchain, sandbox: Sandbox, cache: Cache, architecture: str
) -> dict[Path, tuple[str, ...]]:
    """The baseline's libraries with the functions that each exports.

    Raises:
        BuildError: a library does not compile here.
    """
    sources = {name: {name: Path(__file__).with_name(name).read_bytes()} for name in FUNCTIONS}
    builds = build_all(sources, toolchain, sandbox, compile_limits(), cache, architecture)
    libraries = {}
    for name, build in builds.items():
        if build.artefact is None:
            raise BuildError(f"the baseline's {name} does not compile: {build.log}")
        libraries[build.artefact] = FUNCTIONS[name]
    return libraries
