"""The pages of students in an archive that Moodle and Canvas take as feedback on what was handed in.

Both match a file by its path. Moodle takes ``<name>_<participant>_assignsubmission_file_/<file>``, as in its
download of all submissions. Canvas takes ``<name>_<user>_<attachment>_<file>``, with the number of an
attachment that this user handed in: the names in its download have it.
"""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.reports.escaping import line
from grader.reports.moodle import participants

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "feedback.html"
_STUDENT = re.compile(r"anon_[^_]+|\w+?_\d+")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of archives, so that the same pages make the same one


@dataclass(frozen=True)
class Feedback:
    """The archive, and notices for the instructor."""

    archive: bytes
    notices: tuple[str, ...]


def archive(
    pages: Mapping[str, str | None], attachments: Mapping[str, int], roster: str | None = None
) -> Feedback:
    """The archive to upload.

    Args:
        pages: by student, with the name of the submission or that in ``teams.csv``; None without a result.
        attachments: the number of one that Canvas has of a student, by the name of the submission.
        roster: the text of Moodle's grading worksheet, which has the number of each participant.

    Raises:
        RosterError: that has no known column.
    """
    known = participants((name for name in pages if name not in attachments), roster)
    paths = {name: _path(name, attachments, known) for name in pages}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(pages):
            path, page = paths[name], pages[name]
            if path and page is not None:
                packed.writestr(zipfile.ZipInfo(path, _EPOCH), page, zipfile.ZIP_DEFLATED)
    written = sum(bool(paths[name]) and page is not None for name, page in pages.items())
    notices = [f"feedback for {written} students"]
    if without := [name for name, page in pages.items() if page is None]:
        notices.append(f"no result yet, so left out: {'; '.join(map(line, sorted(without)))}")
    if unknown := [name for name, page in pages.items() if page is not None and not paths[name]]:
        notices.append(
            "neither Moodle nor Canvas would know whose it is, so left out: "
            f"{'; '.join(map(line, sorted(unknown)))}. Add --roster with Moodle's grading worksheet, or "
            "--submissions with the folder that Canvas's download was unpacked to"
        )
    return Feedback(content.getvalue(), tuple(notices))


def of_canvas(name: str) -> bool:
    """Whether a student is called as in Canvas's download: by name and user."""
    return _STUDENT.fullmatch(name) is not None


def _path(name: str, attachments: Mapping[str, int], known: Mapping[str, tuple[str, str]]) -> str:
    """Where the page of a student lies in the archive; "" if nobody would know whose it is."""
    if name in attachments:
        return f"{name}_{attachments[name]}_{FILE}"
    if name in known:
        full_name, number = known[name]
        return f"{full_name.replace('_', ' ').replace('/', ' ')}_{number}_assignsubmission_file_/{FILE}"
    return ""
