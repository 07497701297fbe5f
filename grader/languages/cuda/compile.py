"""Compiles one source file of a submission into a shared library, in a sandbox that shows it nothing else.

One object serves both devices: it holds the PTX of compute_80, which the sim executes, and machine code that
ptxas made from the same PTX for the GPU. Which CUDA runtime it meets is decided when it is run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.languages.cache import key
from grader.languages.cuda.imports import needs_more
from grader.languages.cuda.machine_code import machine_code
from grader.languages.cuda.toolchain import INSTALL_WHEELS
from grader.languages.jobs import BuildError, limit_hit, outcome_of
from grader.languages.language import Build, Resources
from grader.languages.slots import SlotError, slot
from grader.records.verdict import Ending
from grader.sandbox.sandbox import Ended, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain
    from grader.sandbox.sandbox import Limits, Outcome, Sandbox

PTX_ARCHITECTURE = "compute_80"
DEFAULT_ARCHITECTURE = "sm_80"
FORMAT = "5"  # of a cache entry
_LIBRARY = "library.so"
_OBSERVED = "observed.so"
LOG = "log"
RECORD = "build.json"
_LOG_LINES = 60
_DISK_RESERVE_BYTES = 64 << 20

_SCRIPT = """\
mkdir kept
nvcc --keep --keep-dir kept "$@" >log 2>&1 \\
  && g++ -shared -Wl,-z,defs -o library.so object.o -L"$LINK" -l:"$RUNTIME" >>log 2>&1
code=$?
[ $code -ne 255 ] || code=1  # nvcc where ptxas fails; a sandbox takes it for a signal
if [ $code -eq 0 ]; then
  g++ $OBSERVED -c kept/*.cudafe1.cpp -o observed.o 2>&1 \\
    && g++ -shared -Wl,--emit-relocs -o observed.so observed.o -L"$LINK" -l:"$RUNTIME" 2>&1 \\
    || rm -f observed.so
fi >/dev/null
c++filt <log
exit $code
"""

_OBSERVED_FLAGS = (
    *("-x", "c++", "-std=c++17", "-w", "-fPIC", "-I."),
    # Without optimisation, so that each comparison of the source is one of the code.
    *("-O0", "-g1", "-gdwarf-4", "-fno-omit-frame-pointer", "-fsanitize-coverage=trace-pc,trace-cmp"),
)
"""Of the same host code once more, as nvcc leaves it for the host's compiler: it tells what it reaches."""

_STUDENT_FLAGS = ("-c", "-O3", "-std=c++17", "-Xcompiler", "-fPIC")
_LAMBDA_FLAG = "--extended-lambda"
_LAMBDA = re.compile(rb"\]\s*(?:__host__\s+)?__device__\b")
FOR_THE_SIM = ("-lineinfo", "--no-compress")  # which reads the PTX out of the object
_GRADER_FLAGS = (
    *FOR_THE_SIM,
    "-DNVTX_DISABLE",  # CUB's profiling hooks load libraries, which the import policy forbids
    "-Xptxas",
    "-v",
    "-I.",
)

STAND_INS = (
    *(
        "cublas.h",
        "cublas_v2.h",
        "cublas_api.h",
        "cublasLt.h",
        "cublasXt.h",
        "cudnn.h",
        "cufft.h",
        "curand.h",
    ),
    *("curand_kernel.h", "cusolverDn.h", "cusparse.h", "nvrtc.h", "nvToolsExt.h", "helper_cuda.h"),
)
"""Headers of libraries that a kernel launcher does not need but its file may include: empty ones stand behind
the real ones, which the compiler's wheels do not have."""

STAND_IN_FOLDER = "stand-ins"
ABOVE = ("two-up", "two-up/one-up", "two-up/one-up/here")
"""Where what lies in the two folders above a source is put: the source itself is at the top of its job."""

_HEAD = re.compile(
    r"(?P<file>[^\s:()][^:()]*)[(:](?P<line>\d+)(?:\)|:\d+)?: *(?P<kind>[a-z ]*error|warning)?"
)
_ENTRY = re.compile(r"ptxas info +: Compiling entry function '(?P<name>.*)' for 'sm_\w+'")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"ptxas info +: Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_PTXAS_NOISE = re.compile(r"ptxas info|\s+\d+ bytes stack frame")
_LIBRARY_KERNEL = re.compile(r"(void )?(cub|thrust|cuda)::")
_TOLD = re.compile(
    r"^[^\s:()][^:()]*[(:]\d+(?:\)|:\d+)?: *"
    r"(?!catastrophic error: out of memory$|fatal error: .*: No space left on device$)"
    r"(?:fatal |catastrophic )?error: ",
    re.MULTILINE,
)
_OUT_OF_MEMORY = re.compile(r"out of memory|'std::bad_alloc'|memory exhausted|[Cc]annot allocate memory")
_KILLED = re.compile(r"died due to signal 9|Killed signal terminated|^Killed$", re.MULTILINE)


def build_all(
    sources: Mapping[str, Mapping[str, bytes]],
    toolchain: Toolchain,
    sandbox: Sandbox,
    limits: Limits,
    cache: Cache,
    architecture: str = DEFAULT_ARCHITECTURE,
) -> dict[str, Build]:
    """Build several files of one submission, each with its contents, side by side; see ``build``."""
    given_up = threading.Event()

    def build_file(name: str) -> Build:
        return build(name, sources[name], toolchain, sandbox, limits, cache, architecture, given_up)

    with ThreadPoolExecutor(max(1, min(len(sources), os.cpu_count() or 1))) as pool:
        try:
            builds = {name: pool.submit(build_file, name) for name in sources}
            wait(builds.values(), return_when=FIRST_EXCEPTION)
        finally:
            given_up.set()  # also on Ctrl-C: the pool waits for its threads
    errors = [error for ended in builds.values() if (error := ended.exception())]
    # Those who gave up waiting did so because of another one.
    for error in sorted(errors, key=lambda error: isinstance(error.__cause__, SlotError)):
        raise error
    return {name: ended.result() for name, ended in builds.items()}


def build(
    source: str,
    contents: Mapping[str, bytes],
    toolchain: Toolchain,
    sandbox: Sandbox,
    limits: Limits,
    cache: Cache,
    architecture: str = DEFAULT_ARCHITECTURE,
    given_up: threading.Event | None = None,
) -> Build:
    """Compile and link ``source``, or take it from the cache; wait while other compiles fill this machine.

    Args:
        source: the name of the file to compile.
        contents: ``source`` and every file of the submission that it may include, by path from there; those
            of the two folders above it are found by their paths and by their names.
        toolchain: the compilers.
        sandbox: what confines them.
        limits: what they may use; a limit that is hit is a failed build that names it.
        cache: where builds are kept.
        architecture: the GPU to make machine code for, such as ``sm_90``.
        given_up: set by another thread to end the wait.

    Raises:
        BuildError: the machine failed.
    """
    included = reachable(source, contents)
    needed = {placed(name): content for name, content in included.items()}
    above = needed.keys() != included.keys()
    empty = stand_ins(needed, toolchain.root / "include")
    runtime = link_folder(toolchain)
    # Only to those who write lambdas of the device: all others' objects stay what they are without it.
    lambdas = (_LAMBDA_FLAG,) if any(map(_LAMBDA.search, needed.values())) else ()
    arguments = (
        *_STUDENT_FLAGS,
        *lambdas,
        *_GRADER_FLAGS,
        *searched(empty, above=above),
        "-gencode",
        f"arch={PTX_ARCHITECTURE},code=[{PTX_ARCHITECTURE},{architecture}]",
        *("-o", "object.o", source),
    )
    needed |= placeholders(empty, above=above)
    files = [part for name in sorted(needed) for part in (name, needed[name])]
    flags = " ".join((*_OBSERVED_FLAGS, f"-I{toolchain.root / 'include'}"))
    tools = (_SCRIPT, flags, toolchain.identity, toolchain.runtime_name)
    entry = key(FORMAT, *tools, *arguments, "", *files)
    compilation = Compilation(
        title=source,
        command=" ".join(("nvcc", *_STUDENT_FLAGS, *lambdas, "-arch=" + architecture, source)),
        artefact=_LIBRARY,
        names=frozenset(contents),
        empty=empty,
        job=Job(
            argv=("/bin/sh", "-c", _SCRIPT, "compile", *arguments),
            limits=limits,
            inputs=(*toolchain.inputs, runtime),
            outputs=(_LIBRARY, _OBSERVED, LOG),
            files=needed,
            environment={
                **toolchain.environment,
                "LINK": str(runtime),
                "RUNTIME": toolchain.runtime_name,
                "OBSERVED": flags,
            },
        ),
        beside=_instrumented,
    )
    return compiled(compilation, entry, sandbox, cache, given_up)


def _instrumented(artefacts: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The library that tells what it reaches, if it can be loaded wherever the other one can."""
    instrumented = artefacts.get(_OBSERVED)
    if instrumented is None or needs_more(instrumented, artefacts[_LIBRARY]):
        return {}
    return {_OBSERVED: instrumented}


@dataclass(frozen=True)
class Compilation:
    """A job that compiles, and how what comes of it is told.

    Attributes:
        title: what is compiled, for people.
        command: what a student can type to see the same.
        artefact: the file that it makes.
        names: of the student's files, whose errors come first.
        empty: headers that are empty here.
        job: that the sandbox runs.
        runs: whether the artefact is a program.
        refused: why an artefact is not taken; "" where it is.
        lacking: what the machine lacks, by the exit code and the log of the job; "" where that is nothing.
        beside: which further files are kept, of those that the job leaves.
    """

    title: str
    command: str
    artefact: str
    names: Collection[str]
    empty: tuple[str, ...]
    job: Job
    runs: bool = False
    refused: Callable[[bytes], str] = lambda _artefact: ""
    lacking: Callable[[int, str], str] = lambda _code, _log: ""
    beside: Callable[[Mapping[str, bytes]], Mapping[str, bytes]] = lambda _artefacts: {}


def compiled(
    compilation: Compilation,
    entry: str,
    sandbox: Sandbox,
    cache: Cache,
    given_up: threading.Event | None = None,
) -> Build:
    """What comes of ``compilation``, or what came of it before and is the cache's ``entry``.

    Raises:
        BuildError: the machine failed.
    """
    title, artefact, empty = compilation.title, compilation.artefact, compilation.empty
    if (folder := cache.find(entry)) is not None:
        return load(folder, artefact, cached=True)
    try:
        with slot(given_up):
            outcome = outcome_of(compilation.job, sandbox, given_up)
            text = as_handed_in(outcome.stdout.decode(errors="replace"))
            if lacking := compilation.lacking(outcome.code, text):
                raise BuildError(lacking)
            limit = stopped(outcome, text, compilation.job.limits)
    except SlotError as error:
        raise BuildError(f"{title} was not compiled: {error}") from error
    made = outcome.artefacts
    ok = not limit and outcome.ended is Ended.EXITED and outcome.code == 0 and artefact in made
    if ok and (refused := compilation.refused(made[artefact])):
        ok, text = False, refused
    built = Build(
        source=title,
        ok=ok,
        artefact=None,
        seconds=round(outcome.seconds, 3),
        cached=False,
        command=compilation.command,
        log=explained(diagnostics(text, compilation.names) or limit, () if ok else empty),
        resources=resources(text, code_of_kernels(made, artefact)) if ok else (),
    )
    if limit:  # another machine, or a quieter one, may do better: not kept
        log = f"{limit}\n{built.log}" if built.log != limit else limit
        return replace(built, log=log, ending=Ending.LIMIT)
    if not ok and not built.log:
        raise BuildError(f"Compiling {title} gave no {artefact} and no message (exit code {outcome.code}).")
    kept = {RECORD: recorded(built)}
    if ok:
        kept |= {artefact: made[artefact], **compilation.beside(made)}
    return load(cache.store(entry, kept, artefact if compilation.runs else ""), artefact, cached=False)


def observed(library: Path) -> Path | None:
    """The library with the same kernels whose host code tells what it reaches; None if there is none.

    Some code compiles only with optimisation.
    """
    beside = library.with_name(_OBSERVED)
    return beside if beside.exists() else None


def reachable(source: str, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """``source``, the files whose names it mentions, and those that they mention: all that it may include."""
    reached = {source: contents[source]}
    pending = [source]
    while pending:
        text = reached[pending.pop()]
        for name in contents.keys() - reached.keys():
            if name.rpartition("/")[2].encode() in text:
                reached[name] = contents[name]
                pending.append(name)
    return reached


def placed(path: str) -> str:
    """The path where a file of the submission is put, by its path from the source."""
    up = path.count("../")
    return f"{ABOVE[-1 - up]}/{path.removeprefix('../' * up)}" if up else path


def as_handed_in(text: str) -> str:
    """The compiler's words with the paths of a submission's headers as they are from its source."""
    for up, folder in enumerate(reversed(ABOVE)):
        # From the start of a path alone: names of templates are long, and each is looked at once.
        text = re.sub(rf"(?<![^\s:\"'(])[^\s:\"'(]*?\b{folder}/", "../" * up, text)
    return text


def last(folder: str) -> tuple[str, str]:
    """Options of nvcc: look for headers in ``folder``, after all others."""
    return "-Xcompiler", f"-idirafter,{folder}"


def stand_ins(contents: Mapping[str, bytes], *real: Path) -> tuple[str, ...]:
    """The headers of ``STAND_INS`` that ``contents`` mention and none of the folders ``real`` has."""
    text = b"\n".join(contents.values())
    return tuple(
        name
        for name in STAND_INS
        if name.encode() in text and not any((folder / name).exists() for folder in real)
    )


def explained(log: str, empty: tuple[str, ...]) -> str:
    """``log`` with the reason why something of an ``empty`` header is not known."""
    if not log or not empty:
        return log
    return f"{log}\n({', '.join(empty)}: empty here, as these libraries are not part of grading)"


def searched(empty: tuple[str, ...], *, above: bool) -> tuple[str, ...]:
    """Flags for the folders where headers are found last: above the source, and the ``empty`` stand-ins."""
    folders = (*reversed(ABOVE if above else ()), *((STAND_IN_FOLDER,) if empty else ()))
    return tuple(part for folder in folders for part in last(folder))


def placeholders(empty: tuple[str, ...], *, above: bool) -> dict[str, bytes]:
    """The ``empty`` stand-ins, and a file so that there is the folder of a source with files ``above``."""
    files = {f"{STAND_IN_FOLDER}/{name}": b"" for name in empty}
    return files | ({f"{ABOVE[-1]}/empty": b""} if above else {})


def link_folder(toolchain: Toolchain) -> Path:
    """The folder where the linker finds a CUDA runtime.

    The real one, because it knows every call: what the sim lacks of it is for the sim to say.
    """
    if toolchain.runtime is not None:
        return toolchain.runtime
    simulated = Path(__file__).parents[2] / "simulator" / "lib"
    if (simulated / toolchain.runtime_name).exists():
        return simulated
    raise BuildError(
        f"{toolchain.runtime_name} is missing: it is neither in {toolchain.root} nor in the simulator.\n"
        f"Install it:\n  {INSTALL_WHEELS}"
    )


def recorded(build: Build) -> bytes:
    """What the entry of the cache says of a build."""
    record = asdict(build)
    return json.dumps({name: record[name] for name in record if name not in {"artefact", "ending"}}).encode()


def load(folder: Path, artefact: str, *, cached: bool) -> Build:
    """The build that an entry of the cache holds, in a file called ``artefact``."""
    record = json.loads((folder / RECORD).read_bytes())
    return Build(
        source=record["source"],
        ok=record["ok"],
        artefact=folder / artefact if record["ok"] else None,
        seconds=record["seconds"],
        cached=cached,
        command=record["command"],
        log=record["log"],
        resources=tuple(Resources(**kernel) for kernel in record["resources"]),
    )


def stopped(outcome: Outcome, text: str, limits: Limits) -> str:
    """The limit of the submission that ended a compile, in words; empty if none did.

    Raises:
        BuildError: it was the machine that ended it.
    """
    if limit := limit_hit(outcome):
        return limit
    if _TOLD.search(text) or (outcome.ended is Ended.EXITED and outcome.code == 0):
        return ""  # an error at a place in a source: the compiler lived to tell it, and may quote the student
    if outcome.ended is Ended.EXITED and outcome.code in (126, 127):
        raise BuildError(f"nvcc does not run in the sandbox:\n{text.strip()}")
    if "No space left on device" in text:
        if shutil.disk_usage(tempfile.gettempdir()).free < _DISK_RESERVE_BYTES:
            raise BuildError(f"The disk of {tempfile.gettempdir()} is full: free some space, or set TMPDIR.")
        return f"Compiling was stopped: more than {limits.scratch_bytes >> 20} MiB of files written."
    if "died due to signal 25" in text or "File size limit exceeded" in text:
        return f"Compiling was stopped: a file larger than {limits.file_bytes >> 20} MiB."
    if _OUT_OF_MEMORY.search(text) and limits.address_space_bytes is not None:
        return f"Compiling was stopped: more than {limits.address_space_bytes >> 20} MiB of memory."
    if outcome.ended is Ended.SIGNALLED or _KILLED.search(text):
        raise BuildError(f"The compiler was killed; did this machine run out of memory?\n{text.strip()}")
    return ""


def diagnostics(text: str, names: Collection[str]) -> str:
    """The compiler's words without ptxas statistics: errors in the student's files first, warnings last.

    Cut by whole lines.
    """
    blocks: list[tuple[int, list[str]]] = [(3, [])]
    for line in text.splitlines():
        if _PTXAS_NOISE.match(line):
            continue
        head = _HEAD.match(line)
        if head is not None:
            in_submission = head["file"].removeprefix("./") in names
            error = head["kind"] is not None and head["kind"].endswith("error")
            blocks.append((0 if in_submission and error else 1 if error else 2, []))
        blocks[-1][1].append(line)
    lines = [line for _, block in sorted(blocks, key=lambda block: block[0]) for line in block]
    omitted = len(lines) - _LOG_LINES
    if omitted > 0:
        lines = [*lines[:_LOG_LINES], f"[...] {omitted} lines omitted"]
    return "\n".join(lines).strip()


def code_of_kernels(artefacts: Mapping[str, bytes], built: str) -> list[int | None]:
    """Bytes of machine code of each kernel that ptxas speaks of, in its order: the log has mangled names."""
    sizes = machine_code(artefacts[built])
    lines = artefacts.get(LOG, b"").decode(errors="replace").splitlines()
    return [sizes.get(entry["name"]) for entry in map(_ENTRY.match, lines) if entry]


def resources(text: str, code: Iterable[int | None] = ()) -> tuple[Resources, ...]:
    """The registers, spills, shared memory and size of each kernel, without those of CUDA's own libraries.

    Args:
        text: the log of the compiler, with readable names.
        code: bytes of machine code of each kernel in it.
    """
    kernels: list[Resources] = []
    sizes = iter(code)
    name, spills, size = "", 0, None
    for line in text.splitlines():
        if entry := _ENTRY.match(line):
            name, spills, size = entry["name"], 0, next(sizes, None)
        elif spill := _SPILLS.search(line):
            spills = int(spill[1]) + int(spill[2])
        elif name and (used := _USED.match(line)):
            shared = _SHARED.search(line)
            if not _LIBRARY_KERNEL.match(name):
                shown = short_name(name)
                static = int(shared[1]) if shared else 0
                kernels.append(Resources(shown, int(used[1]), spills, static, size))
            name = ""
    return tuple(kernels)


def short_name(signature: str) -> str:
    """``void k<2>(float*, int)`` as ``k<2>``."""
    name = signature.removeprefix("void ")
    if not name.endswith(")"):
        return name
    depth = 0
    for index in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[index], 0)
        if depth == 0:
            return name[:index]
    return name
