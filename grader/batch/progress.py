"""Shows a line for each finished submission of a batch, and on a terminal a progress bar below them.

The bar says how many are done, when the batch will be ready, and what is being done.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grader.batch.batch import BatchProgress

RECENT_SECONDS = 600.0  # period over which the rate is computed


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if not task.speed else f"{60 * task.speed:.1f} a minute")


class _Ready(ProgressColumn):
    """The time of day at which all will be done."""

    def render(self, task: Task) -> Text:
        if task.time_remaining is None or task.finished:
            return Text("")
        return Text(f"ready at {datetime.now().astimezone() + timedelta(seconds=task.time_remaining):%H:%M}")


@contextmanager
def shown(stream: TextIO) -> Iterator[Callable[[BatchProgress], None]]:
    """A function that shows progress on ``stream``; without a terminal only the lines, each at once."""
    if not stream.isatty():
        yield lambda step: print(step.line, file=stream, flush=True) if step.line else None
        return
    columns = (BarColumn(), MofNCompleteColumn(), _Rate(), _Ready(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(file=stream), speed_estimate_period=RECENT_SECONDS) as progress:
        task = progress.add_task("", total=None)

        def show(step: BatchProgress) -> None:
            if step.line:
                progress.console.print(step.line, markup=False, highlight=False, soft_wrap=True)
            progress.update(task, completed=step.done, total=step.todo)
            if step.doing:
                progress.update(task, description=escape(step.doing))

        yield show
