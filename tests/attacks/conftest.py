"""The sandboxes that attacks are tried in, and what they are tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attacks.attempt import Range, sandboxes, shooting_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grader.sandbox.sandbox import Sandbox


@pytest.fixture(scope="module")  # no longer: other tests must not find the engine in their environment
def found() -> Iterator[Mapping[str, Sandbox]]:
    with sandboxes() as backends:
        yield backends


@pytest.fixture(scope="session")
def place() -> Iterator[Range]:
    with shooting_range() as made:
        yield made
