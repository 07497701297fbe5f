"""Builds a program of a submission's files and the assignment's own, in the sandbox, kept by content."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from grader.languages.cache import key
from grader.languages.cuda.compile import (
    ABOVE,
    DEFAULT_ARCHITECTURE,
    FOR_THE_SIM,
    FORMAT,
    LOG,
    PTX_ARCHITECTURE,
    RECORD,
    STAND_IN_FOLDER,
    as_handed_in,
    code_of_kernels,
    diagnostics,
    explained,
    last,
    link_folder,
    load,
    placed,
    reachable,
    recorded,
    resources,
    stand_ins,
    stopped,
)
from grader.languages.jobs import BuildError
from grader.languages.language import Build
from grader.languages.slots import SlotError, slot
from grader.records.verdict import Ending
from grader.sandbox.sandbox import Ended, Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain
    from grader.sandbox.sandbox import Limits, Sandbox

COMPILED = frozenset({".cu", ".cpp", ".cc", ".c"})
"""The suffixes of files that are compiled; others are only included."""

OURS = re.compile(
    r"-?-(arch|gencode|gpu-architecture|gpu-code|generate-code|code|cudart|o|output-file|c|ptx)\b.*"
)
"""Options of nvcc that the grader gives: an assignment cannot."""

_PROGRAM = "program"
_SCRIPT = """\
nvcc "$@" >log 2>&1
code=$?
[ $code -ne 255 ] || code=1  # nvcc where ptxas fails; a sandbox takes it for a signal
c++filt <log
exit $code
"""
_FLAGS = ("-O3", "-std=c++17")
_GRADER_FLAGS = (*FOR_THE_SIM, "-DNVTX_DISABLE", "-Xptxas", "-v", "-I.")
_NO_MAIN = re.compile(r"undefined reference to [`']main'")
_TWO_MAINS = re.compile(r"multiple definition of [`']main'")
_UNDEFINED = re.compile(r"undefined reference to [`']([^']+)'")
_NO_LIBRARY = re.compile(r"cannot find (-l\S+?):? ")
_SHOWN = 5


def build_executable(
    sources: Sequence[str],
    contents: Mapping[str, bytes],
    given: Mapping[str, bytes],
    flags: Sequence[str],
    toolchain: Toolchain,
    sandbox: Sandbox,
    limits: Limits,
    cache: Cache,
    architecture: str = DEFAULT_ARCHITECTURE,
) -> Build:
    """Compile and link a program, or take it from the cache; wait while other compiles fill this machine.

    Args:
        sources: the student's files that are compiled.
        contents: these and the headers that belong to them, by path from their folder.
        given: the assignment's files, which come before the student's of the same name.
        flags: of nvcc, the assignment's.
        toolchain: the compilers.
        sandbox: what confines them.
        limits: what they may use; a limit that is hit is a failed build that names it.
        cache: where builds are kept.
        architecture: the GPU to make machine code for, such as ``sm_90``.

    Raises:
        BuildError: the machine failed, or lacks a library that the assignment links with.
    """
    included = {name: text for source in sources for name, text in reachable(source, contents).items()}
    needed = {**{placed(name): text for name, text in included.items()}, **given}
    above = {placed(name) for name in included} != included.keys()
    empty = stand_ins(needed, toolchain.root / "include")
    runtime = link_folder(toolchain)
    compiled = [*sources, *(name for name in given if PurePosixPath(name).suffix in COMPILED)]
    standard = _FLAGS if not any("std=" in flag for flag in flags) else _FLAGS[:1]
    libraries = [flag for flag in flags if flag.startswith("-l")]
    shown = (
        *standard,
        *(flag for flag in flags if flag not in libraries),
        *dict.fromkeys(compiled),
        *libraries,
    )
    arguments = (
        *_GRADER_FLAGS,
        *(part for folder in reversed(ABOVE if above else ()) for part in last(folder)),
        *(last(STAND_IN_FOLDER) if empty else ()),
        *("-gencode", f"arch={PTX_ARCHITECTURE},code=[{PTX_ARCHITECTURE},{architecture}]"),
        *("-o", _PROGRAM, *shown),
        *("-cudart", "none", f"-L{runtime}", "-Xlinker", "--no-as-needed"),
        *("-Xlinker", f"-l:{toolchain.runtime_name}"),
    )
    needed |= {f"{STAND_IN_FOLDER}/{name}": b"" for name in empty}
    needed |= {f"{ABOVE[-1]}/empty": b""} if above else {}  # there has to be such a folder
    files = [part for name in sorted(needed) for part in (name, needed[name])]
    entry = key(FORMAT, _SCRIPT, toolchain.identity, *arguments, "", *files)
    if (folder := cache.find(entry)) is not None:
        return load(folder, _PROGRAM, cached=True)
    job = Job(
        argv=("/bin/sh", "-c", _SCRIPT, "compile", *arguments),
        limits=limits,
        inputs=(*toolchain.inputs, runtime),
        outputs=(_PROGRAM, LOG),
        files=needed,
        environment=toolchain.environment,
    )
    title = ", ".join(sources)
    try:
        with slot():
            outcome = sandbox.run(job)
            text = as_handed_in(outcome.stdout.decode(errors="replace"))
            if absent := _NO_LIBRARY.search(text):
                raise BuildError(
                    f"The assignment links with {absent[1]}, which the linker does not find on this machine: "
                    "install it, or take it out of the assignment's flags."
                )
            limit = stopped(outcome, text, limits)
    except SlotError as error:
        raise BuildError(f"{title} was not compiled: {error}") from error
    ok = not limit and outcome.ended is Ended.EXITED and outcome.code == 0 and _PROGRAM in outcome.artefacts
    built = Build(
        source=title,
        ok=ok,
        artefact=None,
        seconds=round(outcome.seconds, 3),
        cached=False,
        command=" ".join(("nvcc", *shown, f"-arch={architecture}")),
        log=explained(diagnostics(text, set(contents)) or limit, () if ok else empty),
        resources=resources(text, code_of_kernels(outcome.artefacts, _PROGRAM)) if ok else (),
    )
    if limit:  # another machine, or a quieter one, may do better: not kept
        log = f"{limit}\n{built.log}" if built.log != limit else limit
        return replace(built, log=log, ending=Ending.LIMIT)
    if not ok and not built.log:
        raise BuildError(
            f"Compiling {title} gave neither a program nor a message (exit code {outcome.code})."
        )
    artefacts = {RECORD: recorded(built)} | ({_PROGRAM: outcome.artefacts[_PROGRAM]} if ok else {})
    return load(cache.store(entry, artefacts, _PROGRAM), _PROGRAM, cached=False)


def unbuilt(build: Build) -> str:
    """Why there is no program, in one sentence."""
    log = build.log
    if _TWO_MAINS.search(log):
        return (
            f"more than one function main: of {build.source} and what comes with the assignment, one file "
            "alone may have it"
        )
    if _NO_MAIN.search(log):
        return f"no main: {build.source} has no function main, with which a program begins"
    undefined = list(dict.fromkeys(_UNDEFINED.findall(log)))
    if undefined:
        more = f" and {len(undefined) - _SHOWN} more" if len(undefined) > _SHOWN else ""
        return (
            f"{build.source} was not linked, as nothing defines {', '.join(undefined[:_SHOWN])}{more}: it "
            "was never written, or belongs to a library that this assignment does not link with"
        )
    return f"{build.source} did not compile"
