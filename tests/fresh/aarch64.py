"""The simulator for AArch64, on an x86-64 machine: cross-compiled, and run under qemu-user.

Tests that bring PTX run with the device under qemu and all else as it is. The golden set also runs programs
for AArch64, with our runtime library for it: nvcc compiles their host code by the cross compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import steps
from roots import UnreachableError, disk_bytes
from rows import Row, Verdict

from grader.languages.cuda.toolchain import find

NAME = "aarch64"
SYSTEM = "Debian's cross compiler, qemu-user"
_QEMU = "qemu-aarch64 -L /usr/aarch64-linux-gnu"
_PACKAGES = {"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu", "qemu-aarch64": "qemu-user"}
_DEVICE = f'#!/bin/sh\nexec {_QEMU} "$0.aarch64" "$@"\n'
_NVCC = f"""\
#!/bin/sh
# Compiles host code for AArch64; what it makes is a script that runs the program under qemu.
"{{nvcc}}" -ccbin aarch64-linux-gnu-g++ -cudadevrt none -I "{{headers}}" -I "{{headers}}/cccl" \\
  -L "{{libraries}}" "$@" || exit
for word; do [ "$before" != -o ] || made=$word; before=$word; done
mv "$made" "$made.aarch64"
printf '#!/bin/sh\\nexec {_QEMU} %s "$@"\\n' "$made.aarch64" >"$made"
chmod +x "$made"
"""
_BUILD = (
    "cmake -S . -B {build} -G Ninja -DCMAKE_TOOLCHAIN_FILE={tree}/tests/fresh/aarch64.cmake"
    " && cmake --build {build} && cmake --install {build} --prefix ."
)
_TESTS = "python -m pytest -q tests/simulator/test_isa_*.py tests/simulator/test_engine_*.py"
_GOLDEN = "python tests/simulator/golden.py --device sim"


def attempt(tree: Path, out: Path, seconds: int) -> Row:
    """Build the simulator and run its tests.

    Raises:
        UnreachableError: the cross compiler, qemu or nvcc is missing.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise UnreachableError("no nvcc on PATH, which builds the programs of the golden set")
    _install()
    folder, log = out / NAME, out / f"{NAME}.log"
    shutil.rmtree(folder, ignore_errors=True)
    log.unlink(missing_ok=True)
    clone, programs = folder / "tree", folder / "programs"
    programs.mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", tree.as_uri(), clone], check=True)
    libraries = clone / "grader" / "simulator" / "lib"
    _script(programs / "nvcc", _NVCC.format(nvcc=nvcc, headers=find().root / "include", libraries=libraries))
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    # Programs that the tests build for this machine lie in its temporary folder.
    environment = {**os.environ, "PATH": path, "TMPDIR": str(folder)}

    def step(command: str) -> steps.Step:
        return steps.run(["sh", "-c", f"cd {clone} && {command}"], command, log, seconds, environment)

    ran = [step(_BUILD.format(build=folder / "build", tree=clone))]
    if ran[-1].code == 0:
        (libraries / "grader-sim").rename(libraries / "grader-sim.aarch64")
        _script(libraries / "grader-sim", _DEVICE)
        ran += [step(_TESTS), step(_GOLDEN)]
    said = [line for line in log.read_text().splitlines() if " passed" in line or " differ on " in line]
    verdict = Verdict.UNEXPECTED if any(one.code for one in ran) else Verdict.AS_EXPECTED
    words = "; ".join(line.strip("= ") for line in said)
    return Row(NAME, "g++, qemu", SYSTEM, verdict, words, "", tuple(ran), 0, disk_bytes(libraries))


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _install() -> None:
    missing = [package for program, package in _PACKAGES.items() if shutil.which(program) is None]
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise UnreachableError(f"missing: {', '.join(missing)}, as Debian calls them")
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
        done = subprocess.run(
            ["apt-get", *words],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise UnreachableError(f"apt-get {words[0]} fails: {done.stderr.strip()}")
