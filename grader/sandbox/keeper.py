"""Supervises one job for the grader, as a separate process that needs only the standard library.

It starts the job and watches its processor time, sleep, memory and files. It ends the job with all its
descendants, including daemons, because it is their subreaper. It does so too when the grader dies: the grader
has the other end of the *lifeline*, a pipe through which it also asks where the job is. The keeper has one
thread, because a parent-death signal depends on the thread that forked.

It is called as ``keeper.py CONFIG`` with a JSON object. It writes ``{"ended", "code", "seconds",
"processor_seconds", "note"}`` to ``status_fd`` and, while the job runs, the used time to the memory
``usage_fd``. As the first process of a container, it is called as ``keeper.py SOCKET``. It then gets the
configuration and the job's file descriptors from this socket, and the container ends together with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import resource
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 36, 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
READ, WRITE_FILE, TRUNCATE, IOCTL = 0b1101, 0b10, 1 << 14, 1 << 15  # READ includes listing and executing
OF_FILES = 0b111 | TRUNCATE | IOCTL  # the rights that apply to a file that is not a folder
TCP, SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals
TICK_SECONDS = 0.05
SCRATCH_TICKS = 5  # listing files is slower than reading /proc, so it is done less often
MOST_FILES = 20_000
OF_CONTAINER = ("/sys/fs/cgroup", "/sys/fs/cgroup/memory")
MOST_DESCRIPTORS = 250  # limit of one message
ABOVE = 1024  # larger than the numbers of the job's own descriptors
ASLEEP, GONE = "STt", "ZX"  # states of tasks: waiting or stopped; ended
NEAR_BYTES = 1 << 20  # the kernel charges memory in steps of this size
PATIENCE_SECONDS = 10.0  # time-out for killed processes to end, which may be slow inside the GPU driver


def _read(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123
        return file.read()
    return ""


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return []
    return [
        int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()
    ]


def _children_by_scan(pid: int) -> list[int]:
    processes = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
    return [p for p in processes if _read(f"/proc/{p}/stat").rpartition(")")[2].split()[1:2] == [str(pid)]]


def descendants() -> list[int]:
    """All living processes below this one, parents before children."""
    keeper = os.getpid()
    children_of = _children if os.path.exists(f"/proc/{keeper}/task/{keeper}/children") else _children_by_scan  # noqa: PTH110
    pids = children_of(keeper)
    for pid in pids:
        pids.extend(child for child in children_of(pid) if child not in pids)
    return pids


def usage(pids: list[int]) -> tuple[int, int]:
    """Number of tasks (with threads, as for RLIMIT_NPROC) and bytes of memory of ``pids`` together."""
    tasks, kilobytes = 0, 0
    for pid in pids:
        for line in _read(f"/proc/{pid}/status").splitlines():
            if line.startswith("Threads:"):
                tasks += int(line.split()[1])
            elif line.startswith(("RssAnon:", "RssShmem:")):
                kilobytes += int(line.split()[1])
    return tasks, kilobytes * 1024


def _fields(path: str) -> list[str]:
    """The fields of a ``stat`` file in /proc from the state on; empty for a task that has ended."""
    return _read(path).rpartition(")")[2].split()


def all_asleep(pids: list[int]) -> bool:
    """Whether ``pids`` have tasks, and all of these wait for something or are stopped."""
    any_task = False
    for pid in pids:
        tasks: list[str] = []
        with contextlib.suppress(OSError):
            tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        for task in tasks:
            state = "".join(_fields(f"/proc/{pid}/task/{task}/stat")[:1])
            if state and state not in GONE:
                if state not in ASLEEP:
                    return False
                any_task = True
    return any_task


class Meter:
    """The time that the job has used so far, in seconds, in a page of memory that the grader can read.

    A busy machine does not increase these times: ``worked`` is processor time, and a job that waits for a
    processor is not asleep. All are lower bounds. ``slept`` is sleep between two samples without any work,
    and ``napped`` is sleep between two samples with some work.
    """

    def __init__(self, page: int, *groups: str) -> None:
        """``groups``: the control groups of the job; those of a container also contain this process."""
        self._page = memoryview(mmap.mmap(page, 16)).cast("d")
        self._groups = groups
        self._before = self._of_groups()
        self._own: dict[tuple[int, str], int] = {}  # clock ticks by process and its start
        self._gone = 0  # clock ticks of ended processes
        self._sampled = time.monotonic()
        self._seen = self.worked = self.slept = self.napped = 0.0

    def _of_groups(self) -> float:
        lines = "\n".join(_read(f"{group}/cpu.stat") for group in self._groups).splitlines()
        used = [int(line.split()[1]) for line in lines if line.startswith("usage_usec ")]
        return max(used, default=0) / 1e6 - (time.process_time() if OF_CONTAINER[0] in self._groups else 0.0)

    def _of_processes(self, pids: list[int]) -> float:
        """The processor seconds of ``pids`` and their children.

        This is the larger of two sums, neither of which counts anything twice. The first lacks children that
        were not waited for. The second lacks children that ended between two samples.
        """
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        with_children = 0
        ticks_of: dict[tuple[int, str], int] = {}
        for pid in pids:  # parents first, or a child could be counted again in its parent
            if fields := _fields(f"/proc/{pid}/stat"):
                times = [int(field) for field in fields[11:15]]
                with_children += sum(times)
                ticks_of[pid, fields[19]] = sum(times[:2])
        for (pid, start), ticks in self._own.items():
            if (pid, start) not in ticks_of:
                if _fields(f"/proc/{pid}/stat")[19:20] == [
                    start
                ]:  # not in pids, because its parent changed meanwhile
                    ticks_of[pid, start] = ticks
                else:
                    self._gone += ticks
        self._own = ticks_of
        second = os.sysconf("SC_CLK_TCK")
        waited_for = with_children / second + reaped.ru_utime + reaped.ru_stime
        return max(waited_for, (self._gone + sum(ticks_of.values())) / second)

    def sample(self, pids: list[int]) -> None:
        """Add what ``pids``, the processes of the job, have used since the last sample."""
        now = time.monotonic()
        gap = min(TICK_SECONDS, now - self._sampled)  # limited, because this process itself may have waited
        seconds = self._of_processes(pids)
        used = abs(seconds - self._seen)
        rest = max(0.0, gap - used) if all_asleep(pids) else 0.0
        self.slept += rest if used == 0 else 0.0
        self.napped += rest if used > 0 else 0.0
        self._sampled, self._seen = now, seconds
        self._publish(seconds)

    def end(self) -> None:
        """Count the time since the last sample, after the whole job has ended and was reaped."""
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._publish(reaped.ru_utime + reaped.ru_stime)

    def _publish(self, seconds: float) -> None:
        self.worked = max(self.worked, seconds, self._of_groups() - self._before)
        self._page[0], self._page[1] = self.worked, self.slept


def written(folder: str) -> tuple[int, int]:
    """The number of files below ``folder`` and their size in bytes; links are not followed."""
    files, size = 0, 0
    pending = [folder]
    while pending and files <= MOST_FILES:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    files += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
    return files, size


def files_of(pid: int, folder: str) -> int:
    """The number of files in the file system that ``pid`` sees at ``folder``; 0 if it is also ours."""
    with contextlib.suppress(OSError):
        path = f"/proc/{pid}/root{folder}"
        if os.stat(path).st_dev != os.stat(folder).st_dev:  # noqa: PTH116
            room = os.statvfs(path)
            return room.f_files - room.f_ffree
    return 0


def ask_witnesses() -> None:
    """Send SIGPROF to the job's processes that catch it, but not to their children; it would kill others."""
    signalled: set[str] = set()
    for pid in descendants():
        status = dict(line.split(":", 1) for line in _read(f"/proc/{pid}/status").splitlines())
        if int(status.get("SigCgt", "0"), 16) >> (signal.SIGPROF - 1) & 1:
            if status["PPid"].strip() not in signalled:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGPROF)
            signalled.add(str(pid))


def _signal_all(number: int) -> None:
    for pid in descendants():
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def end_all() -> bool:
    """Stop, kill and reap all descendants; stopping prevents new forks. Return False if one survives."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        _signal_all(signal.SIGSTOP)
        _signal_all(signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # orphaned descendants became children of this process, so none is left
            return True
        time.sleep(0.001)
    return False


def _too_long(config: dict[str, Any], meter: Meter) -> tuple[str, str] | None:
    most, longest = config["processor_seconds"], config["asleep_seconds"]
    if most is not None and meter.worked > most:
        return "timeout", f"more than {most:g} s of processor time"
    if longest is not None and meter.slept > longest:
        return "timeout", f"asleep for {longest:g} s, waiting for something that does not happen"
    return None


def _too_much(config: dict[str, Any], pids: list[int], ticks: int) -> tuple[str, str] | None:
    tasks, memory = usage(pids)
    if tasks > config["processes"]:
        return "processes", f"more than {config['processes']} processes and threads"
    if config["memory_bytes"] is not None and memory > config["memory_bytes"]:
        return "memory", f"more than {config['memory_bytes'] >> 20} MiB of memory"
    if config["scratch"] is not None and ticks % SCRATCH_TICKS == 0:
        files, size = written(config["scratch"])
        if size > config["scratch_bytes"]:
            return "output", f"more than {config['scratch_bytes'] >> 20} MiB of files written"
        if files > MOST_FILES:
            return "output", f"more than {MOST_FILES} files written"
    if pids and any(files_of(pids[-1], folder) > MOST_FILES for folder in config["own_folders"]):
        return "output", f"more than {MOST_FILES} files written"
    return None


def at_the_guard(config: dict[str, Any], meter: Meter) -> tuple[str, str]:
    """The ending of a job whose wall time is over: "timeout" if it worked or slept for half of that time.

    Otherwise it mostly waited for a processor, which is "busy". If only the wall time is limited, the ending
    is always "timeout".
    """
    wall = config["wall_seconds"]
    counted = config["processor_seconds"] is not None or config["asleep_seconds"] is not None
    asleep = meter.slept + meter.napped
    if counted and meter.worked + asleep < wall / 2:
        work = f"of which the job got {meter.worked:.3g} s of processor time"
        return "busy", f"the machine was too busy: {wall:g} s passed, {work}"
    sleep = f", for {asleep:.3g} s of which it was asleep" if counted and asleep > meter.worked else ""
    return "timeout", f"more than {wall:g} s of time{sleep}"


def _watch(job: subprocess.Popen[bytes], config: dict[str, Any], meter: Meter) -> tuple[str, str]:
    """Wait until the job ends or must be ended; return how it ended, and a note on the limit."""
    deadline = time.monotonic() + config["wall_seconds"]
    ended = os.pidfd_open(job.pid)
    events = select.poll()
    events.register(ended, select.POLLIN)
    events.register(config["lifeline_fd"], select.POLLIN)
    ticks = 0
    while True:
        remaining = deadline - time.monotonic()
        ready = [fd for fd, _ in events.poll(1000 * max(0.0, min(TICK_SECONDS, remaining)))]
        if ended in ready:
            return "exited", ""
        if ready:
            if not os.read(config["lifeline_fd"], 1):
                return "signalled", "ended by the grader"
            ask_witnesses()
        if remaining <= 0:
            return at_the_guard(config, meter)
        ticks += 1
        pids = descendants()
        meter.sample(pids)
        over = _too_long(config, meter) or _too_much(config, pids, ticks)
        if over is not None:
            return over


def landlock_version() -> int:
    """The version of this kernel's Landlock; 0 without it."""
    return max(0, int(ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)))


def close_off(readable: list[str], writable: list[str]) -> None:
    """Deny this process all files except those below the given paths, and everything else that Landlock can.

    These are TCP, from version 4, and signals and abstract sockets of outside processes, from version 6.
    """
    version, libc = landlock_version(), ctypes.CDLL(None)
    rights = (1 << (13 + (version >= 2) + (version >= 3) + (version >= 5))) - 1
    handled = struct.pack("<QQQ", rights, TCP, SCOPES)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = libc.syscall(LANDLOCK_CREATE_RULESET, handled, len(handled), 0)
    devices = READ | WRITE_FILE | IOCTL
    allowed = [
        *((path, READ) for path in readable),
        *((path, rights) for path in writable),
        ("/dev", devices),
        ("/proc/self/task", READ | WRITE_FILE | TRUNCATE),  # NVIDIA's driver fails unless it can name threads
    ]
    for path, access in allowed:
        with contextlib.suppress(FileNotFoundError):
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
            if not stat.S_ISDIR(os.fstat(beneath).st_mode):
                access &= OF_FILES  # noqa: PLW2901
            libc.syscall(LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("<Qi", access & rights, beneath), 0)
            os.close(beneath)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0):
        raise OSError("Landlock cannot restrict this process")
    os.close(ruleset)


def _start(config: dict[str, Any]) -> subprocess.Popen[bytes]:
    def confine() -> None:
        for group in config["groups"]:
            with open(f"{group}/cgroup.procs", "w", encoding="ascii") as members:  # noqa: PTH123
                members.write("0")
        # If the machine runs out of memory, the kernel should kill the job before its keeper or the grader.
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # otherwise root would own /proc/self
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123
            score.write("1000")
        if config["readable"] is not None:
            close_off(config["readable"], [config["folder"]])
        for name, value in config["rlimits"].items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (soft, soft))

    return subprocess.Popen(
        config["argv"],
        cwd=config["folder"],
        env=config["environment"],
        pass_fds=config["pass_fds"],
        start_new_session=True,
        preexec_fn=confine,  # noqa: PLW1509  this process has one thread
    )


def kills_of_machine(path: str = "/proc/vmstat") -> int:
    """How many processes of this machine the kernel has killed, since it started, because memory ran out."""
    counters = dict(line.split(maxsplit=1) for line in _read(path).splitlines())
    return int(counters.get("oom_kill", 0))


def out_of_memory(groups: Sequence[str], kills: int) -> str:
    """Whether the kernel killed a process of ``groups``, of cgroup version 1 or 2, because memory ran out.

    Args:
        groups: the control groups of the job; there are none where none can be created.
        kills: how many processes of the machine were killed meanwhile. Without groups nobody can say whether
            the job's were among them, so any kill counts: a fault of the machine must not cost points.

    Returns:
        "memory" if the group reached its limit, "lost" if the machine ran out of memory, otherwise "".
    """
    events: dict[str, int] = {}
    for group in groups:
        for line in (_read(f"{group}/memory.events") + _read(f"{group}/memory.oom_control")).splitlines():
            name, count = line.split()
            events[name] = events.get(name, 0) + int(count)
        # Version 1 does not count how often the limit was reached.
        most, bound = (_read(f"{group}/memory.{name}_in_bytes") for name in ("max_usage", "limit"))
        events["oom"] = events.get("oom", 0) + bool(most and bound and int(most) + NEAR_BYTES >= int(bound))
    if not events.get("oom_kill", kills):
        return ""
    return "memory" if events["oom"] else "lost"


def keep(config: dict[str, Any], *, contained: bool) -> dict[str, Any]:
    """Supervise one job until it ends; return how it ended."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # hides its descriptors and memory from the job's user
    begin = time.monotonic()
    groups = OF_CONTAINER if contained else config["groups"]
    meter, killed = Meter(config["usage_fd"], *groups), kills_of_machine()
    try:
        job = _start(config)
    except (OSError, subprocess.SubprocessError) as error:
        return {
            "ended": "setup error",
            "code": 127,
            "note": f"{config['argv'][0]}: {error}",
            "seconds": 0.0,
            "processor_seconds": 0.0,
        }
    # Only the job may have its pipes open, so that they close when it ends.
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    for fd in config["pass_fds"]:
        os.close(fd)
    ending, note = _watch(job, config, meter)
    code = job.wait() if ending == "exited" else -signal.SIGKILL
    status = {
        "ended": ending if code >= 0 or ending != "exited" else "signalled",
        "code": abs(code),
        "note": note,
    }
    if not end_all():
        status |= {"ended": "lost", "note": "a process of the job could not be killed"}
    elif ending in ("exited", "signalled") and (
        shortage := out_of_memory(groups, kills_of_machine() - killed if code else 0)
    ):
        limit = f"more than {(config['memory_bytes'] or 0) >> 20} MiB of memory"
        note = limit if shortage == "memory" else "this machine ran out of memory"
        status |= {"ended": shortage, "note": note}
    meter.end()
    return {**status, "seconds": time.monotonic() - begin, "processor_seconds": meter.worked}


def received(path: str) -> tuple[dict[str, Any], dict[str, int], int]:
    """Receive the job from the grader through the socket at ``path``.

    Returns:
        The configuration with descriptors of this process, the descriptor for each output, and the
        connection, which shows the grader when this process ends.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    _, fds, _, _ = socket.recv_fds(connection, 1, MOST_DESCRIPTORS)
    # These numbers must not collide with those of the job's own descriptors.
    connected, content, *descriptors = (
        fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, ABOVE) for fd in (connection.fileno(), *fds)
    )
    for fd in fds:
        os.close(fd)
    connection.close()
    with open(content, "rb") as file:  # noqa: PTH123
        config: dict[str, Any] = json.loads(file.readline())
        for name, size in config["files"].items():
            target = os.path.join(config["folder"], name)  # noqa: PTH118
            os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
            with open(target, "xb") as copy:  # noqa: PTH123
                copy.write(file.read(size))
    for number, fd in zip((0, 1, 2, *config["pass_fds"]), (*descriptors[:3], *descriptors[6:]), strict=False):
        os.dup2(fd, number, inheritable=True)
        os.close(fd)
    config["status_fd"], config["lifeline_fd"], config["usage_fd"] = descriptors[3:6]
    outputs = dict(zip(config["outputs"], descriptors[6 + len(config["pass_fds"]) :], strict=True))
    return config, outputs, connected


def copy_results(folder: str, outputs: dict[str, int], most: int) -> None:
    """Copy the job's results: only regular files of at most ``most`` bytes, without following links."""
    for name, target in outputs.items():
        with contextlib.suppress(OSError):
            fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # noqa: PTH118
            with open(fd, "rb") as file, open(target, "wb") as copy:  # noqa: PTH123
                if stat.S_ISREG(os.fstat(fd).st_mode) and os.fstat(fd).st_size <= most:
                    copy.write(file.read(most))


def main() -> None:
    """Supervise one job and report how it ended."""
    if sys.argv[1].startswith("{"):
        config = json.loads(sys.argv[1])
        status = keep(config, contained=False)
        for group in config["groups"]:
            with contextlib.suppress(OSError):
                os.rmdir(group)  # noqa: PTH106
    else:
        config, outputs, _connected = received(sys.argv[1])
        status = keep(config, contained=True)
        copy_results(config["folder"], outputs, config["file_bytes"])
    os.write(config["status_fd"], json.dumps(status).encode())
    os._exit(0)  # the grader waits for this process, and finalising the interpreter would take 5 ms


if __name__ == "__main__":
    main()
