"""Tries every attack in every sandbox and prints the table of ``docs/attacks.md``.

nox -s attacks -- [--only WORD ...] [--sandbox NAME ...] [--write docs/attacks.md]

Each attack is built, judged by the import policy, and then, whatever that says, run. Afterwards nothing of it
may be left, and an honest submission must pass.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import engine
import pytest
from attacks.table import ATTACKS, HONEST, HONEST_PYTHON, IN_PYTHON, Attack
from first_assignment import KERNELS

import grader
from grader.devices import patience, runner
from grader.devices.device import Memory
from grader.devices.sim import Sim
from grader.judge.correctness.cases import judge
from grader.languages.cache import Cache
from grader.languages.cuda.compile import build
from grader.languages.cuda.imports import violations
from grader.languages.cuda.toolchain import find as find_toolchain
from grader.languages.jobs import compile_limits
from grader.languages.triton.language import Triton
from grader.processes import leftovers
from grader.records.findings import KINDS
from grader.records.verdict import Verdict
from grader.sandbox import cgroup
from grader.sandbox.backends import BACKENDS
from grader.sandbox.docker import IMAGE_VARIABLE, LABEL
from grader.sandbox.keeper import descendants
from grader.sandbox.sandbox import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grader.devices.device import Session
    from grader.problems.problem import KernelProblem
    from grader.sandbox.sandbox import Sandbox

SECRET = "the answers of the hidden cases"
PTX_ONLY = "compute_80"  # nobody runs machine code here
SEED = 20_240_607
CASES = 2
GONE_SECONDS = 20.0  # until the engine has removed a container
FILE = "softmax_kernel.cu"
BEGIN, END = "<!-- nox -s attacks -- --write docs/attacks.md -->", "<!-- end -->"


@dataclass(frozen=True)
class Tried:
    """What became of an attack in one sandbox."""

    attack: Attack
    sandbox: str
    verdict: str  # "not built", or what its cases got
    reasons: tuple[str, ...]  # of the import policy
    said: str  # by the compiler, or of the cases
    managed: tuple[str, ...]  # what it got hold of
    left: tuple[str, ...]  # processes, folders, containers and shared memory that it left
    next_passes: bool
    excused: bool = False  # by what the sandbox says of itself on this machine

    @property
    def points(self) -> bool:
        """Whether it would gain any."""
        return self.verdict == Verdict.PASS and not self.reasons

    @property
    def held(self) -> bool:
        """Whether it got hold of nothing and left nothing."""
        return not self.managed and not self.left

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not as the table of attacks says."""
        attack = self.attack
        wrong = []
        if self.points:
            wrong.append("it gains points")
        if bool(self.reasons) != bool(attack.policy) or attack.policy not in " ".join(self.reasons):
            wrong.append(f"the policy says {self.reasons or 'nothing'}")
        if self.sandbox in attack.held and not self.excused:
            if not self.held:
                wrong.append(f"managed {self.managed}, left {self.left}")
            if self.verdict not in attack.verdict.split(" or "):
                wrong.append(f"{self.verdict} instead of {attack.verdict}: {self.said}")
            if attack.says not in self.said:
                wrong.append(f"{attack.says!r} is not said, but {self.said!r}")
        if not self.next_passes:
            wrong.append("the next submission does not pass")
        return tuple(wrong)


class Range:
    """What attacks are tried on: a secret, sockets that listen, a cache with other builds."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.cache = Cache(folder / "builds")
        secret = folder / "secret"
        secret.write_text(f"#define {SECRET.replace(' ', '_')}\n")
        for name in ("one", "another", "third"):
            self.cache.store(name, {"library.so": b"other"})
        self._doors = ExitStack()
        port = self._listening(socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]
        name = f"grader-attacks-{folder.name}"
        self._key = zlib.crc32(name.encode()) & 0x7FFFFFFF  # of shared memory
        self._listening(socket.AF_UNIX, "\0" + name)
        self._listening(socket.AF_UNIX, str(folder / "door"))
        (folder / "door").chmod(0o777)
        self._places = {
            "@SECRET@": str(secret),
            "@GRADER@": str(Path(grader.__file__).parent),
            "@CACHE@": str(folder / "builds"),
            "@PORT@": str(port),
            "@NAME@": name,
            "@KEY@": str(self._key),
            "@SOCKET@": str(folder / "door"),
        }

    def _listening(self, family: int, address: object) -> socket.socket:
        door = self._doors.enter_context(socket.socket(family))
        door.bind(address)  # type: ignore[arg-type]
        door.listen(64)
        return door

    def close(self) -> None:
        self._doors.close()

    def source(self, attack: Attack) -> str:
        """The source with the places of this range."""
        return re.sub("@[A-Z]+@", lambda match: self._places[match[0]], attack.source)

    def attempt(self, attack: Attack, sandbox: Sandbox) -> Tried:
        """Try ``attack``, and an honest submission after it."""
        before = _there(sandbox)
        tried = self._tried(attack, self.source(attack), sandbox)
        honest = HONEST_CONTROLS[attack.language]
        control = self._tried(honest, honest.source, sandbox)
        lacking = sandbox.probe().not_enforced if attack.unless else ()
        excused = any(attack.unless in line for line in lacking)
        return replace(tried, left=self._left(sandbox, before), next_passes=control.points, excused=excused)

    def _tried(self, attack: Attack, source: str, sandbox: Sandbox) -> Tried:
        if attack.language == "triton":
            return self._tried_in_python(attack, source, sandbox)
        compiling = attack.verdict == "not built"
        with tempfile.TemporaryDirectory(prefix="grader-nocache-") as fresh:
            builder = sandbox if compiling else _builder(sandbox)
            built = build(
                FILE,
                {FILE: source.encode()},
                find_toolchain(builder.image),
                builder,
                replace(compile_limits(60.0, 2 << 30), file_bytes=128 << 20)
                if not compiling
                else replace(compile_limits(attack.seconds, 1 << 30), file_bytes=128 << 20),
                Cache(Path(fresh)) if compiling else self.cache,
                PTX_ONLY,
            )
            tried = Tried(attack, sandbox.name, "not built", (), built.log, (), (), next_passes=True)
            if compiling:
                leaks = [word for word in ("MANAGED", SECRET.replace(" ", "_")) if word in built.log]
                return replace(
                    tried,
                    verdict="built" if built.ok else "not built",
                    managed=(*leaks, *["a file"] * built.ok),
                )
            if built.artefact is None:
                return tried
            reasons = violations(built.artefact, {FILE: source.encode()})
            library = built.artefact
            return _judged(
                replace(tried, reasons=reasons),
                _problem(),
                lambda: Sim(sandbox).open(library, (_problem().entry_point,)),
            )

    def _tried_in_python(self, attack: Attack, source: str, sandbox: Sandbox) -> Tried:
        sim = Sim(sandbox)
        language = Triton(sandbox, compile_limits(60.0, 2 << 30), self.cache, (sim,))
        asked = language.translated(_problem())
        contents = {asked.file: source.encode()}
        built = language.build({asked.file: contents}, {})[asked.file].full
        assert built.artefact is not None, built.log
        artefact, names = built.artefact, (asked.entry_point,)
        reasons = language.inspect(artefact, asked.file, contents, names, (), ()).forbidden
        called = language.launcher(asked, contents, Memory.DEVICE).problem
        tried = Tried(attack, sandbox.name, "", reasons, "", (), (), next_passes=True)
        return _judged(tried, called, lambda: language.open(sim, artefact, names))

    def _left(self, sandbox: Sandbox, before: tuple[str, ...]) -> tuple[str, ...]:
        """What is there of this process's jobs, and was not ``before``.

        The engine gets some seconds to remove a container.
        """
        deadline = time.monotonic() + GONE_SECONDS
        while (found := _new(sandbox, before)) and time.monotonic() < deadline:
            time.sleep(0.05)
        segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        if any(int(line.split()[0]) == self._key for line in segments):
            subprocess.run(["ipcrm", "--shmem-key", str(self._key)], check=True)
            found = (*found, "shared memory")
        # Inside a sandbox, folders of the same names may be the job's own.
        for place in ("@GRADER@", "@CACHE@"):
            if (written := Path(self._places[place], "attack")).exists():
                written.unlink()
                found = (*found, str(written))
        return found


def _judged(tried: Tried, problem: KernelProblem, opened: Callable[[], Session]) -> Tried:
    """What becomes of an attack that runs, as an answer to ``problem``."""
    attack = tried.attack
    with pytest.MonkeyPatch.context() as patch:
        if attack.group == "loading":
            patch.setattr(runner, "START_SECONDS", attack.seconds)
        patch.setattr(patience, "ASLEEP_SECONDS", min(patience.ASLEEP_SECONDS, attack.seconds))
        judged = judge(
            problem,
            problem.cases(SEED)[:CASES],
            opened,
            Sim.schedules[:2],
            memory=Memory.DEVICE,
            seconds=attack.seconds,
        )
    verdicts = [case.verdict for case in judged.cases]
    worst = next(
        (v for v in (Verdict.UNTRUSTED, Verdict.INFRA_ERROR, Verdict.FAIL) if v in verdicts), Verdict.PASS
    )
    if worst is Verdict.PASS and any(KINDS[finding.kind].costs for finding in judged.findings):
        worst = Verdict.FAIL
    said = "; ".join(filter(None, (case.message or case.diagnosis for case in judged.cases)))
    said += "; ".join(finding.kind for finding in judged.findings)
    managed = tuple(dict.fromkeys(re.findall(r"^MANAGED (.*)$", judged.printed, re.MULTILINE)))
    return replace(tried, verdict=worst.value, said=said, managed=managed)


HONEST_CONTROLS = {
    "cuda": Attack("honest", "control", HONEST, verdict="PASS"),
    "triton": Attack("honest", "control", HONEST_PYTHON, verdict="PASS", language="triton"),
}


@cache
def _problem():  # type: ignore[no-untyped-def]  # noqa: ANN202
    return KERNELS["softmax_backward"]


def _builder(sandbox: Sandbox) -> Sandbox:
    """Where an attack on something else than compiling is built: in no sandbox whose compilers are ours.

    One build then serves all sandboxes.
    """
    image = sandbox.image
    if image is None:
        return sandbox
    own = find_toolchain()
    same = (image.nvcc_version, image.cxx_version) == (own.version, own.cxx_version)
    return BACKENDS["process"]() if same else sandbox


def _new(sandbox: Sandbox, before: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in _there(sandbox) if one not in before)


def _there(sandbox: Sandbox) -> tuple[str, ...]:
    found = [f"process {pid}" for pid in {*descendants(), *processes(leftovers.prefix())}]
    for place in (Path(tempfile.gettempdir()), *cgroup.groups()):
        found += map(str, place.glob(leftovers.prefix() + "*"))
    if sandbox.name == "docker":
        with engine.client() as api:
            mine = {"label": f"{LABEL}={leftovers.owner()}"}
            found += [one["Id"] for one in api.containers(all=True, filters=mine)]
    return tuple(found)


def processes(word: str) -> list[int]:
    """The other processes whose command line or environment holds ``word``."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (path / "environ").read_bytes() + (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


@contextmanager
def sandboxes(wanted: Iterable[str] = BACKENDS) -> Iterator[dict[str, Sandbox]]:
    """Those of the wanted sandboxes that work here, by name; an engine for docker is started if need be.

    Raises:
        SandboxError: one does not work although it could; docker needs an engine.
    """
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        names = list(wanted)
        try:
            if "docker" in names:
                patch.setenv("DOCKER_HOST", stack.enter_context(engine.engine()))
                patch.setenv(IMAGE_VARIABLE, engine.SANDBOX_IMAGE)
        except engine.NoEngineError as error:
            print(f"no docker: {error}", file=sys.stderr)
            names.remove("docker")
        found = {name: BACKENDS[name]() for name in names}
        for sandbox in found.values():
            if not (probe := sandbox.probe()).usable:
                raise SandboxError(probe.remedy)
        yield found


@contextmanager
def shooting_range() -> Iterator[Range]:
    """A range in a folder that any user may read."""
    with tempfile.TemporaryDirectory(prefix="grader-attacks-") as folder:
        place = Range(Path(folder))
        try:
            yield place
        finally:
            place.close()


def table(tried: Sequence[Tried]) -> str:
    """What became of each attack, a row per attack and a column per sandbox."""
    names = list(dict.fromkeys(one.sandbox for one in tried))
    head = f"| attack | import policy | {' | '.join(names)} | and where it runs |"
    lines = [head, re.sub("[^|]+", "---", head)]
    for attack in dict.fromkeys(one.attack for one in tried):
        cells = {one.sandbox: "held" if one.held else "managed" for one in tried if one.attack == attack}
        lines.append(row(attack, [cells.get(name, "not tried") for name in names]))
    held = [
        f"{name} held {sum(one.held for one in tried if one.sandbox == name)} of "
        f"{sum(one.sandbox == name for one in tried)}"
        for name in names
    ]
    return "\n".join([*lines, "", f"{'; '.join(held)}."])


def row(attack: Attack, cells: Sequence[str]) -> str:
    """The row of an attack that went as it must, with a cell per sandbox."""
    ends = f"{attack.verdict}: {attack.says}" if attack.says else attack.verdict
    return f"| {attack.group}: {attack.id} | {attack.policy} | {' | '.join(cells)} | {ends} |"


def written(page: str, new: str) -> str:
    """``page`` with another table between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{new}\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Try every attack in every sandbox.")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="attacks whose group or name holds one")
    parser.add_argument("--sandbox", nargs="+", choices=list(BACKENDS), default=list(BACKENDS))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a page whose table to replace")
    options = parser.parse_args()
    wanted = [
        one
        for one in (*ATTACKS, *IN_PYTHON)
        if not options.only or any(word in f"{one.group}: {one.id}" for word in options.only)
    ]
    done, faults = [], 0
    with sandboxes(options.sandbox) as found, shooting_range() as place:
        for attack in wanted:
            for name in found:
                if name not in attack.tried:
                    continue
                begin = time.monotonic()
                tried = place.attempt(attack, found[name])
                done.append(tried)
                faults += bool(tried.faults)
                marks = f"   <-- {'; '.join(tried.faults)}" if tried.faults else ""
                seconds = time.monotonic() - begin
                held = "held" if tried.held else f"managed {', '.join(tried.managed + tried.left)}"
                said = f"{attack.id} in {name}: {held}, {tried.verdict} {seconds:.1f} s{marks}"
                print(said, file=sys.stderr)
    print(table(done))
    if options.write:
        options.write.write_text(written(options.write.read_text(), table(done)))
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
