"""nvcc for the tests, which compiles the same text once, whichever tests and test processes ask for it."""

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile

from grader.records.findings import Finding
from grader.records.sentences import sentence
from grader.simulator.driver import Simulator

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(autouse=True)
def findings_become_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding that lacks a fact of its sentence fails the test that takes it."""
    take = Simulator.take_findings

    def taken(simulator: Simulator) -> tuple[Finding, ...]:
        findings = take(simulator)
        for finding in findings:
            assert str(sentence(finding))
        return findings

    monkeypatch.setattr(Simulator, "take_findings", taken)


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "built"

    def compile_(source: str | Path, name: str, *flags: str) -> Path:
        text = source if isinstance(source, str) else source.read_text()
        place = folder / hashlib.sha256(repr((text, name, flags)).encode()).hexdigest()[:16]
        place.mkdir(parents=True, exist_ok=True)
        built = place / name
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.exists():
                if isinstance(source, str):
                    source = place / f"{name}.cu"
                    source.write_text(text)
                command = ["nvcc", "-O1", *flags, "-o", str(built), str(source)]
                subprocess.run(command, check=True, stderr=subprocess.PIPE)
        return built

    return compile_


@pytest.fixture(scope="session")
def runtime_library(nvcc: Compile) -> Path:
    return nvcc(PROGRAMS / "runtime.cu", "runtime.so", *LIBRARY)
