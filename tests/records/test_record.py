"""The record: written in one step, read with care, and described by its schema."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import jsonschema
import pytest

from grader.records import record as results
from grader.records.record import GraderInfo, Points, Record, RecordError, SubmissionInfo


def record(**changes: object) -> Record:
    fields: dict[str, object] = {
        "grader": GraderInfo(version="1", config_sha256="0"),
        "assignment": "a",
        "submission": SubmissionInfo(name="jdoe", sha256="0", files=["k.cu"]),
        "seed": 1,
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "score": Points(earned=1, decided=2, possible=3),
        "problems": [],
        "exit_code": 1,
    }
    return Record.model_validate({**fields, **changes})


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    results.write(record(), tmp_path / "result.json")
    assert results.read(tmp_path / "result.json") == record()


def test_a_written_record_follows_the_shipped_schema(tmp_path: Path) -> None:
    results.write(record(), tmp_path / "result.json")
    schema = json.loads(results.SCHEMA_FILE.read_text())
    jsonschema.validate(json.loads((tmp_path / "result.json").read_text()), schema)


def test_the_shipped_schema_is_that_of_the_models() -> None:
    assert results.SCHEMA_FILE.read_text() == results.json_schema(), "run: python -m grader.records.record"


def test_a_newer_major_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"schema": "2.0"}))
    with pytest.raises(RecordError, match=r"newer grader \(schema 2.0.*Update the grader"):
        results.read(tmp_path / "r.json")


def test_a_newer_minor_version_with_more_fields_is_read(tmp_path: Path) -> None:
    content = json.loads(record().model_dump_json(by_alias=True)) | {"schema": "1.9", "more": 1}
    (tmp_path / "r.json").write_text(json.dumps(content))
    assert results.read(tmp_path / "r.json").version == "1.9"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "1.0"}', '{"schema": null}'])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(RecordError, match=r"\. Name another file, or grade that submission again\.$"):
        results.read(tmp_path / "r.json")


def test_a_write_that_fails_leaves_the_old_record_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    results.write(record(), path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RecordError, match="No space left on device"):
        results.write(record(seed=2), path)
    assert results.read(path) == record()
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    results.write_text("x", tmp_path / "pipe")
    assert os.read(reading, 2) == b"x"
    os.close(reading)
    reading, writing = os.pipe()
    results.write_text("x", Path(f"/dev/fd/{writing}"))
    assert os.read(reading, 2) == b"x"
    os.close(reading)
    os.close(writing)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    results.write_text("x", tmp_path / "link")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "target").read_text()) == (True, "x")


def test_numbers_that_json_lacks_become_words() -> None:
    assert [results.value(number) for number in (math.nan, math.inf, -math.inf, 0.5)] == [
        "NaN",
        "Infinity",
        "-Infinity",
        0.5,
    ]


def test_a_build_says_how_large_its_kernels_are() -> None:
    kernel = {"kernel": "k", "registers": 8, "spill_bytes": 0, "shared_bytes": 0}
    build = {"ok": True, "seconds": 1, "cached": False, "command": "nvcc", "log": ""}
    known = [{**kernel, "code_bytes": size} for size in (384, 1280)]
    assert (
        results.BuildResult.model_validate({**build, "resources": known}).code
        == "kernels: 2, 1,664 bytes of machine code"
    )
    assert not results.BuildResult.model_validate({**build, "resources": [kernel]}).code
