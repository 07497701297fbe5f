"""Draws the pictures of the README from a real run: ``python tests/pictures.py`` or ``nox -s pictures``.

A submission in which a barrier is missing is graded on the simulator. What the command prints becomes
``docs/pictures/terminal.svg``, and its page, as a browser shows it, ``docs/pictures/page.png``.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

from first_assignment import VARIANTS
from rich.console import Console
from rich.text import Text

from grader.reports.console import WIDTH

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
TERMINAL = PICTURES / "terminal.svg"
PAGE = PICTURES / "page.png"
COMMAND = "grader grade hw --problem softmax_forward --device sim --seed 1"
SIZE = (1000, 760)
_TEXT = re.compile(r'<text [^>]*y="(?P<line>[\d.]+)"[^>]*clip-path="[^"]*"[^>]*>(?P<text>[^<]*)</text>')


def hand_in(folder: Path) -> None:
    """A right kernel without one of its barriers."""
    source = (VARIANTS / "softmax_forward" / "shared.cu").read_text()
    barrier = "    const float largest = tree[0];\n    __syncthreads();\n"
    assert source.count(barrier) == 1
    folder.mkdir()
    (folder / "softmax_kernel.cu").write_text(source.replace(barrier, barrier.partition("\n")[0] + "\n"))


def graded(folder: Path) -> tuple[str, str]:
    """What the command prints, with colours, and the page that it writes."""
    hand_in(folder / "hw")
    words = [sys.executable, "-P", "-m", *COMMAND.split(), "--html", "page.html"]
    done = subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "FORCE_COLOR": "1", "GITHUB_ACTIONS": ""},
    )
    assert done.returncode == 1, done.stderr
    return done.stdout, (folder / "page.html").read_text(encoding="utf-8")


def drawn(printed: str) -> str:
    """The terminal with the command and what it ``printed``, as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    console.print(Text(f"$ {COMMAND}", style="bold"))
    console.print(Text.from_ansi(printed))
    return console.export_svg(title="kernel-grader", unique_id="grader")


def lines(svg: str) -> list[str]:
    """The lines of a drawn terminal."""
    found: dict[str, str] = {}
    for part in _TEXT.finditer(svg):
        found[part["line"]] = found.get(part["line"], "") + unescape(part["text"]).replace("\xa0", " ")
    return [text.rstrip() for text in found.values()]


def photograph(page: Path, picture: Path) -> None:
    """The first screen of ``page`` in Chromium."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("There is no chromium here, which draws the page: apt install chromium")
    width, height = SIZE
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    window = (f"--window-size={width},{height}", f"--screenshot={picture}")
    subprocess.run([browser, *options, *window, page.as_uri()], check=True, capture_output=True)


def main() -> None:
    """Draw both."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        printed, _ = graded(Path(folder))
        TERMINAL.write_text(drawn(printed))
        photograph(Path(folder, "page.html"), PAGE)


if __name__ == "__main__":
    main()
