"""Python files with CUDA C++ in ``load_inline`` as a language of submissions; see ``Language``.

Their modules are built with the file. All else is as for a file with kernels in Triton, which it may have.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grader.devices import models
from grader.devices.device import DeviceKernel, RefusedKernelError, Script
from grader.languages import policy
from grader.languages.cache import key
from grader.languages.cuda.imports import violations
from grader.languages.cuda.machine_code import machine_code
from grader.languages.inline.build import build
from grader.languages.inline.constants import SourceError
from grader.languages.inline.source import extensions, without_settings
from grader.languages.language import Build, FileBuild, Inspection
from grader.languages.triton import source
from grader.languages.triton.language import Triton

if TYPE_CHECKING:
    import ast
    import threading
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from grader.devices.device import Call, Device
    from grader.devices.gpu import Gpu
    from grader.languages.cuda.toolchain import Toolchain
    from grader.languages.inline.build import Module

_FORMAT = "file with modules 1"
_LISTED = "modules.json"  # the library of each module, by its key
_MAY_IMPORT = {"torch.utils": (), "torch.utils.cpp_extension": ("load_inline",)}


@dataclass(frozen=True, kw_only=True)
class Inline(Triton):
    """nvcc, g++ and where it is installed Triton, in a sandbox.

    Attributes:
        toolchain: the compilers.
        architecture: the GPU to make machine code for, such as ``sm_90``.
    """

    toolchain: Toolchain
    architecture: str
    name: str = "load_inline"

    @property
    def _with_triton(self) -> bool:
        """Whether the file may have kernels in Triton, too."""
        return "triton" in self.taken

    def _modules(self, tree: ast.Module, content: bytes) -> Sequence[Module]:
        """What a file builds.

        Raises:
            SourceError: a call cannot be built from what the file says.
        """
        return extensions(tree, content)

    def _review(self, tree: ast.Module, content: bytes, file: str) -> policy.Review:
        """The places of a file that break the policy."""
        names = frozenset[str]().union(*(each.names for each in extensions(tree, content)))
        return policy.review(without_settings(tree), file, _MAY_IMPORT, names, self.taken)

    def _read(self, name: str, content: bytes) -> Build:
        began, log, artefact, built = time.monotonic(), "", None, []
        try:
            tree = source.parsed(content, name)
            modules = self._modules(tree, content)
            built = [
                build(each, name, self.toolchain, self.sandbox, self.limits, self.cache, self.architecture)
                for each in modules
            ]
            log = "\n".join(module.log for module in built if not module.ok)
            if not log:
                libraries = {each.key: module.artefact for each, module in zip(modules, built, strict=True)}
                artefact = self._stored_with(name, content, libraries)
        except SyntaxError as error:
            log = f"{name}:{error.lineno}: {type(error).__name__}: {error.msg}"
        except SourceError as error:
            log = f"{name}:{error.line}: {error}"
        limits = [module.ending for module in built if not module.ok]
        usual = Build(
            source=name,
            ok=artefact is not None,
            artefact=artefact,
            seconds=round(time.monotonic() - began, 3),
            cached=bool(built) and all(module.cached for module in built),
            command=f"python {name}",
            log=log,
            resources=tuple(kernel for module in built for kernel in module.resources),
        )
        return replace(usual, ending=limits[0]) if limits else usual

    def _stored_with(self, name: str, content: bytes, libraries: Mapping[str, Path | None]) -> Path:
        """The file where it outlives the submission's private copy, beside its libraries."""
        contents = {f"{each}.so": path.read_bytes() for each, path in libraries.items() if path is not None}
        files = {name: content, _LISTED: json.dumps(sorted(libraries)).encode(), **contents}
        entry = key(_FORMAT, *(part for file in sorted(files) for part in (file, files[file])))
        return (self.cache.find(entry) or self.cache.store(entry, files)) / name

    def inspect(
        self,
        artefact: Path,
        source_name: str,
        _contents: Mapping[str, bytes],
        entry_points: Collection[str],
        further: Collection[str],
        allowed: Collection[str],
    ) -> Inspection:
        """What a file and its libraries hold; see ``Language``."""
        content = artefact.read_bytes()
        tree = source.parsed(content, source_name)
        review = self._review(tree, content, source_name)
        if review.reasons:
            return Inspection(review.reasons, (), review.mistaken)
        if not self._with_triton and (line := source.imports(tree, "triton")):
            text = f"{source_name}:{line} imports triton, and this problem takes no kernels in Triton"
            return Inspection((text,), (), mistaken=True)
        for library in _libraries(artefact).values():
            if reasons := violations(library, {source_name: content}, allowed):
                return Inspection(reasons, ())
        return Inspection((), tuple(source.find(tree, source_name, name, further) for name in entry_points))

    def code_bytes(self, artefact: Path) -> int | None:
        """The bytes of the kernels of all modules; see ``Language``."""
        libraries = _libraries(artefact).values()
        return sum(sum(machine_code(library.read_bytes()).values()) for library in libraries) or None

    def explain(self, build: FileBuild, contents: Mapping[str, bytes]) -> str:
        """Why nothing of a file can be graded; see ``Language``."""
        file = build.full.source
        try:
            source.parsed(contents[file], file)
        except SyntaxError:
            return super().explain(build, contents)
        return f"the C++ in {file} did not compile"

    def profiled(self, _gpu: Gpu, _artefact: Path, _call: Call) -> list[str]:
        """Nothing is known of how its kernels run; see ``Language``."""
        return ["not profiled: the kernels are started from Python"]

    def _script(self, device: Device, artefact: Path) -> Script:
        libraries = _libraries(artefact)
        kernels = tuple(name for path in libraries.values() for name in machine_code(path.read_bytes()))
        script = Script(artefact, models.packages(), _no_kernel, form=self.form)
        if self._with_triton and b"triton" in artefact.read_bytes():
            script = super()._script(device, artefact)
        return replace(script, extensions=libraries, kernels=kernels)


def _no_kernel(_: Mapping[str, Any], _given_up: threading.Event) -> DeviceKernel:
    raise RefusedKernelError("no kernel in Triton is taken in this file")


def _libraries(artefact: Path) -> Mapping[str, Path]:
    """The libraries of a file that was built, by the keys of its modules."""
    listed: Sequence[str] = json.loads(artefact.with_name(_LISTED).read_bytes())
    return {name: artefact.with_name(f"{name}.so") for name in listed}
