"""Which device a machine gets, and what it is told where there is none."""

from __future__ import annotations

import pytest

from grader.devices import select
from grader.records.errors import DeviceError
from grader.sandbox.process import ProcessSandbox


@pytest.mark.parametrize("kind", ["sim", "auto"])
def test_a_simulator_that_is_not_built_is_told_before_anything_is_graded(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise DeviceError("the simulator is not built")

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.setattr(select, "check_installed", missing)
    with pytest.raises(DeviceError, match="not built"):
        select.select(kind, ProcessSandbox(), None)
