"""A missing entry point is named with what was probably meant."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from grader.languages.cuda.exports import find
from grader.languages.language import EntryPoint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("void launch(int) {} void launch() {}", 'k.cu defines launch 2 times. Put extern "C" before one'),
        ("static void launch(int) {} void* user = (void*)launch;", 'k.cu has no function extern "C" launch.'),
        ('extern "C" void lanch(int) {}', "Found lanch (k.cu:1): rename it to launch."),
        ('extern "C" void other(int) {}', "Found other (k.cu:1): rename it to launch."),
        ('extern "C" void a(int) {}\nextern "C" void b(int) {}', 'k.cu has no function extern "C" launch.'),
        (
            'extern "C" void launch(int); void* user = (void*)launch;',
            'k.cu has no function extern "C" launch.',
        ),
        ('extern "C" { int launch; }', 'k.cu has no function extern "C" launch.'),
    ],
)
def test_the_reason_why_an_entry_point_is_not_there(code: str, said: str, tmp_path: Path) -> None:
    found = find(_built(code, tmp_path), "launch", "k.cu", text=code.encode())
    assert not found.symbol
    assert said in found.note


def test_an_entry_point_is_found_with_and_without_extern_c(tmp_path: Path) -> None:
    assert find(_built('extern "C" void launch(int) {}', tmp_path), "launch", "k.cu") == EntryPoint("launch")
    found = find(_built("void launch(int) {}", tmp_path), "launch", "k.cu")
    assert found.symbol == "_Z6launchi"
    assert 'extern "C" is missing' in found.note


def _built(code: str, folder: Path) -> Path:
    (folder / "k.cpp").write_text(code)
    library = folder / "k.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, folder / "k.cpp"], check=True)
    return library


def test_an_entry_point_is_found_in_namespaces(tmp_path: Path) -> None:
    code = "namespace a { template <class T> void launch(T*) {} namespace b { void launch(float*) {} } }"
    found = find(_built(code + " void* user = (void*)a::launch<int>;", tmp_path), "launch", "k.cu")
    assert found.symbol == "_ZN1a1b6launchEPf"
