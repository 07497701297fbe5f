"""What a witness tells, made a sentence: by the library's own names, whatever else the text says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from grader.devices.stack import where

SOURCE = Path(__file__).parents[1] / "sandbox" / "host_waits.cpp"
LIBC = "/lib/libc.so.6+0x10 nanosleep\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("waits") / "waits.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", str(target), str(SOURCE)], check=True)
    return target


def _frame(library: Path, name: str, *, last: bool = False) -> str:
    """A frame within the function whose linker name ends with ``name``; its last byte, or the third."""
    with library.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        found = next(symbol for symbol in table.iter_symbols() if symbol.name.endswith(name))  # type: ignore[union-attr]
    place = found["st_value"] + (found["st_size"] if last else 2)
    return f"{library}+{place:#x} forged\n"


def test_a_call_at_the_end_of_a_function_belongs_to_it(library: Path) -> None:
    """Where it returns to, the next function begins."""
    text = LIBC + _frame(library, "helper_waitEl") + _frame(library, "launch_softmax", last=True)
    told = "in helper_wait, called by launch_softmax, asleep in nanosleep"
    assert where(text, [library], ["launch_softmax"], asleep=True) == told


def test_the_entry_point_alone(library: Path) -> None:
    text = _frame(library, "launch_softmax")
    assert where(text, [library], ["launch_softmax"], asleep=False) == "in launch_softmax"
    assert where(text, [library], ["launch_softmax"], asleep=True) == "asleep in launch_softmax"
    assert where(text, [library], (), asleep=True) == "asleep in launch_softmax"


def test_a_caller_whose_loop_it_is_gets_no_loop_of_the_function_that_it_calls(library: Path) -> None:
    text = _frame(library, "one_morePVi") + _frame(library, "launch_often")
    told = "in one_more, called by launch_often"
    assert where(text, [library], ["launch_often"], asleep=False) == told


def test_work_in_another_library_is_named(library: Path) -> None:
    text = "/lib/libm.so.6+0x10 \n/lib/libm.so.6+0x10 __expf\n" + _frame(library, "launch_softmax")
    assert where(text, [library], ["launch_softmax"], asleep=False) == "in launch_softmax, working in expf"


def test_a_library_without_names_gives_its_entry_point(library: Path, tmp_path: Path) -> None:
    text = LIBC + _frame(library, "helper_waitEl") + _frame(library, "launch_attn_softmax")
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", str(stripped), str(library)], check=True)
    told = where(text.replace(str(library), str(stripped)), [stripped], ["launch_attn_softmax"], asleep=True)
    assert told == "in launch_attn_softmax, asleep in nanosleep"


def test_a_pytorch_file_is_named_by_line() -> None:
    text = 'Stack:\n  File "/x/kernels.py", line 3 in run\n  File "/x/model.py", line 12 in forward\n'
    assert where(text, [], (), asleep=True, model=Path("/x/model.py")) == "in forward, line 12 of model.py"
    assert where(text, [], (), asleep=True) == ""


@pytest.mark.parametrize(
    "text",
    ["", "end\n", "/nowhere.so+0x1 f\n", "{library}+0xffffffffffff f\n", "{library}+0x0 f\n", "?\n+0x\n"],
)
def test_what_explains_nothing_is_nothing(text: str, library: Path) -> None:
    assert where(text.format(library=library), [library], ["f"], asleep=True) == ""


def test_a_library_that_cannot_be_read_explains_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"\x7fELF" + b"\xff" * 60)
    assert (
        where(
            f"{broken}+0x10 f\n{tmp_path}/gone.so+0x10 f\n", [broken, tmp_path / "gone.so"], (), asleep=True
        )
        == ""
    )
