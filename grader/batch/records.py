"""The records of a batch in their folder: decides which are still valid, and makes the tables of all.

A record is still valid if the same grader would judge the same files with the same assignment on the same
kind of device, and if it matches the current request. Then its submission is not graded again. Lost points
are a valid result, but a fault of the machine is not.
"""

from __future__ import annotations

import fcntl
import re
import secrets
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.batch import by_hand, regrade, teams
from grader.batch.handed_in import kept, settled
from grader.processes import leftovers
from grader.records.exit_codes import ExitCode
from grader.records.record import SEED_BITS, NewerError, Record, RecordError, write, write_text
from grader.records.verdict import Verdict
from grader.reports.folder import (
    GRADEBOOK,
    INDEX,
    RECORD,
    REPORT,
    read_folder,
    write_page,
    write_pages,
    write_tables,
)
from grader.run.grading import grader_info
from grader.submissions.submission import collect
from grader.submissions.trees import SubmissionError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from grader.assignments.assignment import Assignment
    from grader.batch.handed_in import Settled
    from grader.submissions.discovery import Entry

_SEED = ".seed"
_LOCK = ".lock"
_UNFINISHED = re.compile(rf"\.({'|'.join(map(re.escape, (RECORD, REPORT, GRADEBOOK, INDEX)))})\.\w{{8}}")
_SHARE = 20  # the time between tables by the time that they take
_UNFINISHED_SECONDS = 3600.0  # much longer than writing takes, even if another machine's clock differs


class StorageError(Exception):
    """Results cannot be written; earlier results are kept."""


@dataclass(frozen=True)
class DeviceKind:
    """The kind of device of a batch; records are comparable only if it is the same."""

    kind: str
    name: str
    compiler: str


@dataclass(frozen=True)
class Wish:
    """What a record must match to be still valid.

    Attributes:
        assignment: the assignment of the batch.
        device: the device on which a submission would be graded now.
        sandbox: the option ``--sandbox``; ``auto`` matches any.
        memory: the option ``--memory``; ``auto`` matches any.
        seed: the option ``--seed``; None matches any.
    """

    assignment: Assignment
    device: DeviceKind
    sandbox: str = "auto"
    memory: str = "auto"
    seed: int | None = None

    def met(self, record: Record) -> bool:
        """Whether grading the same files again would give ``record``."""
        device = record.device
        return (
            finished(record)
            and record.grader == grader_info(self.assignment)
            and record.assignment == self.assignment.id
            and [problem.id for problem in record.problems]
            == [problem.id for problem in self.assignment.rules.problems]
            and (device is None or DeviceKind(device.kind, device.name, device.compiler) == self.device)
            and (record.sandbox is None or self.sandbox in {"auto", record.sandbox.backend})
            and self.seed in {None, record.seed}
            and all(
                self.memory in {"auto", problem.memory}
                for problem in record.problems
                if problem.correctness.cases
            )
        )


class Records:
    """The records below ``folder`` by submission; None for a submission without a result.

    Attributes:
        damaged: why a record could not be read when all were read last, by submission.
    """

    def __init__(self, folder: Path, title: str) -> None:
        """Read the existing records; one that is damaged counts as a missing result.

        Args:
            folder: where they lie.
            title: of the assignment, for the pages.

        Raises:
            StorageError: the folder cannot be created.
            NewerError: a record is of a newer major version: the grader needs an update.
        """
        self._folder, self._title = folder, title
        self._next = 0.0  # when tables are worth writing again
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            _sweep(folder)
        records, self.damaged = read_folder(folder)
        self._all: dict[str, Record | None] = {**records, **dict.fromkeys(self.damaged)}
        self._forgotten: set[str] = set()

    def __getitem__(self, name: str) -> Record | None:
        return self._all.get(name)

    def stands(self, entry: Entry, wish: Wish, files: Collection[str]) -> bool:
        """Whether the record of ``entry`` is still valid; ``files`` are the files that are graded."""
        record = self._all.get(entry.name)
        if record is None or not wish.met(record):
            return False
        return _content(entry, files) == (record.submission.sha256, record.submission.error)

    def made_since(self, entry: Entry, moment: datetime) -> bool:
        """Whether the grading of ``entry`` began at ``moment`` or later, rounded to seconds."""
        record = self._all.get(entry.name)
        return record is not None and record.started >= moment.isoformat(timespec="seconds")

    def expect(self, entries: Iterable[Entry]) -> None:
        """List submissions without a record as not graded."""
        for entry in entries:
            self._all.setdefault(entry.name)

    def forget(self, entry: Entry) -> None:
        """List the submission as not graded until it has a new record."""
        self._all[entry.name] = None
        self._forgotten.add(entry.name)

    def keep(self, entry: Entry, record: Record) -> None:
        """Write the record of ``entry``, and its page, each atomically.

        Raises:
            StorageError: the disk is full, or the folder is read-only.
        """
        self._all[entry.name] = record
        self._forgotten.discard(entry.name)
        folder = self._folder / entry.name
        with storing(folder):
            folder.mkdir(exist_ok=True)
            write(record, folder / RECORD)
            shown = self._settled().results[entry.name]
            assert shown is not None
            write_page(folder, shown, self._title)

    def show(self, *, shared: bool) -> None:
        """Write the page of the class and the gradebook, with ``shared`` of what other batches wrote, too.

        Nothing is written where that would take more than a small share of the time.

        Raises:
            StorageError: as for ``keep``.
            NewerError: as for ``show_all``.
        """
        begun = time.monotonic()
        if begun >= self._next:
            with storing(self._folder), _locked(self._folder / _LOCK):
                if shared:
                    self._take_in()
                shown = self._settled()
                write_tables(self._folder, shown.results, self._title, superseded=shown.superseded)
            self._next = begun + _SHARE * (time.monotonic() - begun)

    def show_all(self) -> None:
        """Write all pages and the gradebook, including records that other batches have written meanwhile.

        Raises:
            StorageError: as for ``keep``.
            NewerError: another grader has written a record of a newer major version.
        """
        with storing(self._folder), _locked(self._folder / _LOCK):
            self._take_in()
            shown = self._settled()
            write_pages(self._folder, shown.results, self._title, superseded=shown.superseded)

    def _settled(self) -> Settled:
        """The records after lateness, and which of several of a student count."""
        folder = self._folder
        tables = kept(folder), by_hand.read(folder), teams.read(folder), regrade.read(folder)
        return settled(self._all, *tables)

    def _take_in(self) -> None:
        """Read all records again."""
        records, self.damaged = read_folder(self._folder)
        for name in self.damaged:
            self._all.setdefault(name)
        self._all |= {name: record for name, record in records.items() if name not in self._forgotten}


def finished(record: Record) -> bool:
    """Whether the submission was judged, without a machine fault and without an interrupt."""
    return record.exit_code in {ExitCode.OK, ExitCode.POINTS_LOST}


def fault(record: Record) -> str:
    """The reason in one line why the machine could not judge the submission."""
    broken = [problem for problem in record.problems if problem.verdict is Verdict.INFRA_ERROR]
    cases = (case for problem in broken for case in problem.correctness.cases)
    reasons = [record.error or "", *(problem.message for problem in broken)]
    reasons += [case.message or case.diagnosis for case in cases if case.verdict is Verdict.INFRA_ERROR]
    return next(filter(None, reasons), "no reason was recorded").partition("\n")[0]


def class_seed(folder: Path) -> int:
    """The seed of all gradings into ``folder``, which the first one draws, so that all get the same inputs.

    Raises:
        StorageError: the seed cannot be stored or read.
    """
    path = folder / _SEED
    with storing(folder), _locked(folder / _LOCK):
        if not path.exists():
            write_text(f"{secrets.randbits(SEED_BITS)}\n", path)
            path.chmod(0o600)
        try:
            return int(path.read_text(encoding="ascii"))
        except ValueError as error:
            raise StorageError(f"{path} does not contain a number. Remove it and run this again.") from error


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """A context in which errors of writing become a StorageError, which ends the batch."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}. Earlier results are kept. Solve this problem, "
            "then run the same command again."
        ) from error
    except NewerError:
        raise  # no error of writing
    except RecordError as error:
        raise StorageError(
            f"{error} Earlier results are kept. Solve this problem, then run the same command again."
        ) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a folder to which other batches may write too."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sweep(folder: Path) -> None:
    """Remove incomplete files of batches that were killed."""
    for path in (*folder.glob(".*"), *folder.glob("*/.*")):
        if _UNFINISHED.fullmatch(path.name):
            with suppress(FileNotFoundError):  # another batch finished it
                if path.stat().st_mtime < time.time() - _UNFINISHED_SECONDS:
                    path.unlink()


def _content(entry: Entry, files: Collection[str]) -> tuple[str, str | None] | None:
    """Hash of the files and the error why they cannot be graded, as in a record; None if unreadable."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as scratch,
            collect(entry.lay_out(Path(scratch)), files) as submission,
        ):
            return submission.sha256, None
    except SubmissionError as error:
        return "", str(error)
    except (OSError, UnreadableError):
        return None  # grading will report the reason
