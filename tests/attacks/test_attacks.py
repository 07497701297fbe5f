"""Attacks end as their table says, and the next submission passes.

All are tried in bubblewrap, and in docker those that only the sandbox holds; ``nox -s attacks`` tries all in
each.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attacks.attempt import BEGIN, END, Range, row
from attacks.table import ALL, ATTACKS, IN_PYTHON, Attack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.sandbox.sandbox import Sandbox

WALL = {
    "compiling",
    "resources",
    "files",
    "network",
    "processes",
}  # the others are the judge's and the policy's
PAGE = Path(__file__).parents[2] / "docs" / "attacks.md"


@pytest.mark.parametrize(
    ("attack", "name"),
    [
        (attack, name)
        for attack in ATTACKS
        for name in ("docker", "bubblewrap")  # one after the other, as they share a build
        if name == "bubblewrap" or attack.group in WALL
    ],
    ids=lambda part: part if isinstance(part, str) else part.id,
)
def test_an_attack_ends_as_it_must(
    attack: Attack, name: str, found: Mapping[str, Sandbox], place: Range
) -> None:
    if name not in found:
        pytest.skip(f"{name} does not work here")
    assert place.attempt(attack, found[name]).faults == ()


def test_there_are_enough_and_each_has_a_name() -> None:
    names = [attack.id for attack in (*ATTACKS, *IN_PYTHON)]
    assert len(set(names)) == len(names) >= 90


def test_the_page_tells_of_these_attacks() -> None:
    lines = PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    names = lines[0].strip("| ").split(" | ")[2:-1]
    assert set(names) == set(ALL)
    expected = []
    for attack, line in zip((*ATTACKS, *IN_PYTHON), lines[2:], strict=False):
        shown = dict(zip(names, line.strip("| ").split(" | ")[-1 - len(names) : -1], strict=True))
        must = {name: "held" if name in attack.held else shown[name] for name in attack.tried}
        expected.append(row(attack, [must.get(name, "not tried") for name in names]))
    assert lines[2:-2] == expected, "run: nox -s attacks -- --write docs/attacks.md"
