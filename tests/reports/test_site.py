"""The documentation as a site, in a browser and to axe-core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is built."""
    pytest.importorskip("mkdocs")
    place = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", place],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return place


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_loaded_from_elsewhere(
    browser: Chrome, site: Path, axe: str, scheme: str
) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    pages = sorted(site.rglob("index.html"))
    assert len(pages) > 20
    told = []
    for page in pages:
        browser.get(page.as_uri())
        loaded = browser.execute_script(
            "return performance.getEntriesByType('resource').map(one => one.name)"
        )
        assert not [name for name in loaded if not name.startswith("file:")], page
        browser.execute_script(axe)
        found = browser.execute_async_script(
            "axe.run({resultTypes: ['violations']}).then(arguments[arguments.length - 1])"
        )
        nodes = [(rule["id"], node["html"]) for rule in found["violations"] for node in rule["nodes"]]
        told += [(page.parent.name, *node) for node in nodes]
    assert not told
