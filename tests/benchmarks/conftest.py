"""Prints what the benchmarks of the sim found, one row per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest import Config, FixtureRequest, TerminalReporter  # noqa: PT013

    Row = dict[str, float]

ROWS = pytest.StashKey["dict[str, Row]"]()


@pytest.fixture
def show(request: FixtureRequest) -> Callable[[str, Row], None]:
    """Keeps a row, by its name, for the table at the end; rows have the same columns."""
    rows = request.config.stash.setdefault(ROWS, {})
    return rows.__setitem__


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: Config) -> None:
    rows = config.stash.get(ROWS, {})
    if not rows:
        return
    terminalreporter.section("how fast the sim executes kernels")
    columns = list(next(iter(rows.values())))
    first = max(map(len, rows))
    terminalreporter.write_line("".join([" " * first, *(f"  {column}" for column in columns)]))
    for name, row in rows.items():
        cells = (f"  {row[column]:>{len(column)},.2f}" for column in columns)
        terminalreporter.write_line("".join([name.ljust(first), *cells]))
