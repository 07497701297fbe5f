"""Escapes text of students for terminals, pages, tables and CI services.

Names, file names, compiler output and printed text may contain anything: escape sequences for a terminal,
markup, formulas for a spreadsheet, commands for a CI service, or marks that change the text direction.
"""

from __future__ import annotations

import re

from grader.records.mangled import own_names_in

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_UNSEEN = re.compile(
    "[^\n\t\x20-\x7e\xa0-\U0010ffff]"  # ASCII and C1 control characters
    "|[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"  # line ends and direction marks
    "|[\ud800-\udfff\ufffe\uffff]"  # not characters, so XML or UTF-8 cannot encode them
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+, which lies (?P<none>0 bytes )?")
_OFFSET = re.compile(r" at 0x(?P<offset>[0-9a-f]{1,8}), which is outside")
_FOLDERS = re.compile(r"(?<![\w.<>:/])/(?:[\w.+@-]+/)+(?=[\w.+@-])")


def plain(text: str) -> str:
    """The text without escape sequences, control characters and direction marks."""
    return _UNSEEN.sub("", _SEQUENCE.sub("", text))


def line(text: str) -> str:
    """The text in one line, with each run of white space replaced by one blank."""
    return " ".join(plain(text).split())


def cell(text: str) -> str:
    """The text as a cell of a table, quoted if a spreadsheet would execute it as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def without_folders(text: str) -> str:
    """The text with absolute paths cut to file names, because folders of the grading machine are private."""
    return _FOLDERS.sub("", text)


def readable(text: str) -> str:
    """What a checker or the diagnosis says, in one line and in the words of the source.

    Names of functions are not mangled, folders and addresses are left out.
    """
    shown = _ADDRESS.sub(lambda match: " right " if match["none"] else " ", text)
    shown = _OFFSET.sub(lambda match: f" at byte {int(match['offset'], 16)}, which is outside", shown)
    return line(without_folders(own_names_in(shown)))


def workflow_message(text: str) -> str:
    """The text as the message of a GitHub workflow command."""
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: str) -> str:
    """The text as a property (file, title) of a GitHub workflow command."""
    return workflow_message(text).replace(":", "%3A").replace(",", "%2C")
