"""Tables of comma-separated values that people write or export."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from grader.assignments.rules import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path


class TableError(Exception):
    """The table cannot be used; the message names file, line and remedy."""


def lines(
    table: Path,
    columns: list[str],
    needed: Collection[str],
    filled: Collection[str],
    *,
    optional: bool = False,
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """File and line of each line of a table, and the text of its cells by column.

    Args:
        table: the file.
        columns: that it may have.
        needed: those of them that it must have.
        filled: those of them that have text in every line.
        optional: whether no file at all is as good as one without lines.

    Raises:
        TableError: it cannot be read, or is no such table.
    """
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            titles = rows.fieldnames or []
            if unknown := [title for title in titles if title not in columns]:
                raise TableError(f"{table}: unknown column {unknown[0]!r}.{nearest(unknown[0], columns)}")
            if not set(needed) <= set(titles):
                raise TableError(f"{table}: the first line has to name its columns: {', '.join(columns)}")
            for row in rows:
                position = f"{table}:{rows.line_num}"
                cells = {title: (row[title] or "").strip() for title in titles}
                if None in row or not all(cells[title] for title in filled):
                    raise TableError(f"{position}: not a line of {', '.join(titles)}")
                yield position, cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        if optional and isinstance(error, FileNotFoundError):
            return
        raise TableError(f"{table}: cannot be read: {error}") from error
