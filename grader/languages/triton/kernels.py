"""Compiles one kernel of a submission's file, in a sandbox that shows it nothing else.

The runner asks for a kernel and says for what: types, constants, divisibility. What the device runs is what
this makes of the file that was handed in; the runner's own copy of it, or of Triton, has no say.
"""

from __future__ import annotations

import importlib.util
import io
import json
import zipfile
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grader.devices.device import DeviceKernel, RefusedKernelError
from grader.devices.runner import interpreter
from grader.languages.cache import key
from grader.languages.jobs import BuildError, limit_hit, outcome_of
from grader.languages.slots import SlotError, slot
from grader.languages.triton.resident import Resident
from grader.sandbox.sandbox import Job

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Mapping

    from grader.languages.cache import Cache
    from grader.sandbox.sandbox import Limits, Sandbox

INSTALL = "python -m pip install 'kernel-grader[triton]'"
_SPECIALISATION = "specialisation.json"
_PARTS = _CODE, _FACTS, _REFUSED = "kernel", "facts.json", "refused"  # behind the form, as in ptx.kernel
_MOST_BYTES = 64 << 10  # of a specialisation
_MODULES = (
    *("__init__.py", "protocol.py"),
    *(
        f"triton/{module}.py"
        for module in ("__init__", "build", "descriptors", "ptx", "specialisation", "task_types")
    ),
)
"""Of the program."""
_MAIN = (
    "import sys\n\nsys.path.append(sys.argv.pop())\n\nfrom grader.runner.triton.build import main\n\nmain()\n"
)


@dataclass(frozen=True)
class Target:
    """A target that kernels are compiled for.

    Attributes:
        form: ``ptx`` for the simulator, ``cubin`` for a GPU.
        capability: of the device, such as 80.
    """

    form: Literal["ptx", "cubin"]
    capability: int


@dataclass(frozen=True)
class Compiler:
    """Triton in a sandbox.

    Attributes:
        sandbox: what confines it.
        limits: what compiling one kernel may use.
        cache: where kernels are kept.
        targets: of all devices that judge: who waits for a kernel on one will ask for it on the others.
        resident: compiles the kernels of the file that is asked for, as long as all goes well; None where
            each kernel is to have a job of its own.
    """

    sandbox: Sandbox
    limits: Limits
    cache: Cache
    targets: tuple[Target, ...]
    resident: Resident | None = None

    def staying(self, file: Path) -> Compiler:
        """The same with a process that stays for all kernels of ``file``; ``close`` ends it."""
        job = self._job(file.name, file.read_bytes())
        return replace(self, resident=Resident(self.sandbox, job))

    def close(self) -> None:
        """End the process that stays."""
        if self.resident is not None:
            self.resident.close()

    def build(
        self,
        file: Path,
        target: Target,
        specialisation: Mapping[str, Any],
        given_up: threading.Event | None = None,
    ) -> DeviceKernel:
        """The kernel of ``file`` that a runner asks for, on one of the targets; ``given_up`` ends the wait.

        Raises:
            RefusedKernelError: it does not compile, or hits a limit.
            BuildError: the machine failed, or another thread has set ``given_up``.
        """
        source, text = file.read_bytes(), json.dumps(specialisation, sort_keys=True).encode()
        if len(text) > _MOST_BYTES:
            raise RefusedKernelError(f"a specialisation of more than {_MOST_BYTES >> 10} KiB")
        versions = (metadata.version("triton"), file.name, repr(self.targets))
        name = key("triton", *versions, packed(), source, text)
        folder = self.cache.find(name) or self.cache.store(
            name, self._built(file.name, source, specialisation, given_up)
        )
        if (refused := folder / f"{target.form}.{_REFUSED}").is_file():
            raise RefusedKernelError(refused.read_text(errors="replace"))
        code, facts = (folder / f"{target.form}.{part}" for part in (_CODE, _FACTS))
        try:
            return DeviceKernel(code.read_bytes(), json.loads(facts.read_bytes()))
        except (ValueError, RecursionError) as error:  # code of the file has interfered
            raise RefusedKernelError("what a launch needs to know of the kernel is not said") from error

    def _job(self, file: str, source: bytes) -> Job:
        """What compiles kernels of a file: those that it is asked for, or the one of its specialisation."""
        package, targets = folder(), [f"{target.form}:{target.capability}" for target in self.targets]
        program, folders = interpreter(self.sandbox.image, packages=True)
        return Job(
            argv=(str(program), "-I", "-S", "-B", "build.zip", file, *targets, str(package.parent)),
            limits=self.limits,
            inputs=(*folders, package.parent),
            files={"build.zip": packed(), file: source},
        )

    def _parts(self, target: Target) -> tuple[str, ...]:
        return tuple(f"{target.form}.{part}" for part in _PARTS)

    def _complete(self, files: Collection[str]) -> bool:
        """Whether there is a kernel with its facts, or a message, for each target."""
        return all(
            refused in files or {code, facts} <= set(files)
            for code, facts, refused in map(self._parts, self.targets)
        )

    def _built(
        self,
        file: str,
        source: bytes,
        specialisation: Mapping[str, Any],
        given_up: threading.Event | None,
    ) -> Mapping[str, bytes]:
        job = self._job(file, source)
        text = json.dumps(specialisation, sort_keys=True).encode()
        names = [name for target in self.targets for name in self._parts(target)]
        job = replace(job, files={**job.files, _SPECIALISATION: text}, outputs=tuple(names))
        try:
            with slot(given_up):
                files = None if self.resident is None else self.resident.built(specialisation, given_up)
                if files is not None and self._complete(files):
                    return {name: files[name] for name in names if name in files}
                outcome = outcome_of(job, self.sandbox, given_up)
        except SlotError as error:
            raise BuildError(f"{file} was not compiled: {error}") from error
        if limit := limit_hit(outcome):  # another machine, or a quieter one, may do better: not kept
            raise RefusedKernelError(limit)
        if not self._complete(outcome.artefacts):
            message = (outcome.stdout + outcome.stderr).decode(errors="replace").strip()
            raise BuildError(
                f"Triton gave neither a kernel nor a message (exit code {outcome.code}): {message}"
            )
        return outcome.artefacts


def folder() -> Path:
    """The folder of Triton.

    Raises:
        BuildError: it is not installed.
    """
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise BuildError(f"Triton is not installed here. Install it:\n  {INSTALL}")
    return Path(spec.origin).parent


@cache
def packed() -> bytes:
    """The program of the job as a zip archive."""
    runner = Path(__file__).parents[2] / "runner"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        for name, text in (
            ("grader/__init__.py", ""),
            *(
                (f"grader/runner/{path.relative_to(runner).as_posix()}", path.read_text())
                for path in (runner / module for module in _MODULES)
            ),
            ("__main__.py", _MAIN),
        ):
            files.writestr(zipfile.ZipInfo(name), text)  # of no date: equal programs are equal bytes
    return archive.getvalue()
