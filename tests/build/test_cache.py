from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from grader.build.cache import Cache, default_folder, key

if TYPE_CHECKING:
    import pytest


def test_keeps_and_finds(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new")
    assert cache.find("a") is None
    assert (cache.store("a", {"file": b"1"}) / "file").read_bytes() == b"1"
    assert Cache(tmp_path / "new").find("a") is not None


def test_parts_of_a_key_do_not_run_together() -> None:
    assert key("ab", "c") != key("a", "bc")


def test_graders_side_by_side_see_whole_entries(tmp_path: Path) -> None:
    content = {"a": b"x" * 100_000, "b": b"y" * 100_000}

    def work(_: int) -> bool:
        cache = Cache(tmp_path)
        found = cache.find("same") or cache.store("same", content)
        return {p.name: p.read_bytes() for p in found.iterdir()} == content and not cache.warning

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))
    assert [path.name for path in tmp_path.iterdir()] == ["same"]


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, most_bytes=250)
    for age, name in enumerate(("old", "used")):
        os.utime(cache.store(name, {"file": bytes(100)}), (age, age))
    os.utime(tmp_path / "old", (5, 5))
    cache.store("new", {"file": bytes(100)})
    assert {path.name for path in tmp_path.iterdir()} == {"old", "new"}


def test_works_without_a_place_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cache")
    assert (cache.store("a", {"file": b"1"}) / "file").read_bytes() == b"1"
    assert cache.warning == f"Builds are not cached: cannot write to {tmp_path}/file/cache: Not a directory."


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("GRADER_CACHE", raising=False)
    assert str(default_folder()) == "/x/kernel-grader"
    monkeypatch.setenv("GRADER_CACHE", "/y")
    assert str(default_folder()) == "/y"
    monkeypatch.delenv("GRADER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_folder() == Path.home() / ".cache" / "kernel-grader"
