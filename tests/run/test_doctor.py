from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from grader.languages.cuda.toolchain import ToolchainError
from grader.run import doctor
from grader.run.doctor import Diagnosis, Part, State, examine, render

if TYPE_CHECKING:
    from pathlib import Path


def test_this_machine_is_plain_data_and_lists_every_part() -> None:
    diagnosis = examine()
    names = [part["name"] for part in json.loads(json.dumps(diagnosis.as_json()))["parts"]]
    assert {
        "nvcc",
        "g++",
        "simulator",
        "Triton",
        "GPU",
        "sandbox docker",
        "sandbox bubblewrap",
        "sandbox process",
        "Slurm",
    } <= set(names)


@pytest.mark.parametrize(
    ("script", "state", "found"),
    [
        ("echo slurm 24.11.5", State.READY, "slurm 24.11.5"),
        ("echo 'sbatch: error: no configuration' >&2; exit 1", State.ABSENT, "no configuration"),
        ("exit 1", State.ABSENT, "exit code 1"),
    ],
)
def test_slurm_is_ready_where_sbatch_works(
    script: str, state: State, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(f"#!/bin/sh\n{script}\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (part,) = (part for part in examine().parts if part.name == "Slurm")
    assert part.state is state
    assert found in part.detail


def test_a_missing_compiler_shows_the_command_and_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ToolchainError(
            "No usable nvcc on this machine.\nInstall the pinned compiler:\n  pip install it"
        )

    monkeypatch.setattr(doctor, "find", missing)
    text = render(examine())
    assert "!!  compiler" in text
    assert "\n      pip install it\n" in text
    assert text.endswith("Not ready: install what is marked !! above.")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("#!/bin/sh\necho 'grader-sim: version GLIBC_9.9 not found' >&2; exit 1\n", "GLIBC_9.9 not found"),
        ("\x7fELF of another machine", "Exec format error"),
        (None, "not built"),
    ],
)
def test_a_simulator_that_does_not_run_here_is_not_ready(
    program: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "simulator" / "lib"
    library.mkdir(parents=True)
    (library / "libcudart.so.13").touch()
    if program is not None:
        (library / "grader-sim").write_text(program)
        (library / "grader-sim").chmod(0o755)
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "run" / "doctor.py"))
    part = doctor._simulator()
    assert part.state is State.MISSING
    assert said in part.detail
    assert "pip install" in part.remedy


def test_what_grading_does_not_need_does_not_stand_in_its_way() -> None:
    diagnosis = Diagnosis(
        "Linux", (Part("Slurm", State.ABSENT, "no sbatch"), Part("nvcc", State.READY, "13.0"))
    )
    assert diagnosis.ready
    assert render(diagnosis).splitlines()[2:4] == ["--  Slurm  no sbatch", "ok  nvcc   13.0"]
