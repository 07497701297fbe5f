"""The entry point: runs a command and turns its exceptions into messages and exit codes."""

from __future__ import annotations

import errno
import signal
import sys
import traceback

import click

from grader import __version__
from grader.assignments.modules import PREFIX
from grader.cli.arguments import FaultError
from grader.cli.assignment import assignment
from grader.cli.batch import batch
from grader.cli.doctor import doctor
from grader.cli.grade import grade
from grader.cli.judge import judge
from grader.cli.new import new
from grader.cli.problems import problems
from grader.cli.report import report
from grader.cli.reproduce import reproduce
from grader.cli.simulate import simulate
from grader.cli.standard_streams import open_standard_streams
from grader.records.exit_codes import ExitCode

_UNREACHABLE = {errno.EACCES, errno.ENAMETOOLONG}  # why a path that was named cannot even be looked at


def main() -> None:
    """Run a command. Ctrl-C and SIGTERM end it with exit code 130, an unexpected exception with 4."""
    open_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores a lost terminal
            signal.signal(number, signal.default_int_handler)
    try:
        code = commands.main(prog_name="grader", standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = error.code if isinstance(error, FaultError) else ExitCode.USAGE
    except Exception as error:  # noqa: BLE001 - the one place that tells a bug of the grader from lost points
        if isinstance(error, OSError) and error.errno in _UNREACHABLE and error.filename:
            click.echo(f"Error: {error.filename}: {error.strerror}.", err=True)
            code = ExitCode.USAGE
        else:
            traceback.print_exc()
            file = _of_assignment(error)
            where = f"the assignment ({file})" if file else "the grader"
            click.echo(
                f"This is a bug in {where}, not in the submission. Please report the lines above.", err=True
            )
            code = ExitCode.GRADER_BUG
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is written: no traceback of the way out
    sys.exit(code)


def _of_assignment(error: Exception) -> str:
    """File and line of an assignment's module where ``error`` was raised; "" if it was raised elsewhere."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "").startswith(PREFIX):
            return f"{frame.f_code.co_filename}:{line}"
    return ""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="grader")
def commands() -> None:
    """Grade CUDA kernels: whether they are right, on any machine, and whether they are fast, on a GPU."""


for command in (grade, judge, reproduce, batch, report, new, problems, assignment, doctor, simulate):
    commands.add_command(command)
