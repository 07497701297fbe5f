"""Shows a line for each finished submission of a batch, and on a terminal a progress bar below them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grader.batch.batch import BatchProgress

RECENT_SECONDS = 600.0  # period over which the rate is computed


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if not task.speed else f"{60 * task.speed:.1f} a minute")


@contextmanager
def shown(stream: TextIO) -> Iterator[Callable[[BatchProgress], None]]:
    """A function that shows progress on ``stream``; without a terminal only the lines, each at once."""
    if not stream.isatty():
        yield lambda step: print(step.line, file=stream, flush=True) if step.line else None
        return
    columns = (BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=stream), speed_estimate_period=RECENT_SECONDS) as progress:
        task = progress.add_task("", total=None)

        def show(step: BatchProgress) -> None:
            if step.line:
                progress.console.print(step.line, markup=False, highlight=False, soft_wrap=True)
            progress.update(task, completed=step.done, total=step.todo)

        yield show
