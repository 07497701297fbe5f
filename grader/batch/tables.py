"""The error of tables that people write or export."""

from __future__ import annotations


class TableError(Exception):
    """The table cannot be used; the message names file, line and remedy."""
