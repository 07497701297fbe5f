"""What a runner imports before it has the device."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest

from grader.runner import server

if TYPE_CHECKING:
    from collections.abc import Iterator


class Silent:
    """Nobody speaks, and nothing is printed or loaded."""

    def __init__(self, *_: object) -> None:
        pass

    def hold(self, _most: int) -> None:
        pass


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    names: list[str] = []
    for name in ("Printed", "Runtime"):
        monkeypatch.setattr(server, name, Silent)
    monkeypatch.setattr(server.importlib, "import_module", names.append)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield names
    gc.enable()


@pytest.mark.parametrize("trains", [True, False])
def test_what_backward_passes_and_optimizers_import_is_there_before_the_device_is(
    imported: list[str], *, trains: bool
) -> None:
    header: dict[str, Any] = {"printed_most": 1, "runtime": "", "gpu": False, "model": "m.py", "packages": []}
    channel: Any = Silent()
    server.Server(channel)._import({**header, "trains": trains}, memoryview(b""))
    backward = ["torch", "torch.fx.experimental.symbolic_shapes"]
    assert imported == [*backward, *(["torch._dynamo"] if trains else [])]
