"""A missing entry point is named with what was probably meant."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from grader.build.exports import missing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ('extern "C" void launch(int) {}', ""),
        ("void launch(int) {}", 'k.cu defines launch as a C++ function. Put extern "C" before it.'),
        ('extern "C" void lanch(int) {}', "Found lanch: rename it to launch."),
        ('extern "C" void other(int) {}', 'k.cu has no function extern "C" launch.'),
        (
            'extern "C" void launch(int); void* user = (void*)launch;',
            'k.cu has no function extern "C" launch.',
        ),
        ('extern "C" { int launch; }', 'k.cu has no function extern "C" launch.'),
    ],
)
def test_an_entry_point_is_there_or_the_reason_is(code: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "k.cpp").write_text(code)
    library = tmp_path / "k.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, tmp_path / "k.cpp"], check=True)
    told = missing(library, "launch", "k.cu")
    assert told.endswith(said) if said else not told
