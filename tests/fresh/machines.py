"""The fresh machines that the README's commands are tried on. Data alone: ``fresh.py`` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FULL = ("Score: 60.0/60.0",)
ONE_PROBLEM = ("Score: 12.0/12.0",)
_APT = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
_DNF = "dnf install -y -q --setopt=install_weak_deps=False"
_DEBIAN = {
    "python": "python3 ca-certificates",
    "venv": "python3-venv",
    "pip": "python3-pip",
    "g++": "g++",
    "bwrap": "bubblewrap",
}


@dataclass(frozen=True)
class System:
    """A distribution.

    Attributes:
        name: as people call it.
        origin: where its files come from: ``debootstrap SUITE``, or ``image NAME`` of a container engine.
        install: the command that installs packages, without their names.
        packages: the packages of each part that a machine may have.
        python: the command that starts its Python.
    """

    name: str
    origin: str
    install: str
    packages: Mapping[str, str]
    python: str = "python3"


@dataclass(frozen=True)
class Machine:
    """A row of the table.

    Attributes:
        name: by which it is chosen, and under which its log lies.
        system: the distribution.
        parts: what is installed beside Python.
        way: which commands are tried: both of the ``readme``, the ``first`` alone, that with ``pip`` of the
            system and no environment, or those of who is given a ``wheel``.
        says: parts of lines that they print; the last is the score, or the words of a refusal.
        namespaces: whether users may make user namespaces.
    """

    name: str
    system: System
    parts: tuple[str, ...] = ("venv", "g++")
    way: str = "readme"
    says: tuple[str, ...] = FULL
    namespaces: bool = True

    @property
    def has(self) -> str:
        """What is there beside Python, in words."""
        return ", ".join((*self.parts, *(() if self.namespaces else ("no user namespaces",))))


DEBIAN_11 = System("Debian 11", "debootstrap bullseye", _APT, _DEBIAN)
DEBIAN_12 = System("Debian 12", "debootstrap bookworm", _APT, _DEBIAN)
DEBIAN_13 = System("Debian 13", "debootstrap trixie", _APT, _DEBIAN)
DEBIAN_SID = System("Debian sid", "debootstrap sid", _APT, _DEBIAN)
UBUNTU = System("Ubuntu 24.04", "image ubuntu:24.04", _APT, _DEBIAN)
ROCKY = System(
    "Rocky 9",
    "image rockylinux/rockylinux:9",
    _DNF,
    {"python": "python3.12", "venv": "", "g++": "gcc-c++", "bwrap": "bubblewrap util-linux"},
    "python3.12",
)
FEDORA = System(
    "Fedora 43",
    "image fedora:43",
    _DNF,
    {"python": "python3", "venv": "", "g++": "gcc-c++", "bwrap": "bubblewrap util-linux"},
)
ALPINE = System(
    "Alpine 3.22", "image alpine:3.22", "apk add -q", {"python": "python3", "venv": "", "g++": "g++"}
)

BUBBLEWRAP, PROCESS = "sandbox bubblewrap", "sandbox process"
MACHINES = (
    Machine("debian-12", DEBIAN_12, says=(BUBBLEWRAP, *FULL)),
    Machine("debian-12-bwrap", DEBIAN_12, ("venv", "g++", "bwrap"), "first", (BUBBLEWRAP, *FULL)),
    Machine("debian-12-no-namespaces", DEBIAN_12, way="first", says=(PROCESS, *FULL), namespaces=False),
    Machine("debian-12-no-g++", DEBIAN_12, ("venv",), "first", ("g++ is missing",)),
    Machine("debian-12-no-venv", DEBIAN_12, ("g++",), "first", ("python3-venv",)),
    Machine("debian-12-pip", DEBIAN_12, ("pip", "g++"), "pip", ("externally-managed-environment",)),
    Machine("debian-12-wheel", DEBIAN_12, way="wheel", says=ONE_PROBLEM),
    Machine("debian-12-wheel-no-g++", DEBIAN_12, ("venv",), "wheel", ("g++ is missing",)),
    Machine("debian-11", DEBIAN_11, way="first", says=("needs Python 3.11 to 3.14, and this is Python 3.9",)),
    Machine("debian-13", DEBIAN_13, way="first"),
    Machine("debian-sid", DEBIAN_SID, way="first"),
    Machine("ubuntu-24.04", UBUNTU, way="first"),
    Machine("rocky-9", ROCKY, way="first"),
    Machine("fedora-43", FEDORA, way="first"),
    Machine("alpine", ALPINE, way="first", says=("Alpine has musl",)),
)
