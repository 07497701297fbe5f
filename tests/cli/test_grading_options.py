"""Options that grade, batch, workers and Slurm jobs share: each command takes what the others hand on."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

import pytest

from grader.cli.batch import batch
from grader.cli.grade import grade
from grader.run.options import GradingOptions, words

if TYPE_CHECKING:
    import click


def other(option: str) -> object:
    """A value of a field that is not its default."""
    (field,) = (each for each in fields(GradingOptions) if each.name == option)
    return field.metadata["choices"][-1] if "choices" in field.metadata else not field.default


@pytest.mark.parametrize("command", [grade, batch], ids=lambda command: command.name)
@pytest.mark.parametrize("option", [field.name for field in fields(GradingOptions)])
def test_a_command_understands_the_words_of_each_option(command: click.Command, option: str) -> None:
    options = GradingOptions(**{option: other(option)})
    context = command.make_context(
        command.name, ["hw", "--out", "out"][: 3 if command is batch else 1] + words(asdict(options))
    )
    assert {name: context.params[name] for name in asdict(options)} == asdict(options)


def test_options_that_are_the_usual_ones_say_so_but_for_those_that_are_off() -> None:
    assert words(asdict(GradingOptions())) == ["--device", "auto", "--sandbox", "auto", "--memory", "auto"]
