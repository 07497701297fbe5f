"""The commands are the README's, outcomes are judged, and what cannot be had is a row that says so."""

from __future__ import annotations

import argparse
from pathlib import Path

import fresh
import pytest
import rows
from machines import DEBIAN_12, FEDORA, MACHINES, UBUNTU, Machine
from roots import HOME, UnreachableError, children_seconds, fetch
from rows import Row, Verdict
from steps import Step, run

ROOT = Path(__file__).parents[2]


def test_a_user_types_what_readme_and_docs_show() -> None:
    first, second = fresh.commands_of_the_readme()
    assert first == "python -m pip install nox && python -m nox -s grade"
    assert second == "python -m nox -s tests"
    for page in ("README.md", "docs/install.md"):
        assert fresh.ENTER in (ROOT / page).read_text()
    both = fresh.scripts(Machine("m", DEBIAN_12), "")
    assert [script.rpartition("activate && ")[2] for script in both] == [first, second]
    (alone,) = fresh.scripts(Machine("m", DEBIAN_12, way="pip"), "")
    assert alone == "cd kernel-grader && python3 -m pip install nox && python3 -m nox -s grade"
    (given,) = fresh.scripts(Machine("m", FEDORA, way="wheel"), "k.whl")
    assert "pip install './k.whl[cuda]' && { grader doctor; grader grade" in given


def test_every_machine_has_a_name_of_its_own_and_knows_its_packages() -> None:
    names = [machine.name for machine in MACHINES]
    assert len({*names}) == len(names)
    assert all({"python", *machine.parts} <= machine.system.packages.keys() for machine in MACHINES)


@pytest.mark.parametrize(
    ("output", "code", "verdict"),
    [
        ("sandbox process\nScore: 60.0/60.0 (100.0 possible)\n", 0, Verdict.AS_EXPECTED),
        ("sandbox process\nScore: 60.0/60.0 (100.0 possible)\n", 1, Verdict.UNEXPECTED),
        ("sandbox bubblewrap\nScore: 60.0/60.0 (100.0 possible)\n", 0, Verdict.UNEXPECTED),
        ("sandbox process\nScore: 59.0/60.0 (100.0 possible)\n", 0, Verdict.UNEXPECTED),
        ("", 0, Verdict.UNEXPECTED),
    ],
)
def test_a_score_needs_its_words_and_exit_code_0(output: str, code: int, verdict: Verdict) -> None:
    assert fresh.judged(("sandbox process", "Score: 60.0/60.0"), output, code)[0] is verdict


def test_a_refusal_needs_its_words_and_another_exit_code() -> None:
    said = "nox > g++ is missing. Install it:\n  apt-get\n"
    assert fresh.judged(("g++ is missing",), said, 1) == (
        Verdict.AS_EXPECTED,
        "nox > g++ is missing. Install it:",
    )
    assert fresh.judged(("g++ is missing",), said, 0)[0] is Verdict.UNEXPECTED


def test_downloads_count_what_pip_fetched_or_took_from_a_local_index(tmp_path: Path) -> None:
    local = tmp_path / "torch-1-py3-none-any.whl"
    local.write_bytes(bytes(1000))
    log = f"""
2026-11-24T12:11:03,123   Downloading https://host/a-1-py3-none-any.whl.metadata (5.5 kB)
2026-11-24T12:11:03,123   Downloading https://host/a-1-py3-none-any.whl (191.5 MB)
2026-11-24T12:11:03,123   Downloading b-1.tar.gz (700 bytes)
2026-11-24T12:11:03,123   Using cached c-1-py3-none-any.whl (9.0 MB)
2026-11-24T12:11:03,123   Processing {local}
2026-11-24T12:11:04,123   Processing {local}
2026-11-24T12:11:03,123   Processing /{HOME}/kernel-grader/.nox/kernel_grader-0.1.0-py3-none-any.whl
"""
    assert fresh.downloaded(log) == 5_500 + 191_500_000 + 700 + 1000


def test_rows_are_kept_as_data_and_shown_as_a_table(tmp_path: Path) -> None:
    steps = (Step("first", 0, 61.4, 125.0), Step("second", 0, 600.0, 1100.0))
    full = Row("a", "g++", "Debian", Verdict.AS_EXPECTED, "Score: 60.0/60.0", "3.11.2", steps, 10**9, 10**10)
    gone = Row("b", "g++", "Fedora", Verdict.UNREACHABLE, "docker: no\nroute | there")
    rows.write([full, gone], tmp_path / "rows.json")
    assert rows.read(tmp_path / "rows.json") == [full, gone]
    assert rows.markdown([full, gone]).splitlines()[2:] == [
        "| a | g++ | Debian | 3.11.2 | 1:01, 10:00 | 2:05, 18:20 | 1.00 GB | 10.00 GB | Score: 60.0/60.0 |",
        "| b | g++ | Fedora |  |  |  |  |  | **image not reachable**: docker: no route \\| there |",
    ]


def test_an_image_that_cannot_be_had_is_a_row_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'Error: lookup of the registry failed' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UnreachableError, match="docker: Error: lookup of the registry failed"):
        fetch(UBUNTU, tmp_path / "root")
    options = argparse.Namespace(rows=["ubuntu-24.04"], out=tmp_path)
    (row,) = fresh.attempts(options)
    assert (row.verdict, row.system) == (Verdict.UNREACHABLE, "Ubuntu 24.04")
    assert "lookup of the registry failed" in row.said
    assert not [path for path in (tmp_path / "systems").iterdir() if path.suffix != ".unfinished"]


def test_a_step_keeps_what_is_printed_and_has_a_limit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run(["sh", "-c", "echo $WORD; exit 3"], "say", log, 10, {"WORD": "hi", "PATH": "/bin"}).code == 3
    assert run(["sleep", "20"], "sleep 20", log, 1).code == 124
    assert log.read_text() == "$ say\nhi\n$ sleep 20\n"
    busy = run(["sh", "-c", "timeout 0.3 sh -c 'while :; do :; done'"], "spin", log, 10)
    assert busy.processor_seconds > 0.01


def test_the_times_of_a_shell_are_those_of_its_children() -> None:
    assert children_seconds("0m0.01s 0m0.02s\n2m3.5s 1m0.25s\n") == 183.75
