"""What a machine lacks is said in one message, before anything is downloaded or compiled."""

from __future__ import annotations

import platform
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]


class Aborted(Exception):  # noqa: N818 - as nox names it
    """The session ended, with this message."""


class Session:
    """A session of nox that notes what it is asked to install or run."""

    name = "tests"
    bin = "/session/bin"

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.environment: Mapping[str, str] = {}

    def install(self, *words: str, env: Mapping[str, str] | None = None, **_: object) -> None:
        self.asked.append(words)
        self.environment = env or {}

    run = run_install = install

    def error(self, message: str) -> NoReturn:
        raise Aborted(message)


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, object]:
    """The noxfile's functions; nox itself is not needed for them."""
    nox = ModuleType("nox")
    nox.session = lambda function: function  # type: ignore[attr-defined]
    nox.options = SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nox", nox)
    return runpy.run_path(str(ROOT / "noxfile.py"))


@pytest.mark.parametrize("version", [(3, 9, 2), (3, 10, 14), (3, 15, 0)])
def test_another_python_is_refused_by_its_version(
    version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(platform, "python_version", lambda: ".".join(map(str, version)))
    monkeypatch.setitem(sys.modules, "tomllib", None)  # which older versions lack
    with pytest.raises(SystemExit) as refused:
        runpy.run_path(str(ROOT / "noxfile.py"))
    said = str(refused.value).splitlines()
    assert said[0].endswith(f"needs Python 3.11 to 3.14, and this is Python {'.'.join(map(str, version))}.")
    assert said[-1].endswith("-m venv .venv && . .venv/bin/activate")


@pytest.mark.parametrize("libc", [("", ""), ("musl", "1.2.5"), ("libc", "")])
@pytest.mark.parametrize("session", ["grade", "tests", "wheels"])
def test_a_machine_without_the_gnu_c_library_is_refused_before_anything_is_installed(
    libc: tuple[str, str], session: str, noxfile: Mapping[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: libc)
    asked = Session()
    with pytest.raises(Aborted, match=r"Alpine has musl(.|\n)*Use Debian, Ubuntu, Fedora"):
        noxfile[session](asked)  # type: ignore[operator]
    assert not [words for words in asked.asked if not words[0].startswith("auditwheel")]


def test_a_machine_without_a_compiler_is_told_its_package(
    noxfile: Mapping[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Aborted) as refused:
        noxfile["grade"](Session())  # type: ignore[operator]
    said = str(refused.value).splitlines()
    assert said[0].startswith("g++ is missing.")
    assert said[1:] == [
        "  sudo apt-get install g++    (Debian, Ubuntu)",
        "  sudo dnf install gcc-c++    (Fedora, RHEL)",
        "Then run this command again.",
    ]


def test_the_build_finds_the_ninja_that_it_has_installed(
    noxfile: Mapping[str, object], tmp_path: Path
) -> None:
    built = tmp_path / "wheel" / Session.name / "kernel_grader-0.1.0-py3-none-any.whl"
    built.parent.mkdir(parents=True)
    built.touch()
    wheel = noxfile["wheel"]
    wheel.__globals__["BUILD"] = tmp_path  # type: ignore[attr-defined]
    session = Session()
    assert wheel(session) == built  # type: ignore[operator]
    assert "ninja" in session.asked[0]
    first, second = session.environment["PATH"].split(":")[:2]
    assert (first, second) == (str(tmp_path / "tools" / "bin"), Session.bin)


def configure(tmp_path: Path, compiler: str | None) -> subprocess.CompletedProcess[str]:
    """What CMake says of our project where ``g++`` is this script; without one if it is None."""
    cmake, ninja, real = (shutil.which(name) for name in ("cmake", "ninja", "g++"))
    if cmake is None or ninja is None or real is None:
        pytest.skip("cmake, ninja or g++ is not on PATH")
    tools = tmp_path / "tools"
    tools.mkdir()
    if compiler is not None:
        (tools / "g++").write_text(f"#!/bin/sh\n{compiler.format(real=real)}\n")
        (tools / "g++").chmod(0o755)
    for name in ("as", "ld", "ar", "ranlib"):
        (tools / name).symlink_to(shutil.which(name) or "")
    ninja_option = f"-DCMAKE_MAKE_PROGRAM={ninja}"
    return subprocess.run(
        [cmake, "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", ninja_option],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_build_says_that_the_compiler_is_missing_or_too_old(tmp_path: Path) -> None:
    for number, (compiler, words) in enumerate(
        (
            (None, "g++ is missing, the simulator is compiled with it. Install it:"),
            ('exec {real} -U__GNUC__ -D__GNUC__=10 "$@"', "g++ 11 or newer is needed"),
        )
    ):
        (tmp_path / str(number)).mkdir()
        done = configure(tmp_path / str(number), compiler)
        assert done.returncode == 1
        said = " ".join(done.stderr.split())
        assert said.count("CMake Error") == 1
        assert words in said
        assert "sudo dnf install gcc-c++" in said


def test_a_compiler_without_a_static_runtime_is_enough(tmp_path: Path) -> None:
    without = 'for word; do [ "$word" != -static-libstdc++ ] || exit 1; done; exec {real} "$@"'
    done = configure(tmp_path, without)
    assert done.returncode == 0, done.stderr
    assert "-static-libstdc++" not in (tmp_path / "build" / "build.ninja").read_text()
