"""The pictures of the README show what the grader prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pictures

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "Softmax forward"  # what stands above depends on the machine


def of_the_problem(svg: str) -> list[str]:
    """The lines about the problem, down to the score."""
    shown = pictures.lines(svg)
    return shown[next(index for index, text in enumerate(shown) if text.startswith(TITLE)) :]


def test_the_terminal_shows_what_the_command_prints(tmp_path: Path) -> None:
    printed, page = pictures.graded(tmp_path)
    drawn = pictures.TERMINAL.read_text()
    assert pictures.lines(drawn)[0] == f"$ {pictures.COMMAND}"
    assert of_the_problem(drawn) == of_the_problem(pictures.drawn(printed))
    assert "No __syncthreads() stands between the two" in page
