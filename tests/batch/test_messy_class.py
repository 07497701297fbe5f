"""Ten messy uploads end in a gradebook, a file for Canvas and feedback that say the same."""

from __future__ import annotations

import csv
import io
import re
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
from assignments.own_assignment import INT_KERNEL, write

from grader.assignments.assignment import read
from grader.batch.batch import BatchRequest, run
from grader.cli.main import commands
from grader.run.options import GradingOptions
from grader.simulator.driver import RUNTIME

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

FILE = "int_add.cu"
WRONG = INT_KERNEL.replace("+=", "-=")
STUDENTS = {
    "adaada": 1001,
    "bobbob": 1002,
    "catcat": 1003,
    "dandan": 1004,
    "eveeve": 1005,
    "finfin": 1006,  # of eveeve's team, and handed nothing in
    "gusgus": 1007,
    "hanhan": 1008,
    "idaida": 1009,
    "janjan": 1010,
    "kimkim": 1011,
}
SCORES = {
    "adaada": "10.00",
    "bobbob": "10.00",
    "catcat": "",  # damaged: blank, and no zero
    "dandan": "10.00",
    "eveeve": "10.00",
    "finfin": "10.00",
    "gusgus": "8.00",  # two days late
    "hanhan": "5.00",  # by hand
    "idaida": "12.50",  # with a bonus
    "janjan": "10.00",
    "kimkim": "0.00",  # does not compile
}
NOTES = {
    "catcat": "damaged",
    "dandan": "INT_ADD.cu",
    "eveeve": "counts for eveeve_1005, finfin_1006",
    "gusgus": "2 days late: 20% of 10.00 points are taken off",
    "hanhan": "has 5.00 points instead of",
    "idaida": "by hand (Ada, 2026-12-05): +2.50 points; for the written part",
    "janjan": "see me",
}


def packed(name: str, content: str, inner: str = "") -> bytes:
    """A zip with a file, in a further zip of the name ``inner`` if there is one."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr(name, content)
    if not inner:
        return memory.getvalue()
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr(inner, memory.getvalue())
    return outer.getvalue()


def upload(folder: Path) -> None:
    """The files as Canvas's download of all submissions has them."""
    folder.mkdir()
    content = INT_KERNEL.encode()
    with tarfile.open(folder / "adaada_1001_501_hw.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo(f"hw/{FILE}")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    (folder / "bobbob_1002_502_hw.zip").write_bytes(packed(FILE, INT_KERNEL, "inner.zip"))
    (folder / "catcat_1003_503_hw.zip").write_bytes(packed(FILE, INT_KERNEL)[:-30])
    (folder / "dandan_1004_504_INT_ADD.cu").write_bytes(content)
    (folder / f"eveeve_1005_505_{FILE}").write_bytes(content)
    (folder / f"gusgus_LATE_1007_507_{FILE}").write_bytes(content)
    (folder / f"hanhan_1008_508_{FILE}").write_text(WRONG)
    (folder / f"idaida_1009_509_{FILE}").write_bytes(content)
    (folder / f"janjan_1010_510_{FILE}").write_bytes(content)
    (folder / f"kimkim_1011_511_{FILE}").write_text("int main() {")


def tables(out: Path, submitted: Path) -> None:
    out.mkdir()
    (out / "teams.csv").write_text("team,student\nteam-1,eveeve_1005\nteam-1,finfin_1006\n")
    (out / "points.csv").write_text(
        "submission,problem,points,comment,by,date\n"
        "hanhan_1008,int_add,5,a good idea,Ada,2026-12-05\n"
        "idaida_1009,,2.5,for the written part,Ada,2026-12-05\n"
        "janjan_1010,,,see me,Ada,2026-12-05\n"
    )
    on_time = "".join(
        f"{name}_{number},2026-12-01T10:00:00Z\n" for name, number in STUDENTS.items() if name != "gusgus"
    )
    submitted.write_text(f"submission,submitted\n{on_time}gusgus_1007,2026-12-03T10:00:00Z\n")


def score_of(page: str) -> str:
    """The points that a student's page shows; "" if there is no score yet."""
    shown = re.search(r'<p class="total"><strong>([\d.]+)</strong>', page)
    assert shown or "No score yet" in page
    return shown[1] if shown else ""


@pytest.mark.long
def test_all_reports_say_the_same(tmp_path: Path) -> None:
    own, submissions, out = write(tmp_path), tmp_path / "submissions", tmp_path / "out"
    rules = own / "assignment.toml"
    whole = "[deadline]\ndue = 2026-12-01T23:59:00Z\nper_day = 0.1\n"
    problem = '[[problems]]\nid = "int_add"\ntitle = "Adding integers"\ncorrectness = 10.0\n'
    rules.write_text(f'id = "own"\ntitle = "One small kernel"\n{whole}{problem}')
    upload(submissions)
    tables(out, tmp_path / "submitted.csv")
    request = BatchRequest(
        submissions,
        out,
        read(own),
        GradingOptions("sim", "process"),
        seed=5,
        jobs=2,
        submitted=tmp_path / "submitted.csv",
    )
    assert run(request).graded == 10
    export = tmp_path / "export.csv"
    lines = [f'"{name[:3].title()}, {name[3:].title()}",{number},,S1,' for name, number in STUDENTS.items()]
    export.write_text("Student,ID,SIS Login ID,Section,HW (7)\n" + "\n".join(lines) + "\n")
    options = ["--canvas", str(export), "--feedback-zip", str(tmp_path / "feedback.zip")]
    arguments = ["report", str(out), *options, "--submissions", str(submissions)]
    assert commands.main(arguments, standalone_mode=False) == 0
    with (out / "gradebook.csv").open(newline="") as file:
        rows = {row["submission"].partition("_")[0]: row for row in csv.DictReader(file)}
    with (out / "canvas.csv").open(newline="") as file:
        canvas = {row["Student"].replace(", ", "").lower(): row["HW (7)"] for row in csv.DictReader(file)}
    with zipfile.ZipFile(tmp_path / "feedback.zip") as archive:
        pages = {name: archive.read(name).decode() for name in archive.namelist()}
    assert canvas == SCORES
    assert {name: row["score"] for name, row in rows.items()} == {
        name: score for name, score in SCORES.items() if name != "finfin"
    }
    paths = {f"{name}_{number}_{number - 500}_feedback.html" for name, number in STUDENTS.items()}
    assert set(pages) == {path.replace("_506_", "_505_") for path in paths}
    for path, page in pages.items():
        assert score_of(page) == SCORES[path.partition("_")[0]], path
    for name, note in NOTES.items():
        assert note in rows[name]["note"], name
        (page,) = (page for path, page in pages.items() if path.startswith(name))
        assert note.replace("'", "&#39;") in page, name
