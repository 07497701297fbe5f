"""Finds nvcc and g++: CUDA_HOME, then PATH, then the pinned wheels beside this package.

A compiler that is missing is the machine's fault, so every error carries the command that mends it.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import site
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.records.errors import MachineError
from grader.sandbox.loader import loader_path

if TYPE_CHECKING:
    from grader.sandbox.sandbox import Image

WHEELS = (
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
)
"""One set: the versions must match each other. The extra ``cuda`` of pyproject.toml pins the same."""

_PARTS = {
    "nvidia-cuda-nvcc": "bin/nvcc",
    "nvidia-cuda-crt": "include/crt",
    "nvidia-nvvm": "nvvm/bin/cicc",
    "nvidia-cuda-runtime": "include/cuda_runtime.h",
    "nvidia-cuda-cccl": "include/cccl",
}
"""A file of each wheel by which its presence is seen, relative to the wheels' common folder."""

_OLDEST = (12, 4)
_NEWEST_MAJOR = 13
INSTALL_WHEELS = f"python -m pip install {' '.join(WHEELS)}"
INSTALL_CXX = "sudo apt-get install g++    (Debian, Ubuntu)\n  sudo dnf install gcc-c++    (Fedora, RHEL)"


class ToolchainError(MachineError):
    """No usable compiler on this machine; the message holds the command that installs one."""


@dataclass(frozen=True)
class Toolchain:
    """The compilers that build submissions.

    Attributes:
        nvcc: the CUDA compiler driver, links resolved.
        version: its version, such as ``13.0.88``.
        root: the folder that nvcc finds everything else in.
        cxx: the host compiler.
        cxx_version: the first line that it prints about itself.
        runtime: the folder of the real CUDA runtime library, None if there is none.
        image: the identity of the image that all of these are in, empty if they are this machine's.
    """

    nvcc: Path
    version: str
    root: Path
    cxx: Path
    cxx_version: str
    runtime: Path | None
    image: str = ""

    @property
    def identity(self) -> str:
        """What a cached object depends on: which compilers, and that they are still the same files."""
        if self.image:
            return f"{self.version}\n{self.cxx_version}\n{self.image}"
        stats = [(path, path.stat()) for path in (self.nvcc, self.cxx)]
        files = [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats]
        return "\n".join((self.version, self.cxx_version, *files))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that the compilers need."""
        return {"PATH": f"{self.nvcc.parent}:{self.cxx.parent}:/usr/local/bin:/usr/bin:/bin"}

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The folders that a compile must be able to read, apart from ``/usr``."""
        folders = {self.root, self.cxx.resolve().parent.parent}
        return tuple(sorted(folder for folder in folders if folder != Path("/usr")))

    @property
    def libraries(self) -> Path:
        """The folder of libraries in nvcc's wheels, where nvcc itself does not look."""
        return self.root / "lib"

    @property
    def runtime_name(self) -> str:
        """The runtime library that a build needs, such as ``libcudart.so.13``."""
        return f"libcudart.so.{self.version.partition('.')[0]}"


def find(image: Image | None = None) -> Toolchain:
    """The toolchain of this machine, or that of the ``image`` which jobs see instead of it.

    Raises:
        ToolchainError: nvcc or g++ is missing, unsupported or incomplete.
    """
    if image is not None:
        if not _supported(image.nvcc_version):
            raise ToolchainError(
                f"The image has nvcc {image.nvcc_version}; supported are 12.4 or newer and 13.x.\n"
                "Build it on another base image."
            )
        return Toolchain(
            nvcc=image.nvcc,
            version=image.nvcc_version,
            root=image.nvcc.parent.parent,
            cxx=image.cxx,
            cxx_version=image.cxx_version,
            runtime=image.runtime,
            image=image.identity,
        )
    nvcc, version = _nvcc()
    cxx, cxx_version = _cxx()
    root = nvcc.parent.parent
    runtime = runtime_folder(root, f"libcudart.so.{version.partition('.')[0]}")
    return Toolchain(nvcc, version, root, cxx, cxx_version, runtime)


def cmake_program() -> Path | None:
    """The program of CMake on this machine; None if ``PATH`` has none that works.

    The ``cmake`` of a wheel is a script of Python that starts the program in another folder, so CMake itself
    is asked.
    """
    cmake = shutil.which("cmake")
    return None if cmake is None else _started_by(cmake)


@functools.cache
def _started_by(cmake: str) -> Path | None:
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
        script.write('message("${CMAKE_COMMAND}")')
        script.flush()
        asked = subprocess.run([cmake, "-P", script.name], capture_output=True, text=True, check=False)
    program = Path(asked.stderr.strip())
    return program.resolve() if asked.returncode == 0 and program.is_file() else None


def _nvcc() -> tuple[Path, str]:
    """The first supported nvcc. One that is unfit is passed over, and named if no other is found."""
    rejected: list[str] = []
    candidates = _candidates()
    wheels = wheel_folder()
    if wheels is not None:
        missing = [name for name, part in _PARTS.items() if not (wheels / part).exists()]
        if missing:
            rejected.append(f"the CUDA wheels in {wheels} are incomplete, missing: {', '.join(missing)}")
        else:
            candidates.append(wheels / "bin" / "nvcc")
    for candidate in candidates:
        version = _version(candidate)
        if version is None:
            rejected.append(f"{candidate} does not run")
        elif not _supported(version):
            rejected.append(f"{candidate} is version {version}; supported are 12.4 or newer and 13.x")
        else:
            return _behind(candidate), version
    reasons = "".join(f"\n  {reason}" for reason in rejected)
    raise ToolchainError(
        f"No usable nvcc on this machine{':' if reasons else '.'}{reasons}\n"
        f"Install the pinned compiler:\n  {INSTALL_WHEELS}\n"
        "or a CUDA toolkit 12.4 or newer, and set CUDA_HOME to it."
    )


def _candidates() -> list[Path]:
    paths = []
    if home := os.environ.get("CUDA_HOME"):
        nvcc = Path(home, "bin", "nvcc")
        if not nvcc.is_file():
            raise ToolchainError(f"CUDA_HOME is {home}, but {nvcc} does not exist.\nCorrect it or unset it.")
        paths.append(nvcc)
    if on_path := shutil.which("nvcc"):
        paths.append(Path(on_path))
    return paths


def _version(nvcc: Path) -> str | None:
    """The version that nvcc tells of itself, None if it does not run."""
    match = re.search(r"release [\d.]+, V([\d.]+)", _ask(nvcc, "--version"))
    return match[1] if match else None


def _behind(nvcc: Path) -> Path:
    """The real program behind a script or link of that name on PATH."""
    match = re.search(
        r"^#\$ _HERE_=(.+)$", _ask(nvcc, "--dryrun", "-c", "-x", "cu", os.devnull), re.MULTILINE
    )
    return Path(match[1], "nvcc") if match else nvcc.resolve()


@functools.cache
def _ask(program: Path, *arguments: str) -> str:
    """The output of ``program``; "" if it does not run."""
    try:
        outcome = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return outcome.stdout + outcome.stderr


def _supported(version: str) -> bool:
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) >= _OLDEST and major <= _NEWEST_MAJOR


def wheel_folder() -> Path | None:
    """Where the CUDA wheels lie, if any of them is installed."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()]
    for path in folders:
        folder = Path(path, "nvidia", "cu13")
        if any((folder / part).exists() for part in _PARTS.values()):
            return folder
    return None


def _cxx() -> tuple[Path, str]:
    compiler = shutil.which("g++")
    if compiler is None:
        raise ToolchainError(f"g++ is missing, nvcc needs it. Install it:\n  {INSTALL_CXX}")
    text = _ask(Path(compiler), "--version")
    if not text:
        raise ToolchainError(f"{compiler} does not run. Install it again:\n  {INSTALL_CXX}")
    return Path(compiler), text.partition("\n")[0]


def runtime_folder(root: Path, library: str) -> Path | None:
    """The folder of the real CUDA runtime: beside the compiler, in the wheels, or known to the loader."""
    wheels = wheel_folder()
    folders = [root / "lib64", root / "lib", *sorted(root.glob("targets/*/lib"))]
    if wheels is not None:
        folders.append(wheels / "lib")
    for folder in folders:
        if (folder / library).exists():
            return folder
    path = loader_path(library)
    return path.parent if path is not None else None
