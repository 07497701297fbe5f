"""Kills graders with SIGKILL at random moments and looks for what is left after the next start.

nox -s killed -- [--times 50] [--sandbox NAME ...]
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import engine
from attacks.attempt import GONE_SECONDS, processes, sandboxes
from attacks.table import HONEST
from first_assignment import few_rows

from grader.processes import leftovers
from grader.records.record import RecordError, read
from grader.sandbox import cgroup
from grader.sandbox.backends import BACKENDS, select
from grader.sandbox.docker import LABEL

PROBLEM = "softmax_backward"


class Field:
    """Where graders are killed: a submission, and a temporary folder and a cache of their own."""

    def __init__(self, folder: Path, sandbox: str) -> None:
        self._sandbox = sandbox
        self._submission, self._temporary = folder / "submission", folder / "temporary"
        self._cache, self._record = folder / "cache", folder / "records" / "result.json"
        for made in (self._submission, self._temporary, self._record.parent):
            made.mkdir()
        (self._submission / "softmax_kernel.cu").write_text(HONEST)
        self._assignment = few_rows(folder / "few_rows")
        self._whole: dict[bool, float] = {}  # seconds, with and without compiling

    def _start(self, *, compiling: bool) -> subprocess.Popen[bytes]:
        if compiling:
            shutil.rmtree(self._cache, ignore_errors=True)
        self._record.unlink(missing_ok=True)
        options = ("--assignment", self._assignment, "--problem", PROBLEM, "--sandbox", self._sandbox)
        return subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "grader",
                "grade",
                self._submission,
                *options,
                *("--device", "sim", "--quiet", "--json", self._record),
            ],
            env={**os.environ, "TMPDIR": str(self._temporary), "GRADER_CACHE": str(self._cache)},
            stdout=subprocess.DEVNULL,
        )

    def measure(self) -> None:
        """Let two graders end by themselves; the others are killed within that time."""
        for compiling in (True, False):
            begin = time.monotonic()
            assert self._start(compiling=compiling).wait() in {0, 1}
            self._whole[compiling] = time.monotonic() - begin

    def kill_one(self, moment: float, *, compiling: bool) -> tuple[str, ...]:
        """Kill a grader at ``moment``, from 0 to 1, of its time, start the next one; what is wrong then."""
        grader = self._start(compiling=compiling)
        time.sleep(moment * self._whole[compiling])
        grader.kill()
        grader.wait()
        wrong = []
        try:
            read(self._record)
        except FileNotFoundError:
            pass
        except (RecordError, json.JSONDecodeError) as error:
            if self._record.exists():
                wrong.append(f"the record is broken: {error}")
        select(self._sandbox)
        leftovers.sweep(self._temporary)
        deadline = time.monotonic() + GONE_SECONDS
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return (*wrong, *left)

    def _left(self) -> tuple[str, ...]:
        slots = self._temporary / f"kernel-grader-{os.getuid()}"  # of the queue of compiles, which stays
        found = [str(path) for path in self._temporary.iterdir() if path != slots]
        found += [f"process {pid}" for pid in processes(str(self._temporary))]
        for place in cgroup.groups():
            found += map(str, leftovers.orphans(place))
        if self._sandbox == "docker":
            with engine.client() as api:
                containers = api.containers(all=True, filters={"label": LABEL})
            found += [one["Id"] for one in containers if leftovers.orphaned(one["Labels"][LABEL])]
        return tuple(found)


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill graders at random moments.")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--sandbox", nargs="+", choices=list(BACKENDS), default=list(BACKENDS))
    options = parser.parse_args()
    faults = 0
    with sandboxes(options.sandbox) as found:
        for name in found:
            with tempfile.TemporaryDirectory() as folder:
                Path(folder).chmod(0o755)
                field = Field(Path(folder), found[name].name)
                field.measure()
                wrong = [
                    field.kill_one(random.random(), compiling=random.random() < 0.5)
                    for _ in range(options.times)
                ]
            faults += sum(map(bool, wrong))
            print(f"{name}: {sum(not one for one in wrong)} of {options.times} kills left nothing")
            for one in filter(None, wrong):
                print(f"  {one}")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
