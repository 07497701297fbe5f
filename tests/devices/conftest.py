from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from host_libraries import HERE, compile_library

from grader.sandbox.process import ProcessSandbox

if TYPE_CHECKING:
    from pathlib import Path


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
