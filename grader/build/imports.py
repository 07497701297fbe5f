"""What a built library may need and import: CUDA's runtime and the everyday part of C and C++.

Threads, files, the network, other programs and libraries are no part of a kernel launcher. The policy reads
the linked object, not the source, so no spelling evades it; the sandbox holds what gets past it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

if TYPE_CHECKING:
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
    # time, locks that the C++ library takes, locales
    r"|time|clock|clock_gettime|clock_getres|gettimeofday|localtime(_r)?|gmtime(_r)?|mktime|difftime|strftime"
    r"|pthread_(mutex|once|rwlock|spin|mutexattr|self|equal|key|getspecific|setspecific|cond)\w*|__pthread_key_create"
    r"|sched_yield|setlocale|localeconv|newlocale|freelocale|uselocale|mb\w+|wc\w+|btowc|wctob"
    r"|_Unwind_\w+|sysconf|getpagesize|get_nprocs|getpid|sched_getcpu"
)


def violations(library: Path) -> tuple[str, ...]:
    """Why ``library`` breaks the policy, a sentence per reason; nothing if it does not.

    Such a build is UNTRUSTED. An object that cannot be read is too.
    """
    try:
        with library.open("rb") as file:
            needed, imported = _read(ELFFile(file))
    except (ELFError, UnicodeDecodeError, AssertionError, KeyError, ValueError) as error:
        return (f"the built library cannot be read: {error}",)
    reasons: dict[str, list[str]] = {}
    for name in needed:
        if not _LIBRARIES.fullmatch(name):
            reasons.setdefault("needs another library", []).append(name)
    for name, origin in imported:
        reason = _reason(name)
        if reason or not _everyday(name, origin):
            reasons.setdefault(reason or "calls what no kernel launcher needs", []).append(name)
    return tuple(f"{reason}: {_list(names)}" for reason, names in reasons.items())


def _list(names: list[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")


def _everyday(name: str, origin: str) -> bool:
    """Whether ``name`` belongs to CUDA, C or C++; ``origin`` is the library of its version, if any."""
    if origin.startswith(("libm.", "libstdc++.", "libgcc_s.")) or (not origin and name.startswith("_Z")):
        return True
    return _CUDA.fullmatch(name) is not None or _C.fullmatch(name) is not None


def _reason(name: str) -> str:
    return next((reason for reason, pattern in _FORBIDDEN.items() if re.fullmatch(pattern, name)), "")


def _read(elf: ELFFile) -> tuple[list[str], list[tuple[str, str]]]:
    """The needed libraries, and the imported symbols with the library that each is bound to."""
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
    imported = []
    for index, symbol in enumerate(symbols.iter_symbols()):
        if symbol.name and symbol["st_shndx"] == "SHN_UNDEF":
            number = versions.get_symbol(index)["ndx"] if versions is not None else None
            imported.append((symbol.name, origins.get(number, "") if isinstance(number, int) else ""))
    return needed, imported
