from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader.languages.cache import Cache, default_folder, key


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
        return {name: (found / name).read_bytes() for name in content} == content and not cache.warning

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))
    assert [path.name for path in tmp_path.iterdir()] == ["same"]


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "more", "undigested"])
def test_a_damaged_entry_is_dropped_and_made_again(damage: str, tmp_path: Path) -> None:
    cache, content = Cache(tmp_path), {"library": b"0123", "record": b"{}"}
    entry = cache.store("a", content)
    if damage == "cut":
        (entry / "library").write_bytes(b"01")
    elif damage == "changed":
        (entry / "record").write_bytes(b"[]")
    elif damage == "gone":
        (entry / "library").unlink()
    elif damage == "more":
        (entry / "other").touch()
    else:
        (entry / "digest").unlink()
    assert cache.find("a") is None
    assert cache.store("a", content) == entry
    assert cache.find("a") == entry
    assert not cache.warning


def test_a_damaged_entry_that_cannot_be_dropped_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    (cache.store("a", {"file": b"1"}) / "file").write_bytes(b"")
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as where the cache may only be read
    assert cache.find("a") is None
    entry = cache.store("a", {"file": b"1"})
    assert (entry / "file").read_bytes() == b"1"
    assert tmp_path not in entry.parents


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, most_bytes=350)  # 164 each, with the digest
    for age, name in enumerate(("old", "used")):
        os.utime(cache.store(name, {"file": bytes(100)}), (age, age))
    os.utime(tmp_path / "old", (5, 5))
    cache.store("new", {"file": bytes(100)})
    assert {path.name for path in tmp_path.iterdir()} == {"old", "new"}


def test_the_bound_is_kept_without_a_look_at_all_entries_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    evict = Cache._evict
    monkeypatch.setattr(Cache, "_evict", lambda *a: looks.append(1) or evict(*a))
    cache = Cache(tmp_path, most_bytes=32_000)
    for number in range(100):
        cache.store(str(number), {"file": bytes(400)})
    kept = sum(file.stat().st_size for file in tmp_path.glob("*/*"))
    assert 31_000 < kept < 34_000
    assert 20 < len(looks) < 50


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
