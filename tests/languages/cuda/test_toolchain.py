from __future__ import annotations

import os
import sysconfig
from typing import TYPE_CHECKING

import pytest

from grader.languages.cuda import toolchain
from grader.languages.cuda.toolchain import ToolchainError, cmake_program, find

if TYPE_CHECKING:
    from pathlib import Path

PARTS = ("include/crt/x.h", "nvvm/bin/cicc", "include/cuda_runtime.h", "include/cccl/x")


def _nvcc(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    nvcc = folder / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version[:4]}, V{version}'\n")
    nvcc.chmod(0o755)
    return nvcc


def _wheels(site: Path, *parts: str) -> Path:
    folder = site / "nvidia" / "cu13"
    for part in parts:
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / part).touch()
    return folder


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with g++ and no CUDA."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "g++").write_text("#!/bin/sh\necho 'g++ (Test) 12.2.0'\n")
    (tools / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "site"))
    monkeypatch.setattr(toolchain.site, "getusersitepackages", lambda: str(tmp_path / "user"))
    toolchain._ask.cache_clear()
    return tmp_path


def test_cuda_home_goes_before_path(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _nvcc(machine / "tools", "13.0.88")
    chosen = _nvcc(machine / "cuda" / "bin", "12.4.99")
    assert find().nvcc == machine / "tools" / "nvcc"
    monkeypatch.setenv("CUDA_HOME", str(machine / "cuda"))
    found = find()
    assert (found.nvcc, found.version, found.root) == (chosen, "12.4.99", machine / "cuda")
    assert found.runtime_name == "libcudart.so.12"


def test_the_wheels_serve_where_path_holds_an_old_compiler(machine: Path) -> None:
    _nvcc(machine / "tools", "11.8.89")
    wheels = _wheels(machine / "site", *PARTS, "lib/libcudart.so.13")
    _nvcc(wheels / "bin", "13.0.88")
    found = find()
    assert found.root == wheels
    assert found.runtime == wheels / "lib"


def test_an_unsupported_version_is_named(machine: Path) -> None:
    nvcc = _nvcc(machine / "tools", "12.3.107")
    with pytest.raises(ToolchainError) as error:
        find()
    assert f"{nvcc} is version 12.3.107; supported are 12.4 or newer and 13.x" in str(error.value)
    assert "python -m pip install nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88" in str(error.value)


def test_wheels_that_lack_one_of_the_set_are_named(machine: Path) -> None:
    wheels = _wheels(machine / "site", *PARTS[:-1])
    _nvcc(wheels / "bin", "13.0.88")
    with pytest.raises(ToolchainError, match="incomplete, missing: nvidia-cuda-cccl\n"):
        find()


def test_a_wrong_cuda_home_is_not_passed_over(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _nvcc(machine / "tools", "13.0.88")
    monkeypatch.setenv("CUDA_HOME", str(machine / "gone"))
    with pytest.raises(ToolchainError, match=r"CUDA_HOME is .*gone, but .* does not exist"):
        find()


def test_a_missing_host_compiler_names_its_package(machine: Path) -> None:
    _nvcc(machine / "tools", "13.0.88")
    (machine / "tools" / "g++").unlink()
    with pytest.raises(
        ToolchainError, match=r"g\+\+ is missing(.|\n)*apt-get install g\+\+(.|\n)*dnf install gcc-c"
    ):
        find()


def test_a_replaced_compiler_is_another_identity(machine: Path) -> None:
    nvcc = _nvcc(machine / "tools", "13.0.88")
    before = find().identity
    os.utime(nvcc, ns=(1, 1))
    assert find().identity != before


def test_cmake_of_a_wheel_is_the_program_that_its_script_starts(machine: Path) -> None:
    script, program = machine / "tools" / "cmake", machine / "site" / "cmake" / "bin" / "cmake"
    program.parent.mkdir(parents=True)
    program.touch()
    script.write_text(f"#!/bin/sh\necho {program} >&2\n")
    script.chmod(0o755)
    assert cmake_program() == program
    script.unlink()
    assert cmake_program() is None
