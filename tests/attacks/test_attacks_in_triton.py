"""Attacks in Triton end as their table says in bubblewrap and docker, and the next submission passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attacks.table import IN_PYTHON, WALLED, Attack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attacks.attempt import Range

    from grader.sandbox.sandbox import Sandbox

pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")


@pytest.mark.parametrize("name", WALLED)
@pytest.mark.parametrize("attack", IN_PYTHON, ids=lambda attack: attack.id)
def test_an_attack_ends_as_it_must(
    attack: Attack, name: str, found: Mapping[str, Sandbox], place: Range
) -> None:
    if name not in found:
        pytest.skip(f"{name} does not work here")
    assert place.attempt(attack, found[name]).faults == ()
