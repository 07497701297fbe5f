"""A real Chromium, and the rules of axe-core; skipped, visibly, where they cannot be had."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

PROGRAMS = ("chromium", "chromedriver")
PACKAGES = ("chromium", "chromium-driver")  # Debian's
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
PATIENCE_SECONDS = 300  # for axe-core on a machine that does much else
AXE = "axe-core@4.10.3"
AXE_SHA256 = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
SHARED = Path(tempfile.gettempdir(), f"grader-tests-{os.getuid()}")


@pytest.fixture(scope="session")
def chromium() -> tuple[str, str]:
    """The paths of browser and driver, installed if they are missing and may be."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        SHARED.mkdir(exist_ok=True)
        with (SHARED / "apt").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes want it at once
            if any(shutil.which(program) is None for program in PROGRAMS):
                environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
                for arguments in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
                    subprocess.run(["apt-get", "-qq", *arguments], env=environment, check=False)
    browser, driver = (shutil.which(program) for program in PROGRAMS)
    if browser is None or driver is None:
        pytest.skip(f"no {' and '.join(missing)} here: apt install {' '.join(PACKAGES)}")
    return browser, driver


@pytest.fixture
def browser(chromium: tuple[str, str], tmp_path: Path) -> Iterator[Chrome]:
    """A fresh headless browser."""
    options = webdriver.ChromeOptions()
    options.binary_location = chromium[0]
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(chromium[1]))
    driver.set_script_timeout(PATIENCE_SECONDS)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core: fetched, as its licence (MPL-2.0) is not the one of this project."""
    SHARED.mkdir(exist_ok=True)
    script = SHARED / f"{AXE}.js"
    with (SHARED / "npm").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not script.exists():
            _fetch(script)
    text = script.read_bytes()
    assert hashlib.sha256(text).hexdigest() == AXE_SHA256, f"{script} is not {AXE}: remove it"
    return text.decode()


def _fetch(script: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"no npm here, which fetches {AXE}")
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [npm, "pack", "--silent", AXE], cwd=scratch, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"npm cannot fetch {AXE}: {done.stderr.strip()[-300:]}")
        (archive,) = Path(scratch).glob("*.tgz")
        with tarfile.open(archive) as package:
            member = package.extractfile("package/axe.min.js")
            assert member is not None
            script.write_bytes(member.read())
