"""Tries the README's commands on fresh machines: ``nox -s fresh [-- ROW ...]``.

Each row of ``machines.py`` is made anew from its distribution, with a clone of this repository in a user's
home, and the commands run there by the letter. An image that cannot be had here is a row that says so. The
row ``aarch64`` builds the simulator for AArch64 and runs its tests under qemu. Only root can make machines.
Needed are debootstrap for Debian, and a container engine for other systems.

    python tests/fresh/fresh.py --out DIR [--wheel FILE] [--show PATH] [--seconds N] [ROW ...]

DIR gets ``fresh.json``, ``fresh.md`` and a log for each row; rows of an earlier run that are not tried again
stay in the first two.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import aarch64
import rows
from machines import MACHINES
from roots import HOME, TREE, Root, UnreachableError, disk_bytes, fetch, furnish
from rows import Row, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from machines import Machine, System

ROOT = Path(__file__).resolve().parents[2]
ENTER = "python3 -m venv .venv && . .venv/bin/activate"
_PIP_LOG = "pip.log"
_FETCHED = re.compile(r"Downloading \S+ \((?P<number>[\d.]+) (?P<unit>bytes|kB|MB|GB)\)")
_LOCAL = re.compile(r"Processing (?P<path>/\S+\.(?:whl|tar\.gz|zip))")
_UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_TAIL = 5  # lines of an output that nobody expected


def commands_of_the_readme() -> tuple[str, str]:
    """The first two commands, by the letter."""
    block = (ROOT / "README.md").read_text().partition("```\n")[2].partition("```")[0]
    first, second = (line.partition("  #")[0].strip() for line in block.splitlines())
    return first, second


def scripts(machine: Machine, wheel: str) -> tuple[str, ...]:
    """What a user types on a machine, in a shell that begins in the home; ``wheel`` is a file there."""
    first, second = commands_of_the_readme()
    python = machine.system.python
    enter = ENTER.replace("python3", python)
    graded = f"grader doctor; grader grade {TREE}/reference --problem softmax_forward"
    return {
        "readme": (f"cd {TREE} && {enter} && {first}", f"cd {TREE} && . .venv/bin/activate && {second}"),
        "first": (f"cd {TREE} && {enter} && {first}",),
        "pip": (f"cd {TREE} && {first.replace('python ', f'{python} ')}",),
        "wheel": (f"{enter} && python -m pip install './{wheel}[cuda]' && {{ {graded}; }}",),
    }[machine.way]


def attempt(machine: Machine, options: argparse.Namespace) -> Row:
    """Make a machine and try the commands there.

    Raises:
        UnreachableError: its image or its packages cannot be had.
    """
    base = fetched(machine.system, options.out)
    folder = options.out / machine.name
    subprocess.run(["cp", "--archive", base, folder], check=True)
    own = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": f"/{HOME}"}
    root = Root(folder, tuple(options.show), {**own, "PIP_LOG": f"/{HOME}/{_PIP_LOG}", **pip_settings()})
    try:
        furnish(machine, root, ROOT, options.out / f"{machine.name}-setup.log", options.seconds)
        if options.wheel is not None:
            shutil.copy(options.wheel, root.home)
        return tried(machine, root, options)
    finally:
        shutil.rmtree(folder)


def tried(machine: Machine, root: Root, options: argparse.Namespace) -> Row:
    """The row of a machine that is ready for its user."""
    log = options.out / f"{machine.name}.log"
    log.unlink(missing_ok=True)
    before, steps = disk_bytes(root.home), []
    for script in scripts(machine, options.wheel.name if options.wheel else ""):
        steps.append(root.as_user(script, log, options.seconds, namespaces=machine.namespaces))
        if steps[-1].code != 0:
            break
    said = log.read_text(errors="replace")
    verdict, words = judged(machine.says, said, steps[-1].code)
    pip_log = root.home / _PIP_LOG
    if pip_log.exists():  # what a build says stands nowhere else
        shutil.copy(pip_log, options.out / f"{machine.name}-pip.log")
    versions = options.out / f"{machine.name}-python.log"
    root.as_root(f"{machine.system.python} --version", versions, options.seconds)
    return Row(
        machine=machine.name,
        has=machine.has,
        system=machine.system.name,
        verdict=verdict,
        said=words,
        python=versions.read_text().split()[-1],
        steps=tuple(steps),
        downloaded_bytes=downloaded(pip_log.read_text(errors="replace")) if pip_log.exists() else 0,
        disk_bytes=disk_bytes(root.home) - before,
    )


def judged(expected: tuple[str, ...], output: str, code: int) -> tuple[Verdict, str]:
    """Whether all that was expected is in the output, and the code fits; and the last line that was expected.

    A score goes with exit code 0, a refusal with another one.
    """
    lines = output.strip().splitlines()
    found = [next((line for line in reversed(lines) if words in line), "") for words in expected]
    if all(found) and (code == 0) is expected[-1].startswith("Score"):
        return Verdict.AS_EXPECTED, found[-1].strip()
    return Verdict.UNEXPECTED, f"exit code {code}: " + " / ".join(lines[-_TAIL:])


def downloaded(log: str) -> int:
    """The bytes that pip has fetched, or taken from a local index: all but what was built in the home."""
    fetched = sum(float(found["number"]) * _UNITS[found["unit"]] for found in _FETCHED.finditer(log))
    local = {
        Path(found["path"]) for found in _LOCAL.finditer(log) if not found["path"].startswith(f"/{HOME}")
    }
    return int(fetched) + sum(path.stat().st_size for path in local if path.exists())


def pip_settings() -> Mapping[str, str]:
    """The environment by which another pip is configured as this machine's is."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    pairs = (line.split("=", 1) for line in told.stdout.splitlines())
    return {
        f"PIP_{key.rpartition('.')[2].upper().replace('-', '_')}": ast.literal_eval(value)
        for key, value in pairs
    }


def fetched(system: System, out: Path) -> Path:
    """The files of a system, which are fetched once for all runs that write to ``out``.

    Raises:
        UnreachableError: they cannot be had.
    """
    place = out / "systems" / system.origin.replace("/", "-").replace(" ", "-")
    if not place.exists():
        unfinished = place.with_name(f"{place.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        fetch(system, unfinished)
        unfinished.rename(place)
    return place


def chosen(options: argparse.Namespace) -> list[Machine]:
    """The machines that were asked for; all if none is named."""
    return [machine for machine in MACHINES if not options.rows or machine.name in options.rows]


def attempts(options: argparse.Namespace) -> Iterator[Row]:
    """Their rows, one after the other."""
    for machine in chosen(options):
        try:
            yield attempt(machine, options)
        except UnreachableError as error:
            yield Row(machine.name, machine.has, machine.system.name, Verdict.UNREACHABLE, str(error))
    if not options.rows or aarch64.NAME in options.rows:
        try:
            yield aarch64.attempt(ROOT, options.out, options.seconds)
        except UnreachableError as error:
            yield Row(aarch64.NAME, "", aarch64.SYSTEM, Verdict.UNREACHABLE, str(error))


def main() -> int:
    """Try the machines and write the table; 1 if one came out otherwise than expected."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="only these")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--wheel", type=Path, help="the grader's, for the rows that install one")
    parser.add_argument(
        "--show", type=Path, action="append", default=[], help="what the machines see of this one"
    )
    parser.add_argument("--seconds", type=int, default=3600, help="limit of each command")
    options = parser.parse_args()
    unknown = set(options.rows) - {*(machine.name for machine in MACHINES), aarch64.NAME}
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    if os.getuid() != 0:
        parser.error("only root can make root file systems")
    if options.wheel is None and any(machine.way == "wheel" for machine in chosen(options)):
        parser.error("a row installs the wheel: name it with --wheel, nox -s wheels builds it")
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    data = options.out / "fresh.json"
    found = {row.machine: row for row in rows.read(data)} if data.exists() else {}
    for row in attempts(options):
        print(f"{row.machine}: {row.verdict}: {row.said}", flush=True)
        found[row.machine] = row
        rows.write(found.values(), data)
        (options.out / "fresh.md").write_text(rows.markdown(found.values()))
    return int(any(row.verdict is Verdict.UNEXPECTED for row in found.values()))


if __name__ == "__main__":
    sys.exit(main())
