"""What a built library may need and import: CUDA's runtime and the everyday part of C and C++.

Threads, files, clocks, the network, other programs and libraries are no part of a kernel launcher. The policy
reads the linked object, not the source, so no macro and no asm label evades it. Code that looks for a
function in memory, and names none, does; the sandbox holds what gets past it.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from capstone import Cs
from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from grader.devices.stack import MACHINES
from grader.records.mangled import demangled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_LIBRARIES = re.compile(
    r"libcudart\.so\.1[23]|libstdc\+\+\.so\.6|libm\.so\.6|libgcc_s\.so\.1|libc\.so\.6"
    r"|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-[\w-]+\.so\.\d"
)

_FORBIDDEN = {
    "starts threads": r"pthread_create|thrd_create|_ZNSt(6thread|13__future|18condition_variable).*",
    "starts or replaces programs": r"system|popen|exec[lv]p?e?|posix_spawn.*|fexecve|v?fork|clone3?",
    "loads code at run time": r"dl(m?open|v?sym|addr|info|close|error|_iterate_phdr)|cudaLibraryLoad.*",
    "reaches files": (
        r"f?re?open(64)?|fopen(64)?|open(at)?(64)?|creat(64)?|tmpfile(64)?|mkstemp.*|unlink(at)?|remove|rename.*"
        r"|.*(basic_filebuf|basic_ifstream|basic_ofstream|basic_fstream|__basic_file).*|_ZNK?St10filesystem.*"
        r"|opendir|fdopen|readlink|[fl]?stat(64|x)?|_ZNSt13random_device.*"
    ),
    "reads its standard input": r"stdin|(__isoc\d\d_)?v?f?scanf|f?getc|getchar|f?gets|getline|_ZSt[34]w?cin",
    "uses descriptors": r"p?(write|read).*|dup[23]?|close|fcntl(64)?|ioctl|sendfile.*|(__)?v?dprintf(_chk)?",
    "uses the network": r"socket(pair)?|connect|bind|listen|accept4?|(send|recv)(to|from|msg)?|getaddrinfo",
    "maps or protects memory": r"mmap(64)?|mprotect|mremap|munmap|shm_.*|memfd_create|shmget|shmat",
    "calls the kernel directly": r"syscall|ptrace|prctl|process_vm_.*|kill|tgkill|raise|set(res|re)?[ug]id",
    "catches signals": r"signal|sigaction|bsd_signal|sigset|sigaltstack|timer_create|setitimer|alarm",
    "jumps out of its caller": r"_*(sig)?setjmp|_*(sig|v)?longjmp(_chk)?|(get|set|make|swap)context",
    "reads the clock": (
        r"time|clock|clock_get(time|res)|gettimeofday|times|timespec_get|ftime"
        r"|_ZNSt6chrono(3_V2)?1[0-9][a-z]+_clock3nowEv"
    ),
    "waits instead of working": r"u?sleep|nanosleep|clock_nanosleep|e?p?poll.*|p?select",
    "shares memory with other processes": r"cudaIpc.*|cudaImportExternal.*|cudaGraphics.*|cudaEGL.*",
    "reaches the driver behind the runtime": r"cudaGetDriverEntryPoint.*|cu[A-Z].*",
}
"""What it would do, and the symbols that do it. What is neither here nor below is forbidden all the same."""

_CUDA = re.compile(r"(__)?cuda[A-Z]\w*")
_C = re.compile(
    # memory and strings
    r"malloc|calloc|realloc|reallocarray|free|aligned_alloc|memalign|posix_memalign"
    r"|(__)?(mem|str|wcs|wmem)[a-z]+(_chk)?|__(str|mem)\w+|bcmp|bzero|is[a-z]+|tow?(lower|upper)|__ctype_\w+"
    r"|(__isoc\d\d_)?strto[a-z]+|ato[fil]|atoll|qsort|bsearch|rand(om)?(_r)?|srand(om)?|[dlj]rand48|l?l?abs|l?l?div"
    # printing
    r"|(__)?v?(f|s|sn|as)?printf(_chk)?|__v?(f|s|sn|as)?printf_chk|f?puts|f?putc|putc|putchar|perror|fwrite"
    r"|fwrite_unlocked|fflush|setv?buf|stdout|stderr|(__)?(_IO_)?put[cs](_unlocked)?|ferror|fileno"
    # ending, failing, the environment
    r"|abort|exit|_Exit|quick_exit|atexit|__cxa_\w+|__assert\w*|__errno_location|strerror(_r)?|__xpg_strerror_r"
    r"|getenv|secure_getenv|__stack_chk_fail|__fortify_fail|__chk_fail|__libc_start_main|__tls_get_addr"
    r"|__register_atfork|__libc_single_threaded|__dso_handle|_ITM_\w+|__gmon_start__|__sched_cpucount"
    # dates, locks that the C++ library takes, locales
    r"|localtime(_r)?|gmtime(_r)?|mktime|difftime|strftime"
    r"|pthread_(mutex|once|rwlock|spin|mutexattr|self|equal|key|getspecific|setspecific|cond)\w*|__pthread_key_create"
    r"|sched_yield|setlocale|localeconv|newlocale|freelocale|uselocale|mb\w+|wc\w+|btowc|wctob"
    r"|_Unwind_\w+|sysconf|getpagesize|get_nprocs|getpid|sched_getcpu"
)


_REPLACED = re.compile(
    r"cuda[A-Z]\w*|clock_gettime|gettimeofday|time|malloc|calloc|realloc|free|mem(cpy|move|set|cmp)"
    r"|p?(read|write)v?|open(at)?|close|poll|dlopen|dlsym|exit|_exit|abort|printf|fflush|__cxa_\w+|Py\w+"
)
"""What the runner itself calls: a library that defines it might be asked in its stead."""

_FIRST = re.compile(r"frame_dummy|_GLOBAL__(sub_)?I_.*|_ZL\d+__sti____cudaRegisterAllv|_init")
"""What compilers make to run when a library is loaded: C++ objects, and CUDA's registration of kernels."""

_INSTRUMENTED = re.compile(r"__sanitizer_cov_trace_\w+")
"""What a compiler lets instrumented code call."""

_RAW = {"syscall": "system call", "sysenter": "system call", "int": "system call", "svc": "system call"}
_RAW |= {"rdtsc": "read of the clock", "rdtscp": "read of the clock"}
_RAW_BYTES = re.compile(rb"\x0f[\x05\x34\x31]|\xcd\x80|\x0f\x01\xf9")


@dataclass(frozen=True)
class _Object:
    """The parts of a library that the policy looks at."""

    needed: list[str]
    imported: list[tuple[str, str]]  # with the library that each is bound to
    exported: list[str]
    first: list[str]  # functions that run when it is loaded
    raw: list[str]  # instructions that need no import to leave the process


_NO_PROGRAM = frozenset(
    (
        "starts or replaces programs",
        "loads code at run time",
        "uses the network",
        "calls the kernel directly",
        "shares memory with other processes",
        "reaches the driver behind the runtime",
        "needs another library",
        "defines what belongs to the system",
        "holds a raw system call",
    )
)
"""What a whole program may not do either. Threads, files, its input and the clock are its own affair."""


def violations(
    library: Path,
    sources: Mapping[str, bytes] | None = None,
    allowed: Iterable[str] = (),
    *,
    program: bool = False,
) -> tuple[str, ...]:
    """Why ``library`` breaks the policy, a sentence per reason; nothing if it does not.

    Such a build is UNTRUSTED. An object that cannot be read is too.

    Args:
        library: the object.
        sources: the files that it was made from, by name, to tell the lines that ask for what is forbidden.
        allowed: regular expressions of symbols and libraries that this assignment permits beyond the policy.
        program: whether it is a whole program, which may do more.
    """
    try:
        object_file = _read(library.read_bytes())
    except (ELFError, UnicodeDecodeError, AssertionError, KeyError, ValueError) as error:
        return (f"the built library cannot be read: {error}",)
    patterns = tuple(allowed)
    reasons: dict[str, list[str]] = {}
    for reason, name in _against(object_file):
        if program and reason not in _NO_PROGRAM:
            continue
        if not any(re.fullmatch(pattern, name) for pattern in patterns):
            reasons.setdefault(reason, []).append(name)
    return tuple(f"{reason}: {_list(names, sources or {})}" for reason, names in reasons.items())


def needs_more(observed: bytes, library: bytes) -> bool:
    """Whether ``observed`` breaks the policy where ``library``, of the same source, does not.

    It is compiled without optimisation and instrumented, and what the compiler adds for that is allowed.
    """
    try:
        against = set(_against(_read(observed))) - set(_against(_read(library)))
    except (ELFError, UnicodeDecodeError, AssertionError, KeyError, ValueError):
        return True
    return any(not _INSTRUMENTED.fullmatch(name) for _, name in against)


def _against(object_file: _Object) -> Iterator[tuple[str, str]]:
    """The breaches of the policy in a library, each as a reason and a name."""
    for name in object_file.needed:
        if not _LIBRARIES.fullmatch(name):
            yield "needs another library", name
    for name, origin in object_file.imported:
        reason = _reason(name)
        if reason or not _everyday(name, origin):
            yield reason or "calls what no kernel launcher needs", name
    for name in object_file.exported:
        if _REPLACED.fullmatch(name):
            yield "defines what belongs to the system", name
    for name in object_file.first:
        if not _FIRST.fullmatch(name):
            yield "runs code before the first call", name
    for name in object_file.raw:
        yield f"holds a raw {_RAW[name]}", name


def _list(names: list[str], sources: Mapping[str, bytes]) -> str:
    shown = sorted(set(names))
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    lines = (demangled(name) + _first_line(name, sources) for name in shown[:5])
    return ", ".join(dict.fromkeys(lines)) + more


def _first_line(name: str, sources: Mapping[str, bytes]) -> str:
    """The file and line where a source first has ``name``, or the last part of a C++ name; "" if none has."""
    parts = re.findall(r"\w+", demangled(name)) if name.startswith("_Z") else []
    for word in (name, *reversed(parts)):
        for file, content in sources.items():
            for number, line in enumerate(content.splitlines(), 1):
                if re.search(rb"(?<!\w)" + re.escape(word.encode()) + rb"(?!\w)", line):
                    return f" ({file}:{number})"
    return ""


def _everyday(name: str, origin: str) -> bool:
    """Whether ``name`` belongs to CUDA, C or C++; ``origin`` is the library of its version, if any."""
    if origin.startswith(("libm.", "libstdc++.", "libgcc_s.")) or (not origin and name.startswith("_Z")):
        return True
    return _CUDA.fullmatch(name) is not None or _C.fullmatch(name) is not None


def _reason(name: str) -> str:
    return next((reason for reason, pattern in _FORBIDDEN.items() if re.fullmatch(pattern, name)), "")


@lru_cache(maxsize=16)  # the problems of an assignment share libraries
def _read(content: bytes) -> _Object:
    elf = ELFFile(io.BytesIO(content))
    needed: list[str] = []
    origins: dict[int, str] = {}
    versions: GNUVerSymSection | None = None
    symbols: SymbolTableSection | None = None
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            needed += [str(vars(tag)["needed"]) for tag in section.iter_tags("DT_NEEDED")]
        elif isinstance(section, GNUVerNeedSection):
            for version, auxiliaries in section.iter_versions():
                origins |= {auxiliary["vna_other"]: version.name for auxiliary in auxiliaries}
        elif isinstance(section, GNUVerSymSection):
            versions = section
        elif isinstance(section, SymbolTableSection) and section.name == ".dynsym":
            symbols = section
    if symbols is None:
        raise ELFError("no dynamic symbols")
    numbers = None if versions is None else [symbol["ndx"] for symbol in versions.iter_symbols()]
    named = [(index, symbol) for index, symbol in enumerate(symbols.iter_symbols()) if symbol.name]
    imported = [
        (symbol.name, "" if numbers is None else origins.get(numbers[index], ""))
        for index, symbol in named
        if symbol["st_shndx"] == "SHN_UNDEF"
    ]
    exported = [symbol.name for _, symbol in named if symbol["st_shndx"] != "SHN_UNDEF"]
    return _Object(needed, imported, exported, _run_first(elf), list(_raw(elf)))


def _run_first(elf: ELFFile) -> list[str]:
    """The functions of the arrays that the loader calls, by name; by address where they have none."""
    arrays = [s for s in elf.iter_sections() if s["sh_type"] in ("SHT_INIT_ARRAY", "SHT_PREINIT_ARRAY")]
    spans = [range(array["sh_addr"], array["sh_addr"] + array["sh_size"]) for array in arrays]
    table = elf.get_section_by_name(".symtab")
    symbols = list(table.iter_symbols()) if isinstance(table, SymbolTableSection) else []
    names = {s["st_value"]: s.name for s in symbols if s["st_info"]["type"] == "STT_FUNC"}
    dynamic = elf.get_section_by_name(".dynsym")
    initialisers = []
    for section in elf.iter_sections():
        # The linker's own ones, which it may keep, name symbols of another table; the loader never sees them.
        if isinstance(section, RelocationSection) and section["sh_flags"] & SH_FLAGS.SHF_ALLOC:
            for relocation in section.iter_relocations():
                if any(relocation["r_offset"] in span for span in spans):
                    number = relocation["r_info_sym"]
                    if number and isinstance(dynamic, SymbolTableSection):
                        initialisers.append(dynamic.get_symbol(number).name)
                    else:
                        address = relocation["r_addend"] if section.is_RELA() else 0
                        initialisers.append(names.get(address, f"at {address:#x}"))
    return initialisers


def _raw(elf: ELFFile) -> Iterator[str]:
    """The instructions in ``_RAW`` that the code holds."""
    machine = MACHINES.get(elf["e_machine"])
    if machine is None:
        raise ELFError("made for another machine")
    for section in elf.iter_sections():
        if section["sh_type"] != "SHT_PROGBITS" or not section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
            continue
        code = section.data()
        if elf["e_machine"] == "EM_X86_64" and not _RAW_BYTES.search(code):
            continue  # most code, and disassembling takes long
        disassembler = Cs(*machine)
        disassembler.skipdata = True
        for _, _, name, operand in disassembler.disasm_lite(code, section["sh_addr"]):
            if name in _RAW and (name != "int" or operand == "0x80"):
                yield name
