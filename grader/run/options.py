"""How to grade: the options that ``grade``, ``batch``, its workers and its Slurm jobs share.

An option is a field here. The command line, the workers' requests and the jobs' commands are made of the
fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.sandbox.backends import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class GradingOptions:
    """How to grade; ``help`` of a field, and the ``choices`` of a text, are those of its option."""

    device: str = field(default="auto", metadata={"choices": ("auto", "gpu", "sim")})
    sandbox: str = field(
        default="auto",
        metadata={"choices": ("auto", *BACKENDS), "help": "What confines compiling and running."},
    )
    memory: str = field(
        default="auto",
        metadata={
            "choices": ("auto", "device", "host"),
            "help": "Whether the launchers take device or host pointers.",
        },
    )
    precise: bool = field(
        default=False,
        metadata={
            "help": "Measure speeds as well as this GPU can, for a leaderboard, and not only until verdict "
            "and points are clear. Takes several times as long."
        },
    )
    all_configs: bool = field(
        default=False,
        metadata={
            "help": "On the simulator, let triton.autotune run every configuration; the first is taken "
            "anyway."
        },
    )


def words(options: Mapping[str, object]) -> list[str]:
    """The words of a command line for options by name: of those that are off, or have no value, none."""
    line: list[str] = []
    for name, value in options.items():
        if value is not None and value is not False:
            line += [spelled(name)] if value is True else [spelled(name), str(value)]
    return line


def spelled(name: str) -> str:
    """The option of a command line for a parameter."""
    return f"--{name.replace('_', '-')}"
