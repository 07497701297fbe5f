"""Messages that begin with a place in a file of Python."""

from __future__ import annotations

import pytest

from grader.records.placed import Placed, placed


def test_a_message_begins_with_its_place() -> None:
    assert placed("kernel.py:7: ValueError: a: b\nc") == Placed("kernel.py", 7)


@pytest.mark.parametrize("text", ["", "the code died", "kernel.cu:7: no", "kernel.py: 3", "kernel.py:0: no"])
def test_other_messages_have_none(text: str) -> None:
    assert placed(text) is None
