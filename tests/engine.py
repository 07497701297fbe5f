"""A Docker engine with the image of ``docker/Dockerfile``, for the tests: the one that runs, or their own.

Where none runs, a root user on Debian or Ubuntu gets one: installed, started without network, and its image
built on a stand-in for the CUDA base image that is made here, as no registry is asked. What was built is kept
in ``HOME`` for the next time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import docker
from docker.errors import DockerException, ImageNotFound

from grader.languages.cuda.toolchain import find
from grader.sandbox.docker import knock

if TYPE_CHECKING:
    from collections.abc import Iterator

SANDBOX_IMAGE = "kernel-grader-tests:sandbox"
BASE_IMAGE = "kernel-grader-tests:base"
DOCKERFILE = Path(__file__).parents[1] / "docker" / "Dockerfile"

_ROOT = Path.home() / ".cache" / "kernel-grader-tests"
_PACKAGES = ("docker.io", "iptables", "debootstrap")
_IN_BASE = ("g++", "libc6-dev", "python3")
_START_SECONDS = 60.0


class NoEngineError(Exception):
    """Why there is no engine here."""


@contextmanager
def engine() -> Iterator[str]:
    """The address of an engine that has the image; one that was started here ends with its last user.

    Raises:
        NoEngineError: none runs, and none can be started.
    """
    _ROOT.mkdir(parents=True, exist_ok=True)
    with _locked():
        address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        own = not _answers(address)
        if own:
            address = _started()
        with _users(own=own):
            _build(address)
    try:
        yield address
    finally:
        if own:
            with _locked(), _users(own=True, leaving=True) as left:
                if not left:
                    _stop()


@contextmanager
def client() -> Iterator[docker.APIClient]:
    """The interface of the engine in use."""
    with closing(docker.from_env().api) as api:
        yield api


@contextmanager
def _locked() -> Iterator[None]:
    with (_ROOT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _users(*, own: bool, leaving: bool = False) -> Iterator[list[str]]:
    """Note that this process uses, or no longer uses, our engine; yields who does."""
    file = _ROOT / "users"
    noted = file.read_text().split() if file.exists() else []
    alive = [pid for pid in noted if Path("/proc", pid).exists() and pid != str(os.getpid())]
    if not leaving and own:
        alive.append(str(os.getpid()))
    file.write_text("\n".join(alive))
    yield alive


def _answers(address: str) -> bool:
    try:
        knock(address)
        with closing(docker.DockerClient(address)) as client:
            return bool(client.ping())
    except (OSError, DockerException):  # requests' errors are OSErrors
        return False


def _started() -> str:
    socket = _ROOT / "run" / "docker.sock"
    address = f"unix://{socket}"
    if _answers(address):
        return address
    _install()
    socket.parent.mkdir(exist_ok=True)
    (_ROOT / "run" / "docker.pid").unlink(missing_ok=True)
    with (_ROOT / "dockerd.log").open("w") as log:
        subprocess.run(
            [
                *("setsid", "--fork", "dockerd"),
                f"--data-root={_ROOT / 'data'}",
                f"--exec-root={_ROOT / 'run'}",
                f"--pidfile={_ROOT / 'run' / 'docker.pid'}",
                f"--host={address}",
                *("--bridge=none", "--iptables=false", "--ip6tables=false"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
        )
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(address):
        if time.monotonic() > deadline:
            raise NoEngineError(f"dockerd does not start, see {_ROOT / 'dockerd.log'}")
        time.sleep(0.1)
    return address


def _install() -> None:
    if shutil.which("dockerd") and shutil.which("debootstrap"):
        return
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        raise NoEngineError("no engine runs, and only root on Debian or Ubuntu can be given one")
    for command in (["update"], ["install", "-y", "--no-install-recommends", *_PACKAGES]):
        done = subprocess.run(
            ["apt-get", "-o", "DPkg::Lock::Timeout=120", *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NoEngineError(f"apt-get {command[0]} fails: {done.stderr.strip()[-300:]}")


def _stop() -> None:
    pid = int((_ROOT / "run" / "docker.pid").read_text())
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _START_SECONDS
    while Path("/proc", str(pid)).exists() and time.monotonic() < deadline:
        time.sleep(0.1)


def _build(address: str) -> None:
    """Build the image; where nothing has changed that takes a second."""
    with closing(docker.DockerClient(address, timeout=600)) as client:
        try:
            client.images.get(BASE_IMAGE)
        except ImageNotFound:
            _build_base(client)
        client.images.build(
            path=str(DOCKERFILE.parent),
            buildargs={"BASE": BASE_IMAGE},
            target="sandbox",
            tag=SANDBOX_IMAGE,
            rm=True,
        )


def _build_base(client: docker.DockerClient) -> None:
    """A minimal Debian with g++, Python and this machine's CUDA compiler."""
    if shutil.which("debootstrap") is None:
        raise NoEngineError("debootstrap is missing, the base image cannot be made")
    with tempfile.TemporaryDirectory(dir=_ROOT) as folder:
        root = Path(folder, "root")
        command = [
            "debootstrap",
            "--variant=minbase",
            f"--include={','.join(_IN_BASE)}",
            "bookworm",
            str(root),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NoEngineError(f"debootstrap fails: {done.stdout.strip()[-300:]}")
        for cached in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(root / cached)
        toolkit = root / "usr" / "local" / "cuda"
        shutil.copytree(find().root, toolkit, symlinks=True)
        if not (toolkit / "lib64").exists():
            (toolkit / "lib64").symlink_to("lib")
        archive = Path(folder, "root.tar")
        with tarfile.open(archive, "w") as tar:
            tar.add(root, ".")
        client.api.import_image_from_file(
            str(archive),
            repository=BASE_IMAGE.partition(":")[0],
            tag=BASE_IMAGE.partition(":")[2],
            changes=["ENV PATH=/usr/local/cuda/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        )
