"""A Slurm cluster on the loopback: one controller and two nodes on this machine, with an own munge."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
NODES = ("one", "two")
DOWN_SECONDS = 300  # after which a node that does not answer is down: a busy machine is no lost one
WAIT_SECONDS = 120.0

_CONFIGURATION = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SlurmdTimeout={down}
ReturnToService=2
KillWait=5
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=one NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[1]} CPUs=1 RealMemory=4000
NodeName=two NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[2]} CPUs=1 RealMemory=4000
PartitionName=main Nodes=one,two Default=YES MaxTime=INFINITE State=UP
"""


class NoClusterError(Exception):
    """Slurm cannot be started here; the message says why."""


def install() -> None:
    """Install Slurm where it is missing: by root on Debian, else say what is missing."""
    missing = [name for name in ("slurmctld", "slurmd", "sbatch", "munged") if shutil.which(name) is None]
    if missing and (os.getuid() != 0 or shutil.which("apt-get") is None):
        raise NoClusterError(f"{', '.join(missing)} missing, and only root on Debian may install them")
    if os.getuid() != 0:
        raise NoClusterError("only root may start the daemons")
    if missing:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
            done = subprocess.run(
                ["apt-get", "-qq", *command], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                raise NoClusterError(f"apt-get {command[0]} fails: {done.stderr.strip()[-300:]}")


@dataclass(frozen=True)
class Loopback:
    """A running cluster; its tools find it through ``environment``."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *command: str) -> str:
        told = subprocess.run(
            command, env=os.environ | self.environment, capture_output=True, text=True, check=False
        )
        return told.stdout + told.stderr

    def start(self) -> None:
        """Start all daemons and wait until both nodes are idle."""
        self.folder.chmod(0o755)
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        files = [f"{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        options = [f"--{option}" for option in (*files, f"socket={self.folder}/munge.socket")]
        self._run("munged", "--force", *options)
        host = socket.gethostname().partition(".")[0]
        written = _CONFIGURATION.format(host=host, folder=self.folder, ports=_ports(3), down=DOWN_SECONDS)
        (self.folder / "slurm.conf").write_text(written)
        self._run("slurmctld")
        for node in NODES:
            self._run("slurmd", "-N", node)
        deadline = time.monotonic() + WAIT_SECONDS
        while self.ask("sinfo", "--noheader", "--Node", "--format=%T").split() != ["idle", "idle"]:
            if time.monotonic() > deadline:
                raise NoClusterError("the nodes do not come up: " + self.ask("sinfo", "--Node", "--long"))
            time.sleep(0.2)

    def kill(self, node: str) -> None:
        """What a power cut does to a node: all of it is gone at once, and it is told to be down."""
        self._end(node)
        self.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def stop(self) -> None:
        """End all daemons, their jobs, and who still asks them."""
        for node in NODES:
            self._end(node)
        mine = f"SLURM_CONF={self.environment['SLURM_CONF']}"
        while left := [process for process in _processes() if mine in _environment(process)]:
            for process in left:
                _kill(process)
            time.sleep(0.05)

    def _end(self, node: str) -> None:
        """Kill the daemon of a node and all that it started."""
        file = self.folder / f"slurmd-{node}.pid"
        daemon = int(file.read_text()) if file.exists() else 0
        killed = [daemon] if _name(daemon) == "slurmd" else []  # else it is gone, and the number another's
        mine = [process for process in _processes() if f"SLURMD_NODENAME={node}" in _environment(process)]
        killed += [parent for process in mine if _name(parent := _parent(process)) == "slurmstepd"] + mine
        pending = list(killed)
        while pending:
            children = _children(pending.pop())
            killed += children
            pending += children
        for process in dict.fromkeys(killed):
            _kill(process)

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, env=os.environ | self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise NoClusterError(f"{command[0]} does not start: {done.stderr.strip()[-300:]}")


def _ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _environment(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def _children(process: int) -> list[int]:
    try:
        return [
            int(child)
            for task in Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
