from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from grader.sandbox.process import ProcessSandbox

HERE = Path(__file__).parent


def compile_library(source: Path, target: Path, *more: str) -> Path:
    command = ["g++", "-O1", "-shared", "-fPIC", "-o", str(target), str(source), *more]
    subprocess.run(command, check=True, capture_output=True)
    return target


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runtime")
    target = folder / "libcudart.so.13"
    return compile_library(HERE / "fake_cudart.cpp", target, f"-Wl,-soname,{target.name}")


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory, runtime: Path) -> Path:
    target = tmp_path_factory.mktemp("student") / "student.so"
    return compile_library(HERE / "student.cpp", target, str(runtime))


@pytest.fixture
def sandbox() -> ProcessSandbox:
    return ProcessSandbox()
