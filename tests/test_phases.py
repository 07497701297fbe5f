"""The profile of phases names functions of the judge by text: each of them has to exist."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

BENCHMARKS = Path(__file__).resolve().parent / "benchmarks"


def test_every_watched_function_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "phases", raising=False)
    import phases  # noqa: PLC0415 - a script of the benchmarks, found by the path above

    trace = phases.Trace(tmp_path / "trace.json")
    with trace.watching(), trace.phase("watched"):
        pass
    assert [event["ph"] for event in trace.events()] == ["B", "E"]
