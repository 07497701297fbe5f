"""The sandbox ``docker``: one container per job, without network, privileges or a writable file system.

The first process of a container is the keeper. It gets the job from the grader through a socket that is
removed before the job starts. It also gets the job's file descriptors there, so that no data passes through
the engine. The keeper ends when the grader ends, and then the engine removes the container.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import socket
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.processes import leftovers
from grader.sandbox import seccomp
from grader.sandbox.live import Command, Live, config, finish, memory_bytes, rlimits, temporary_space
from grader.sandbox.process import clean_environment
from grader.sandbox.sandbox import Ended, Image, Job, Limits, Probe, SandboxError, lent_gpu

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

    from grader.sandbox.live import Streams
    from grader.sandbox.sandbox import Outcome

IMAGE_VARIABLE = "GRADER_IMAGE"
IMAGE = "kernel-grader:sandbox"
LABEL = "kernel-grader.owner"

_FOLDER = Path("/tmp")  # noqa: S108  private to the job
_SOCKET = "/run/job"
_USER = 60_000  # owns nothing on any machine
_PYTHON = Path("/usr/bin/python3")
_CUDA = Path("/usr/local/cuda")
_SHARED_MEMORY_BYTES = 16 << 20
_KEEPER_BYTES = 96 << 20  # memory of the keeper, with the kernel's pipes and file tables
_FILES = 20_000
_OPEN_FILES = 4096  # limit of the keeper; the job has its own limit
_KEEPER = Path(__file__).with_name("keeper.py").read_text(encoding="utf-8")
_START_SECONDS = 60.0
_EVENT_SECONDS = 5  # until the engine has told of a container's end
_POLL_SECONDS = 0.5

_INSTALL_SDK = "python -m pip install 'kernel-grader[docker]'"
_INSTALL_ENGINE = (
    "sudo apt-get install docker.io    (Debian, Ubuntu)\n  sudo dnf install moby-engine    (Fedora)\n"
    "and let you use it: sudo systemctl start docker; sudo usermod -aG docker $USER; newgrp docker"
)
_BUILD_IMAGE = "docker build --target sandbox -t {image} -f docker/Dockerfile .    (in the grader's sources)"
_NO_GPU = (
    "The engine cannot give a GPU to a container. Install the NVIDIA Container Toolkit, then:\n"
    "  sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
)
_ENFORCED = (
    "processor time, time asleep and wall time",
    "memory of each process, and of all together",
    "size of each file and of all files together, and their number",
    "printed output",
    "number of processes",
    "no process survives the job",
    "only the inputs and the image are visible, read-only",
    "no network, no sockets of the host",
    "no privileges, no capabilities, system calls filtered",
    "clean environment, no inherited descriptors",
)
_LOOK = f"""
readlink -f {_CUDA}/bin/nvcc
{_CUDA}/bin/nvcc --version | sed -n 's/.*release.*V//p'
g++ --version | head -n 1
ls -d {_CUDA}/lib64/libcudart.so.1[0-9] 2>/dev/null || echo
{_PYTHON} -c 'import ctypes, sys; print("%d.%d" % sys.version_info[:2])'
"""


class DockerSandbox:
    """Runs each job in a separate container.

    ``GRADER_IMAGE`` names the image, by default the one that ``docker/Dockerfile`` builds.
    """

    name = "docker"

    def __init__(self) -> None:
        self._name = os.environ.get(IMAGE_VARIABLE, IMAGE)
        self._version = ""

    @cached_property
    def image(self) -> Image:
        """The programs in the image.

        Raises:
            SandboxError: the image cannot be used; the message says what to do.
        """
        with self._connected() as api:
            try:
                identity = api.inspect_image(self._name)["Id"]
            except _failures() as error:
                build = _BUILD_IMAGE.format(image=self._name)
                raise SandboxError(f"There is no image {self._name}. Build it:\n  {build}") from error
        outcome = self.run(Job(("/bin/sh", "-c", _LOOK), Limits(wall_seconds=60)))
        lines = outcome.stdout.decode(errors="replace").splitlines()
        if outcome.ended is not Ended.EXITED or len(lines) != 5 or not all((*lines[:3], lines[4])):
            reason = outcome.note or outcome.stderr.decode(errors="replace").strip()
            build = _BUILD_IMAGE.format(image=self._name)
            raise SandboxError(
                f"The image {self._name} lacks nvcc, g++ or Python: {reason}\nBuild it again:\n  {build}"
            )
        nvcc, version, cxx, runtime, python_version = lines
        return Image(
            identity=identity,
            python=_PYTHON,
            python_version=python_version,
            nvcc=Path(nvcc),
            nvcc_version=version,
            cxx=Path("/usr/bin/g++"),
            cxx_version=cxx,
            runtime=Path(runtime).parent if runtime else None,
        )

    def probe(self) -> Probe:
        """Usable if a job runs in the image."""
        try:
            self.sweep()
            image = self.image
            with self._connected() as api:
                facts = api.info()
        except SandboxError as error:
            return Probe(False, "", (), (), str(error))
        version = f"{facts['ServerVersion']}, image {self._name} with nvcc {image.nvcc_version}"
        if facts["MemoryLimit"] and facts["PidsLimit"]:
            return Probe(True, version, _ENFORCED, (), "")
        sampled = tuple(line.replace("of all together", "of all together as sampled") for line in _ENFORCED)
        return Probe(True, version, sampled, ("memory of many processes between two samples",), "")

    def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:
        """Run ``job`` to its end within its limits, or until another thread sets ``given_up``."""
        return finish(self._launch(job, channel=False), given_up)

    def start(self, job: Job) -> Live:
        """Start ``job`` with its stdin and stdout connected to the caller."""
        return self._launch(job, channel=True)

    def sweep(self) -> None:
        """Remove the containers of graders that ended before they started their job."""
        with self._connected() as api, suppress(*_failures()):
            for container in api.containers(all=True, filters={"label": LABEL}):
                if leftovers.orphaned(container["Labels"][LABEL]):
                    api.remove_container(container["Id"], force=True)

    def _connected(self) -> _Client:
        """A new connection to the engine, because threads must not share one."""
        docker = _docker()
        try:
            knock(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
            client = docker.from_env(version=self._version or "auto", timeout=120).api
        except _failures() as error:
            raise SandboxError(f"No Docker engine answers ({error}).\n  {_INSTALL_ENGINE}") from error
        self._version = client.api_version
        return _Client(client)

    def _launch(self, job: Job, *, channel: bool) -> Live:
        provided = self.image.folders if job.inputs else ()
        results = {name: os.memfd_create(f"result-{name}") for name in job.outputs}
        folders = {"HOME": str(_FOLDER), "TMPDIR": str(_FOLDER)}
        environment = clean_environment(job) | folders | dict(job.environment)
        environment.pop("CUDA_VISIBLE_DEVICES", None)  # the container has only this GPU
        command = Command(
            argv=job.argv,
            folder=_FOLDER,
            environment=environment,
            finish=lambda outcome: replace(outcome, artefacts=_read_all(results)),
            pass_fds=job.pass_fds,
            rlimits=rlimits(job.limits),
        )
        settings = {
            **config(job, command),
            "files": {name: len(content) for name, content in job.files.items()},
            "outputs": list(job.outputs),
            "file_bytes": job.limits.file_bytes,
        }
        content = b"".join((json.dumps(settings).encode(), b"\n", *job.files.values()))

        def launch(streams: Streams) -> _Container:
            passed = (*streams.all, *job.pass_fds, *results.values())
            with self._connected() as api:
                return _Container(
                    api,
                    _creation(api, self._name, job, provided),
                    content,
                    passed,
                    memory_bytes(job.limits) or 0,
                )

        try:
            return Live(job, command, channel=channel, launch=launch)
        except SandboxError:
            _read_all(results)
            raise


class _Client:
    """Closes a connection to the engine at the end of a ``with``."""

    def __init__(self, api: Any) -> None:  # noqa: ANN401 - the SDK has no types
        self._api = api

    def __enter__(self) -> Any:  # noqa: ANN401
        return self._api

    def __exit__(self, *_: object) -> None:
        self._api.close()


class _Container:
    """A keeper in a container; see ``Keeper``."""

    def __init__(
        self,
        api: Any,  # noqa: ANN401
        creation: Mapping[str, Any],
        content: bytes,
        passed: Sequence[int],
        memory_bytes: int,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._begin = int(time.time())
        with temporary_space():
            folder = Path(tempfile.mkdtemp(prefix=leftovers.prefix()))
        here = os.open(folder, os.O_PATH)
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(f"/proc/self/fd/{here}/job")  # the path itself may be too long for a socket
                (folder / "job").chmod(0o666)  # its folder is closed to other users
                listener.listen(1)
                self._id = _begun(api, creation, folder / "job")
                self._connection = self._accepted(api, listener)
            with tempfile.TemporaryFile() as file:
                file.write(content)
                file.seek(0)
                socket.send_fds(self._connection, [b"j"], [file.fileno(), *passed])
        finally:
            os.close(here)
            leftovers.remove(folder)

    def _accepted(self, api: Any, listener: socket.socket) -> socket.socket:  # noqa: ANN401
        deadline = time.monotonic() + _START_SECONDS
        listener.settimeout(_POLL_SECONDS)
        while True:
            try:
                return listener.accept()[0]
            except TimeoutError:
                running = False
                with suppress(*_failures()):
                    running = api.inspect_container(self._id)["State"]["Running"]
            if not running or time.monotonic() > deadline:
                with suppress(*_failures()):
                    api.remove_container(self._id, force=True)
                raise SandboxError(
                    f"The container ended before it got its job. Is {_PYTHON} in the image, and does the "
                    "engine run on this machine?"
                )

    def wait(self, seconds: float) -> bool:
        """See ``Keeper``: the kernel closes the connection when the container ends."""
        if self._connection.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return False
        self._connection.close()
        return True

    def kill(self) -> tuple[Ended, str]:
        """See ``Keeper``.

        Files in memory outlive by a moment the process that the kernel ended for them. Whoever asks for
        memory in that moment is ended as well, and that may be the keeper.
        """
        with suppress(*_failures()), _Client(_docker().from_env().api) as api:
            with suppress(*_failures()):
                api.remove_container(self._id, force=True)
            filters = {"container": self._id, "event": ["oom", "destroy"]}
            events = api.events(self._begin, int(time.time()) + _EVENT_SECONDS, filters, decode=True)
            if next((event["Action"] for event in events), "") == "oom":
                return Ended.MEMORY, f"more than {self._memory_bytes >> 20} MiB of memory"
        return Ended.LOST, "the container of the job ended before it could report"


def knock(address: str) -> None:
    """Raise OSError if nothing listens at the address; the SDK would leave a socket open."""
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(address.removeprefix("unix://"))


def _docker() -> Any:  # noqa: ANN401
    try:
        importlib.import_module(
            "docker.errors"
        )  # a folder named docker could be imported instead of the package
        return importlib.import_module("docker")
    except ImportError as error:
        raise SandboxError(f"The Docker SDK is not installed:\n  {_INSTALL_SDK}") from error


def _failures() -> tuple[type[Exception], ...]:
    """The exceptions of the SDK; those of the HTTP library that it uses are OSErrors."""
    error: type[Exception] = importlib.import_module("docker.errors").DockerException
    return (OSError, error)


def _creation(api: Any, image: str, job: Job, provided: Sequence[Path]) -> dict[str, Any]:  # noqa: ANN401
    """The arguments that create the container; inputs in the folders ``provided`` come from the image."""
    limits = job.limits
    memory = memory_bytes(limits)
    most = None if memory is None else memory + limits.scratch_bytes + _SHARED_MEMORY_BYTES + _KEEPER_BYTES
    types = importlib.import_module("docker.types")
    inputs = {path.absolute() for path in job.inputs}
    shown = [path for path in sorted(inputs) if not any(path.is_relative_to(folder) for folder in provided)]
    # The grader has all answers, and the folder of an interpreter's packages would show it.
    grader = Path(__file__).resolve().parents[1]
    hidden = [grader] if any(grader.is_relative_to(path) for path in shown) else []
    tmpfs = f"mode=1777,nosuid,nodev,noexec,nr_inodes={_FILES}"
    return {
        "image": image,
        "command": [str(_PYTHON), "-I", "-S", "-B", "-c", _KEEPER, _SOCKET],
        "entrypoint": [],
        "user": f"{_USER}:{_USER}",
        "hostname": "sandbox",
        "working_dir": str(_FOLDER),
        "environment": [
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility" if job.gpu else "NVIDIA_VISIBLE_DEVICES=void"
        ],
        "labels": {LABEL: leftovers.owner()},
        "network_disabled": True,  # beside the mode "none", it saves setting up an empty network
        "host_config": api.create_host_config(
            auto_remove=True,
            network_mode="none",
            ipc_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges", f"seccomp={seccomp.profile()}"],
            tmpfs={
                str(_FOLDER): f"size={limits.scratch_bytes},{tmpfs}",
                "/dev/shm": f"size={_SHARED_MEMORY_BYTES},{tmpfs}",  # noqa: S108
                **{str(path): "size=4k,mode=755" for path in hidden},
            },
            mounts=[types.Mount(str(path), str(path), type="bind", read_only=True) for path in shown],
            mem_limit=most,
            memswap_limit=most,
            pids_limit=limits.processes + 1,
            ulimits=[types.Ulimit(name="nofile", soft=_OPEN_FILES, hard=_OPEN_FILES)],
            log_config=types.LogConfig(type="none"),
            device_requests=_gpus(api) if job.gpu else None,
        ),
    }


def _gpus(api: Any) -> list[Any]:  # noqa: ANN401
    """The one GPU that jobs get, through the container device interface where the engine supports it."""
    request = importlib.import_module("docker.types").DeviceRequest
    gpu = lent_gpu()
    if any(device["ID"].startswith("nvidia.com/gpu") for device in api.info().get("DiscoveredDevices") or ()):
        return [request(driver="cdi", device_ids=[f"nvidia.com/gpu={gpu}"])]
    return [request(device_ids=[gpu], capabilities=[["gpu"]])]


def _begun(api: Any, creation: Mapping[str, Any], door: Path) -> str:  # noqa: ANN401
    """Start a container that has the socket at ``door``; return the container's id."""
    types = importlib.import_module("docker.types")
    creation["host_config"]["Mounts"].append(types.Mount(_SOCKET, str(door), type="bind", read_only=True))
    name: str = ""
    try:
        name = api.create_container(**creation)["Id"]
        api.start(name)
    except _failures() as error:
        with suppress(*_failures()):
            if name:
                api.remove_container(name, force=True)
        why = str(getattr(error, "explanation", None) or error)
        remedy = f"\n{_NO_GPU}" if "could not select device driver" in why else ""
        raise SandboxError(f"The engine cannot start a container: {why}{remedy}") from error
    return name


def _read_all(results: Mapping[str, int]) -> Mapping[str, bytes]:
    """Return the content of the files that are not empty, and close all files."""
    contents = {}
    for name, fd in results.items():
        with open(fd, "rb") as file:  # noqa: PTH123
            file.seek(0)
            if content := file.read():
                contents[name] = content
    return contents
