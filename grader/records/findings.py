"""What the checkers see, as data, and the one table of its kinds: what each means, costs and is told as.

A finding has a kind, a reason within that kind, places and facts. ``records/sentences.py`` makes a sentence
of these by the templates below, where a report needs one. In a template

* ``{who}`` and ``{other}`` are the thread or block at the finding's place and at the other one, ``{line}``
  and ``{other_line}`` those lines with the calls around them, ``{does}`` and ``{did}`` what both do there;
* every other name is a fact, ``{size:bytes}`` with its unit, ``{address:hex}`` as an address;
* what stands in square brackets is left out where one of its facts is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


Tool = Literal["memcheck", "initcheck", "racecheck", "synccheck", "hang", "apicheck"]
"""The checkers, in the order of reports."""


Index = tuple[int, int, int]
"""The index of a thread or a block, x first."""


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"  # right on every GPU, and yet not as it should be


@dataclass(frozen=True)
class Line:
    """A line of a source."""

    file: str
    line: int


@dataclass(frozen=True)
class Place(Line):
    """Where an access or a barrier is that a finding is about, and who is there.

    Attributes:
        calls: that are inlined around it, from the inside.
        thread: in its block; None where the finding is about all of a block.
        block: in its grid; None where the finding is about a line alone.
        does: reads, writes, updates or copies; empty where it does none of that.
        bytes: how many; 0 where that is not known.
    """

    calls: tuple[Line, ...] = ()
    thread: Index | None = None
    block: Index | None = None
    does: str = ""
    bytes: int = 0


def parting(first: Place, other: Place) -> tuple[Line, Line] | None:
    """The lines at which two places part ways, in the function that both come from.

    Two calls of a function are at its callers' lines, whatever happens within it. None if a line is not
    known, or if it is one line to the end.
    """
    if not (first.line and other.line):
        return None
    ways = [(*reversed(place.calls), Line(place.file, place.line)) for place in (first, other)]
    return next((pair for pair in zip(*ways, strict=False) if pair[0] != pair[1]), None)


@dataclass(frozen=True)
class Fact:
    """What a checker has seen beside the places: a number or a name."""

    name: str
    value: int | str


@dataclass(frozen=True)
class Finding:
    """What a checker saw, once per place. Kinds and their reasons stand in ``KINDS``."""

    kind: str
    reason: str
    kernel: str = ""
    file: str = ""
    line: int = 0  # 0 where no line is known
    places: tuple[Place, ...] = ()  # its own, and of a race the other access's
    facts: tuple[Fact, ...] = ()
    severity: Severity = Severity.ERROR

    @property
    def values(self) -> Mapping[str, int | str]:
        """The facts by their names."""
        return {fact.name: fact.value for fact in self.facts}

    @property
    def tool(self) -> Tool:
        """The checker that looks for it."""
        return KINDS[self.kind].tool

    @property
    def counts(self) -> bool:
        """Whether it costs points."""
        return self.severity is Severity.ERROR and KINDS[self.kind].costs


class _Placed(Protocol):
    """A finding, or what a record holds of one."""

    @property
    def file(self) -> str: ...
    @property
    def values(self) -> Mapping[str, int | str]: ...


_WRITTEN_IN, _CPP = "written_in", "C++"


def in_cpp(finding: Finding) -> Finding:
    """The finding of a kernel in C++, whatever its file is."""
    return replace(finding, facts=(*finding.facts, Fact(_WRITTEN_IN, _CPP)))


def in_triton(finding: _Placed) -> bool:
    """Whether it is of a kernel in Triton: in a Python file, and not in C++ of that."""
    return finding.file.endswith(".py") and finding.values.get(_WRITTEN_IN) != _CPP


def by_descriptor(finding: Finding) -> Finding:
    """The finding of a file that may use descriptors of tensors, by which a GPU stores 16 bytes at a time."""
    distance = finding.values.get("distance")
    if (
        finding.kind == OVERRUN
        and finding.reason == "behind"
        and in_triton(finding)
        and finding.places[0].does != "reads"
        and isinstance(distance, int)
        and distance < 16
    ):
        return replace(finding, reason="behind_by_descriptor")
    return finding


def facts(**values: int | str) -> tuple[Fact, ...]:
    """Facts by their names."""
    return tuple(Fact(name, value) for name, value in values.items())


@dataclass(frozen=True)
class LineCount:
    """What one source line asked of the memory system, summed over launches."""

    kernel: str
    file: str
    line: int
    instructions: int  # of warps
    lanes: int
    global_requests: int
    global_sectors: int
    minimal_sectors: int
    global_bytes: int
    shared_requests: int
    shared_wavefronts: int
    minimal_wavefronts: int
    barriers: int
    undefined_lanes: int  # that a shuffle gave what no lane of its mask has
    atomics: int  # of lanes


@dataclass(frozen=True)
class Reason:
    """One way in which a kind of finding comes about.

    Attributes:
        observation: what was seen, a template.
        why: what follows from it, behind that; a template.
        mistake: what is wrong, without a full stop, where the kind's own text does not fit; a template.
        do: to mend it, likewise.
        triton: instead of this in a file of Python.
        fault: in short, what sets it apart from others of its kind, which are mended in another way; a
            template.
    """

    observation: str
    why: str = ""
    mistake: str = ""
    do: str = ""
    triton: Reason | None = None
    fault: str = ""


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding. Its name is its heading in ``docs/findings.md``.

    Attributes:
        tool: the checker.
        mistake: what is wrong, in a few words without a full stop.
        do: to mend it, a sentence.
        reasons: how it comes about, by name.
        costs: whether it costs points.
        race: whether it is about two accesses that no barrier orders.
        nothing_ran: whether there are no numbers to speak of.
        any_value: whether it puts anything into the numbers: what these look like then says nothing.
        by_cases: whether what it breaks, the cases show and cost.
        by_pointers: whether pointers of the other memory lead to it.
        consequence: whether it comes of another fault.
        explains: the kinds that come of it: it costs nothing, and is told first where one of them is.
        triton: what to do in a file of Python, where no reason says so.
        follows: the kind beside which it is not told, since it follows from that.
    """

    tool: Tool
    mistake: str
    do: str
    reasons: Mapping[str, Reason]
    costs: bool = True
    race: bool = False
    nothing_ran: bool = False
    any_value: bool = False
    by_cases: bool = False
    by_pointers: bool = False
    consequence: bool = False
    follows: str = ""
    explains: frozenset[str] = frozenset()
    triton: str = ""


_ATOMIC = "Use an atomic, let one thread write, or do what needs all blocks in a second launch."
_TL_ATOMIC = "Use tl.atomic_add, let one program write, or do what needs all programs in a second launch."
_MASK = (
    "Give this access a mask that is true for what is inside alone: mask=offsets < n. If it has one, the "
    "offset of its row or the number of programs is wrong."
)
_SYNCTHREADS = "Put a __syncthreads() {between}, where every thread of the block reaches it."
_SYNCWARP = "Put a __syncwarp() {between}: the threads of a warp do not run in step."
_DEBUG_BARRIER = "Put a tl.debug_barrier() {between}, or give each its own place."
_WITHIN = (
    "Where several elements of a tile meet at the same place, use tl.atomic_add. Else put a "
    "tl.debug_barrier() {between}, or give each its own place."
)
_WHOLE_WARPS = "Launch whole warps, a multiple of 32 threads, or name fewer lanes in the mask."

_ACCESS = "{who} {does} {n:bytes} of {space} memory at {address:hex}, "
_NO_MASK = "; the mask of this access is missing, or lets too much through"


def _outside(
    observation: str,
    mistake: str = "A thread {reads_or_writes} outside of every array",
    fault: str = "{reads_or_writes}",
) -> Reason:
    triton = Reason(
        _ACCESS + observation, _NO_MASK, "A program reads or writes outside of every array", _MASK
    )
    return Reason(_ACCESS + observation, mistake=mistake, triton=triton, fault=fault)


_WRAPPED = ": an index that is computed in 32 bits wraps beyond 2,147,483,647"
_FAR = ("An index is far outside of every array, or wraps", "far")
_IS_NULL = "[; {null_name} is null in this case][; the launch passes null, or 0, as argument {arguments}]"


def _null(address: str) -> Reason:
    mistake, do = "A kernel uses a pointer that is null", "Test the pointer first: if (pointer != nullptr)."
    triton = Reason(
        _ACCESS + address + _IS_NULL,
        mistake=mistake,
        do="Test the argument in the launcher (if x is None), and leave this access out then.",
        fault="null",
    )
    return Reason(_ACCESS + address + _IS_NULL, mistake=mistake, do=do, triton=triton, fault="null")


_BEFORE = "which lies {distance:bytes} before {allocation}"
_BEHIND = "which lies {distance:bytes} behind the end of {allocation}[, where row {row} would {be}]"
_OUTSIDE = {
    "not_ready": _outside(
        "which a cudaMallocAsync allocates in another stream, and nothing makes this kernel wait for it"
    ),
    "before": _outside(_BEFORE),
    "behind": _outside(_BEHIND, "A thread goes past the end of an array", "behind"),
    "behind_rows": replace(
        _outside(_BEHIND, "A thread goes past the end of an array", "behind"),
        do="Compare each index with its own size first: the block may not divide it. Where that is done, the "
        "index is made wrongly: with another length than that of these rows, or from another number than "
        "batch, head or row.",
    ),
    "behind_elements": replace(
        _outside(_BEHIND, "A thread goes past the end of an array", "behind"),
        do="{array} has {elements} elements: index it by what counts these, and compare that with their "
        "number first (if (i < n)). The block may not divide it.",
    ),
    "across": replace(
        _outside(
            "which begins {distance:bytes} into {allocation} and reaches beyond its end",
            "A load or store of several elements reaches beyond the end of an array",
            "across",
        ),
        do="Use it only where all of its elements are inside, and begin at a multiple of its size.",
    ),
    "null": _null("a null pointer or an offset from one"),
    "null_argument": _null("a null pointer or an offset from one"),
    "far_before": _outside(_BEFORE + _WRAPPED, *_FAR),
    "far_behind": _outside(_BEHIND + _WRAPPED, *_FAR),
    "nowhere": _outside("which lies in no allocation"),
    "no_device_address": _outside(
        "which is no device address; is it a pointer to host memory that was never copied to the device?"
    ),
}
_POINTER_OF_HOST = {
    name: replace(reason, mistake="", triton=None, fault="") for name, reason in _OUTSIDE.items()
}

_IN_SHARED = "{who} {does} shared memory at byte {byte}{line}"
_IN_GLOBAL = "{who} {does} {target}{line}"
_SHARED = _IN_SHARED + " that {other} has {did}{other_line}"
_GLOBAL = _IN_GLOBAL + " that {other} has {did}{other_line}"
_UNORDERED = ", and nothing orders the two: "
_OVERLAP = (
    "[; {begins_again} at {begins_at} begins again before all threads have left that at {left_at}][; the "
    "second {second} at {begins_at} begins before all threads have left the first ({left_at})]"
)
_NO_ORDER = {
    "no_fence_of_block": (
        "a __threadfence_block() behind the look at the flag is missing, one before it orders nothing"
    ),
    "of_another_lane": (
        "what it waits for speaks for another lane of that warp alone, a {syncwarp} before that is missing"
    ),
    "no_syncwarp_of_both": (
        "a {syncwarp} of both between them is missing, one of other lanes and shuffles, votes or matches "
        "order nothing for them"
    ),
    "no_syncwarp": "a {syncwarp} between them is missing",
    "no_syncthreads": "a {syncthreads} between them is missing",
}
_AT_ONCE = "Several threads write different values to one place at once"


def _of_one_statement(access: str) -> dict[str, Reason]:
    """What no barrier mends; ``access`` names the first one."""
    return {
        "update": Reason(
            access
            + " that {other} has {did}{other_line}, and each of them computes what it writes from what it "
            "has read there: one of the two updates is lost",
            "; use an atomic",
            "Several threads update one place, and updates are lost",
            "Use an atomic such as atomicAdd, or let one thread update this place.",
            fault="at once",
        ),
        "one_statement": Reason(
            access + " that {other} has {did} in the same statement, which no barrier can order",
            ": their indices mean the same element",
            _AT_ONCE,
            "Check the index: give each thread an element of its own, or let one of them write.",
            fault="at once",
        ),
    }


_OF_SHARED = {name: Reason(_SHARED, _UNORDERED + missing + _OVERLAP) for name, missing in _NO_ORDER.items()}
_OF_SHARED |= _of_one_statement(_IN_SHARED)
_OF_SHARED["copy"] = Reason(
    "{who} {does} shared memory at byte {byte}{line} that an asynchronous copy of {other}{other_line} may "
    "still be filling: the copying thread must wait for its copies first, and then a {syncthreads}",
    mistake="A thread uses shared memory that an asynchronous copy is still filling",
    do="Wait for the copy first (__pipeline_wait_prior), and then for the block (__syncthreads()).",
    fault="copy",
)
_BY_PROGRAMS = "Two programs use the same memory, one of them writes, and nothing orders them"
_WITHIN_PROGRAM = "Two threads of a program use the same memory, one writes, and no barrier orders them"
_WITHIN_BLOCK = "Two threads use the same global memory, one of them writes, and no barrier orders them"
_WITHIN_WARP = "Two threads of a warp use the same global memory, one writes, and nothing orders them"
_OWN_ELEMENTS = (
    "If each thread is to have elements of its own, an index or a vector load is wrong. "
    "If threads share them, "
)


def _where_shared(remedy: str) -> str:
    """What to do about a race on an array: a barrier mends it only where threads share elements."""
    return f"{_OWN_ELEMENTS}{remedy[:1].lower()}{remedy[1:]}"


def _of_block(name: str) -> Reason:
    """A race on global memory within a block."""
    why = _UNORDERED + _NO_ORDER[name] + _OVERLAP
    if name == "no_fence_of_block":
        return Reason(_GLOBAL, why)
    if name == "no_syncthreads":
        mistake, do, fault = _WITHIN_BLOCK, _where_shared(_SYNCTHREADS), "block"
    else:
        mistake, do, fault = _WITHIN_WARP, _where_shared(_SYNCWARP), "warp"
    triton = Reason(_GLOBAL, why, _WITHIN_PROGRAM, _WITHIN, fault="program")
    return Reason(_GLOBAL, why, mistake, do, triton, fault)


_IN_ANY_ORDER = "programs run in any order; use an atomic operation such as tl.atomic_add, or another launch"


def _of_blocks(missing: str, mistake: str = "", do: str = "") -> Reason:
    """A race between blocks. Triton has no fences: there it takes an atomic, or another launch."""
    why = _UNORDERED + missing + "[{volatile:none} (volatile makes no access atomic)]"
    triton = Reason(_GLOBAL, _UNORDERED + _IN_ANY_ORDER, _BY_PROGRAMS, _TL_ATOMIC)
    return Reason(_GLOBAL, why, mistake, do, triton)


_FLAG = "the flag or counter (line {flag})"
_LOOK = "the look at the flag or counter (line {look})"
_OF_GLOBAL = {
    **{name: _of_block(name) for name in _NO_ORDER},
    **_of_one_statement(_IN_GLOBAL),
    "any_order": _of_blocks("blocks run in any order; use an atomic, another launch or a fence and a flag"),
    "no_fence_behind_look": _of_blocks(f"a __threadfence() behind {_LOOK} is missing"),
    "fence_before_look": _of_blocks(f"the fence (line {{fence}}) stands before {_LOOK}; put it behind"),
    "narrow_fence": _of_blocks("the __threadfence_block() (line {fence}) orders nothing for other blocks"),
    "narrow_flag": _of_blocks(f"{_FLAG} is of block scope and orders nothing for other blocks"),
    "fence_of_one_thread": _of_blocks(
        "the fence (line {fence}) speaks for its own thread and those that it has met at a barrier; put a "
        "{syncthreads} before it"
    ),
    "fence_behind_flag": _of_blocks(f"the fence (line {{fence}}) stands behind {_FLAG}; put it before"),
    "no_fence_before_flag": _of_blocks(f"a __threadfence() before {_FLAG} is missing"),
    "unfenced_lock": Reason(
        _GLOBAL,
        _UNORDERED + "the lock that is taken at line {lock} orders nothing without a __threadfence() behind "
        "taking it, and one before giving it back",
        "A lock without fences does not protect what it guards",
        "Put a __threadfence() behind taking the lock and before giving it back.",
    ),
    "lost_update": Reason(
        "{who} {does} {target}{line}, a value computed from what it has read there, where {other} does the "
        "same in the same instruction: one of the two updates is lost",
        "; use an atomic",
        _AT_ONCE,
        fault="at once",
    ),
    "same_instruction": Reason(
        "{who} {does} {target}{line} where {other} writes another value in the same instruction: which of "
        "them stays is left to chance",
        "; let one thread write, or use an atomic",
        _AT_ONCE,
        fault="at once",
    ),
}
_OF_A_BARRIER = "some at line {line_number}{calls}, others at line {other_line_number}{other_calls}"
_UNFENCED = (
    "{who} {does} {target}{line}, a lock that it has taken{other_line}, and what it guards is not kept "
    "within: a __threadfence() %s is missing"
)
_ONLY_LONG = (
    "; if it is right and only long, raise the limit: grader simulate --budget, or sim_instructions of the "
    "assignment"
)


def _in_a_loop(observation: str, why: str = "") -> Reason:
    return Reason(
        "the kernel does not end: a warp of it goes round this loop" + observation, why + _ONLY_LONG
    )


def _not_started(why: str, mistake: str = "", do: str = "") -> Reason:
    observation, _, rest = f"{{subject}} did not start: {why}".partition("; ")
    sentence = mistake and f"The kernel does not start, because {mistake}"
    return Reason(observation, f"; {rest}" if rest else "", sentence, do, fault=mistake)


_STREAMS_MEET = (
    "{kernel}[ (line {line_number})] in %s {does} {bytes} bytes of global memory that {other_kernel}[ (line "
    "{other_line_number})] in %s {did}"
)
_RECORD_AN_EVENT = (
    ", and nothing orders the two: record an event behind the one that must come first (cudaEventRecord), "
    "and let the other stream wait for it (cudaStreamWaitEvent)"
)
_OWN, _DEFAULT, _ANOTHER = "a stream of the program's own", "the default stream", "another stream"


def _between_streams(here: str, there: str) -> Reason:
    observation = _STREAMS_MEET % (here, there)
    if _DEFAULT not in {here, there}:
        return Reason(observation, _RECORD_AN_EVENT)
    mistake = "Work is on the default stream, which does not wait for the launcher's own stream"
    do = "Give every launch, copy and fill the launcher's stream: kernel<<<blocks, threads, 0, stream>>>."
    return Reason(observation, _RECORD_AN_EVENT, mistake, do, fault="default")


_BEFORE_AN_ARRAY = (
    "Something writes before the start of an array",
    "Compare the index with 0 first, and look at where each copy begins.",
)
_MANY_REGISTERS = "Use fewer threads per block, or write __launch_bounds__(threads) before the kernel's name."
_LITTLE_SHARED = "Use less than 48 KiB per block, or call cudaFuncSetAttribute before the launch."
_COPY = "{call} {does} {bytes} bytes at "
_INPUT = ", an input that the function may only read, even if its old values come back"

KINDS: Mapping[str, FindingKind] = MappingProxyType(
    {
        "device_pointer_on_host": FindingKind(
            "memcheck",
            "Host code reads or writes device memory, which only kernels may",
            "Do this in a kernel, or copy to a variable of the host first (cudaMemcpy).",
            {
                "host_code": Reason(
                    "host code{inside} accesses device memory at {address:hex}",
                    "; only kernels and cudaMemcpy may",
                ),
                **{
                    f"as_{role}": Reason(
                        f"host code passes as a host {role} what is not",
                        "; its direction is wrong. It accesses device memory at {address:hex}; only kernels "
                        "and cudaMemcpy may",
                    )
                    for role in ("source", "target")
                },
            },
            nothing_ran=True,
            by_pointers=True,
        ),
        "invalid_launch": FindingKind(
            "apicheck",
            "The kernel does not start",
            "Correct the number of blocks, of threads, or of bytes of shared memory in this launch.",
            {
                "empty_grid": _not_started(
                    "the grid is empty ({blocks} blocks)",
                    "its grid has no blocks",
                    "Round the number of blocks up: (n + threads - 1) / threads, which is at least 1.",
                ),
                "empty_block": _not_started("the block is empty ({threads} threads)"),
                "large_grid": _not_started(
                    "a grid of {blocks} blocks; the limit is 2147483647 x 65535 x 65535",
                    "its grid has too many blocks",
                    "y and z may have 65,535 blocks each, x 2,147,483,647: count the rows in blockIdx.x.",
                ),
                "large_block": _not_started(
                    "a block of {threads} threads; the limit is 1024 in all, and 64 in z",
                    "its blocks have too many threads",
                    "Use at most 1024 threads per block, and let each take several elements: i += "
                    "blockDim.x.",
                ),
                "launch_bounds": _not_started(
                    "a block of {threads} threads; __launch_bounds__ of the kernel says {most}"
                ),
                "registers": _not_started(
                    "a block of {threads} threads with {registers} registers each; a multiprocessor has "
                    "{most} (__launch_bounds__({threads}) on the kernel lets nvcc take fewer)",
                    "its blocks need too many registers",
                    _MANY_REGISTERS,
                ),
                "shared_memory": _not_started(
                    "{dynamic} bytes of dynamic shared memory beside {static} static ones; {allowed} are "
                    "allowed (cudaFuncAttributeMaxDynamicSharedMemorySize raises that to {most} in all)",
                    "it asks for too much shared memory",
                    _LITTLE_SHARED,
                ),
                "static_shared_memory": _not_started(
                    "more than 48 KiB of static shared memory",
                    "it asks for too much shared memory",
                    _LITTLE_SHARED,
                ),
                "crowded_grid": _not_started(
                    "a cooperative grid of {blocks} blocks; {resident} of them can be resident at a time, "
                    "{on_each} on each of {multiprocessors} multiprocessors (ask "
                    "cudaOccupancyMaxActiveBlocksPerMultiprocessor, and let each block do more)",
                    "the GPU cannot hold all blocks of its grid at once",
                    "Ask cudaOccupancyMaxActiveBlocksPerMultiprocessor how many fit, and let each do more.",
                ),
                "no_stream": _not_started("its stream does not exist"),
                "no_code": _not_started("its code cannot be run here"),
                "full_graph": _not_started("the graph is full"),
            },
            nothing_ran=True,
            by_cases=True,
        ),
        "failed_allocation": FindingKind(
            "apicheck",
            "An allocation failed, and the launcher goes on as if it had not",
            "Ask for less memory, and look at what the call returns: != cudaSuccess.",
            {
                "no_memory": Reason(
                    "{call} failed: out of memory; what it was to set is no pointer to device memory"
                )
            },
            costs=False,
            explains=frozenset({"host_pointer", "global_oob", "memcpy_overflow"}),
        ),
        "host_pointer": FindingKind(
            "memcheck",
            "A kernel gets a pointer of the host",
            "Allocate with cudaMalloc, copy with cudaMemcpy, and pass that pointer.",
            {**_POINTER_OF_HOST, "copy": Reason(_COPY + "a host address where a device address belongs")},
            by_pointers=True,
            triton="Give the kernel the tensors that the launcher gets, or new ones on their device.",
        ),
        "global_oob": FindingKind(
            "memcheck",
            "A thread reads or writes outside of every array",
            "Compare the index with the size first (if (i < n)); the block may not divide the size.",
            {
                **_OUTSIDE,
                "behind_by_descriptor": Reason(
                    _ACCESS + _BEHIND,
                    _NO_MASK + ", or it is a store by a descriptor, which a GPU makes 16 bytes at a time",
                    "A program writes outside of every array",
                    "Give this access a mask (mask=offsets < n), or store the last tile without a "
                    "descriptor.",
                    fault="descriptor",
                ),
                "end_written": Reason(
                    "memory behind the end of {array} was written",
                    mistake="Something writes past the end of an array",
                    do="Compare the index with the size first, and look at how many bytes each copy moves.",
                    fault="end",
                ),
                "start_written": Reason(
                    "memory before {array} was written", "", *_BEFORE_AN_ARRAY, fault="start"
                ),
                "both_written": Reason(
                    "memory before {array} and behind the end of {array} was written",
                    "",
                    *_BEFORE_AN_ARRAY,
                    fault="start",
                ),
            },
            any_value=True,
        ),
        "shared_oob": FindingKind(
            "memcheck",
            "An index leaves the block's shared memory",
            "Make the array long enough for the longest row, or guard the index; a launch counts it in "
            "bytes.",
            {
                "outside": Reason(_ACCESS + "which is outside the block's {size:bytes} of shared memory"),
                "none_asked_for": Reason(
                    _ACCESS + "and the block has {size:bytes}, none of which the launch asks for",
                    mistake="The launch gives its kernel no dynamic shared memory",
                    do="Give it as third argument, in bytes: kernel<<<blocks, threads, count * "
                    "sizeof(float), stream>>>.",
                    fault="none",
                ),
            },
            any_value=True,
        ),
        "local_oob": FindingKind(
            "memcheck",
            "An index leaves a thread's own array",
            "Make the array as long as the longest run of the loop needs, or guard the index.",
            {
                "outside": Reason(_ACCESS + "which is outside the thread's {size:bytes} of local memory"),
                "calls": Reason(
                    "{who} makes call number {depth} inside another: the stack of the thread is used up",
                    mistake="A function calls itself until the stack of its thread is used up",
                    do="Turn the recursion into a loop, or end it earlier; cudaDeviceSetLimit("
                    "cudaLimitStackSize, ...) gives each thread a larger stack.",
                    fault="calls",
                ),
            },
            any_value=True,
        ),
        "misaligned": FindingKind(
            "memcheck",
            "The address of an access is no multiple of the access's size",
            "Use float4 only where every row begins at a multiple of 16 bytes; else load single floats.",
            {
                "misaligned": Reason(_ACCESS + "which is not a multiple of {n}"),
                "matrix_rows": Reason(
                    "a warp of {who} loads or stores a matrix whose rows lie {apart:bytes} apart",
                    "; the leading dimension has to be a multiple of 16 bytes",
                    "The leading dimension of a matrix is no multiple of 16 bytes",
                    "Copy such a tile to shared memory first, with rows of a multiple of 16 bytes.",
                    fault="rows",
                ),
            },
            triton="Let each pointer begin at an element; look for a pointer of another type.",
        ),
        "const_input": FindingKind(
            "memcheck",
            "An input that may only be read is written to",
            "Take memory of your own for what lies between input and output: cudaMallocAsync on the same "
            "stream.",
            {
                "store": Reason("{who} {does} {n:bytes} at byte {byte} of {array}" + _INPUT),
                "copy": Reason("{call} writes into {array}" + _INPUT),
            },
            triton="Store into a tensor of your own, torch.empty_like(x), and not into an input.",
        ),
        "use_after_free": FindingKind(
            "memcheck",
            "Memory is used that has been freed",
            "Free it behind its last use, in the order of the stream.",
            {
                "freed": Reason(
                    _ACCESS
                    + "which lies {distance:bytes} into an allocation of {size:bytes} that has been freed"
                ),
                "copy": Reason(_COPY + "memory that was freed before"),
            },
            any_value=True,
        ),
        "double_free": FindingKind(
            "memcheck",
            "Memory is freed twice, or was never allocated",
            "Free each allocation once, where it was allocated.",
            {
                "on_device": Reason(
                    "{who} frees a pointer that device malloc() did not give, or frees it twice"
                ),
                "freed_before": Reason("{call} of {address:hex}, which was freed before"),
                "for_cuda_free": Reason("{call} of {address:hex}, which cudaFree must free"),
                "for_cuda_free_host": Reason("{call} of {address:hex}, which cudaFreeHost must free"),
                "no_allocation": Reason(
                    "{call} of {address:hex}, which is not the start of an allocation of this program"
                ),
            },
        ),
        "memcpy_overflow": FindingKind(
            "apicheck",
            "A copy or a fill is longer than the memory behind its pointer",
            "Count its bytes by the array's own type: n * sizeof(float).",
            {
                "of_allocation": Reason(_COPY + "offset {offset} of an allocation of {size} bytes"),
                "of_variable": Reason(_COPY + "offset {offset} of variable {variable} of {size} bytes"),
                "part_of_variable": Reason(
                    "{call} of {bytes} bytes at offset {offset} of variable {variable} of {size} bytes"
                ),
                "nowhere": Reason(_COPY + "{address:hex}, outside any allocation"),
            },
        ),
        "divergent_barrier": FindingKind(
            "synccheck",
            "Not all threads of the block reach the same __syncthreads()",
            "Let every thread reach it: put the condition around the work, and not around the barrier.",
            {
                "different": Reason(
                    f"threads of {{who}} wait at different {{syncthreads}}: {_OF_A_BARRIER}",
                    "; all threads of a block must reach the same one",
                ),
                "exited": Reason(
                    "only {arrived} of {threads} threads of {who} reach this {syncthreads}, the others have "
                    "exited",
                    "; a GPU does not wait for those, but what they would have done for the others is "
                    "missing: better let no thread return before a barrier",
                ),
                "forever": Reason(f"threads of {{who}} wait at different barriers forever: {_OF_A_BARRIER}"),
            },
        ),
        "exited_lanes": FindingKind(
            "synccheck",
            "A shuffle takes its value from a thread that has left the kernel",
            "Do not return before it: let such threads take part with a neutral value (0 for a sum).",
            {
                "shuffle_from_exited": Reason(
                    "{who} shuffles from lane {lane}, which has exited", "; the value is undefined"
                ),
                "shuffle_from_absent": Reason(
                    "{who} shuffles from lane {lane}, which the block does not have",
                    "; the value is undefined",
                    "A shuffle takes its value from a thread that the block does not have",
                    _WHOLE_WARPS,
                    fault="absent",
                ),
                "matrix_of_exited": Reason(
                    "a matrix instruction needs all 32 lanes of warp {warp} of {who}, and lane {lane} has "
                    "exited",
                    "; the result is undefined",
                ),
                "matrix_of_absent": Reason(
                    "a matrix instruction needs all 32 lanes of warp {warp} of {who}, and lane {lane} does "
                    "not exist: the block has too few threads",
                    "; the result is undefined",
                    "A shuffle names a thread that the block does not have",
                    _WHOLE_WARPS,
                    fault="absent",
                ),
            },
        ),
        "missing_lanes": FindingKind(
            "synccheck",
            "A warp-wide operation names threads that do not come to it",
            "Name exactly the threads that execute it in its mask, or move it out of the branch.",
            {
                "not_named": Reason(
                    "{who} takes part in a warp-wide operation whose mask {mask:#010x} does not name it",
                    "; the result is undefined",
                ),
                "never_come": Reason(
                    "lanes {lane}[ and {more} more] of warp {warp} in {who} are named in the mask of this "
                    "warp-wide operation and never reach it",
                    "; the others wait forever",
                ),
            },
        ),
        "race_shared": FindingKind(
            "racecheck",
            "Two threads use the same shared memory, one of them writes, and no barrier orders them",
            _SYNCTHREADS,
            _OF_SHARED,
            race=True,
            triton=_DEBUG_BARRIER,
        ),
        "race_warp": FindingKind(
            "racecheck",
            "Two threads of a warp use the same shared memory, one writes, and nothing orders them",
            _SYNCWARP,
            _OF_SHARED,
            race=True,
            triton=_DEBUG_BARRIER,
        ),
        "race_global": FindingKind(
            "racecheck",
            "Two blocks use the same global memory, one of them writes, and nothing orders them",
            _ATOMIC,
            _OF_GLOBAL,
            race=True,
            triton=_TL_ATOMIC,
        ),
        "stale_read": FindingKind(
            "racecheck",
            "A read through the read-only cache may miss what the same launch has written",
            "Read it through a plain pointer, without __ldg and __restrict__, or in another launch.",
            {
                "written_before": Reason(
                    "{who} {does} {target}{line} through the read-only cache (__ldg, or a const __restrict__ "
                    "pointer), and the same launch has written there{other_line}: that cache may still hold "
                    "what was there before",
                    "; read it through a plain pointer, or in another launch",
                )
            },
        ),
        "uninit_shared": FindingKind(
            "initcheck",
            "Shared memory is read that no thread of the block has written",
            "Read only what was written (lane < warps ? slots[lane] : 0), or set the rest first.",
            {
                "read": Reason(
                    "{who} {does} {n:bytes} of shared memory at byte {byte} that no thread of the block has "
                    "written"
                )
            },
            follows="race_shared",
        ),
        "uninit_global": FindingKind(
            "initcheck",
            "Global memory is read that nothing has written",
            "Set it before you add to it (cudaMemsetAsync on the same stream), or write every element of it.",
            {
                "read": Reason(
                    "{who} {does} {n:bytes}[ at byte {byte} of an allocation of {size} bytes] that nothing "
                    "has written"
                ),
                "copied_out": Reason(
                    "{call} copies {copied:bytes} of an allocation of {size} bytes to the host, and nothing "
                    "has written {bytes} of them, from byte {first} of the allocation on",
                    "[; the first launch that got it was {launch} with {blocks} blocks of {threads} threads]",
                    "The host gets memory that nothing has written",
                    "Check that the launch has enough threads for the whole array, and copy only what it "
                    "writes.",
                    fault="copied",
                ),
                "read_by_pytorch": Reason(
                    "PyTorch ({call}) reads {copied:bytes} of an allocation of {size} bytes, and nothing has "
                    "written {bytes} of them, from byte {first} of the allocation on",
                    "[; the first launch that got it was {launch} with {blocks} programs]",
                    "PyTorch reads a tensor that nothing has written",
                    "Check that the grid has enough programs for the whole tensor and that masks let "
                    "every element through.",
                    fault="read",
                ),
            },
            follows="race_stream",
            triton="Set the tensor first (torch.zeros), or store before you add to it.",
        ),
        "budget": FindingKind(
            "hang",
            "The kernel does not end: it stays in this loop",
            "Look at the loop's condition and at its step: can the condition still become false?",
            {
                "no_loop": Reason("the kernel does not end", _ONLY_LONG),
                "loop": _in_a_loop(""),
                "swaps": _in_a_loop(
                    ", whose atomicCAS on {word} succeeds, and yet it goes round again",
                    "; a NaN equals nothing, not even itself: compare the bits, as integers",
                ),
                "lock": _in_a_loop(", in which it tries to take a lock in {word} that no thread releases"),
                "flag": _in_a_loop(", in which it waits for {word} to change, which no thread does"),
                "alone": _in_a_loop(", whose end depends on nothing that another thread could change"),
                "still": _in_a_loop(", which reads {word} again and again, and nothing changes it"),
                "launches": Reason(
                    "the host has launched {launches} kernels in this call and goes on",
                    "; does a loop around the launch of this one end?",
                ),
            },
        ),
        "deadlock": FindingKind(
            "hang",
            "The kernel does not end: all of its threads wait for each other",
            "Count which threads come to each barrier, and how often.",
            {
                "too_few": Reason(
                    "barrier {barrier} of {who} waits for {threads} threads and only {arrived} come"
                ),
                "crowded": Reason(
                    "the blocks wait for each other, and not all of them fit the GPU: of {blocks:,}, "
                    "{resident:,} can be resident at a time, {on_each} on each of {multiprocessors} "
                    "multiprocessors",
                    "; those wait in this loop for {word} to change, and {waiting:,} wait until one of them "
                    "ends; launch no more blocks than are resident and let each do more, or split the kernel "
                    "in two",
                    "Blocks wait for each other, and the GPU cannot hold all of them at once",
                    "Launch no more blocks than fit and let each do more, or split the kernel in two "
                    "launches.",
                    fault="crowded",
                ),
            },
        ),
        "race_stream": FindingKind(
            "racecheck",
            "Two streams use the same memory, one of them writes, and no event orders them",
            "Record an event behind the first (cudaEventRecord), and let the other wait "
            "(cudaStreamWaitEvent).",
            {
                "own_streams": _between_streams(_OWN, _ANOTHER),
                "default_streams": _between_streams(_DEFAULT, _ANOTHER),
                "in_default": _between_streams(_DEFAULT, _OWN),
                "after_default": _between_streams(_OWN, _DEFAULT),
            },
        ),
        "race_host": FindingKind(
            "racecheck",
            "The host uses memory that a kernel or a copy may still use",
            "Wait first: cudaDeviceSynchronize(), or cudaStreamSynchronize() of the work's stream.",
            {
                "not_waited": Reason(
                    "host code{inside} {does} [byte {byte} of an allocation of {size} bytes] that {work}[ "
                    "(line {line_number})] may still {did}",
                    ", since nothing has waited for it: call cudaDeviceSynchronize(), or "
                    "cudaStreamSynchronize() of its stream, before",
                )
            },
            race=True,
        ),
        "early_launch": FindingKind(
            "racecheck",
            "A kernel may begin before the one ahead of it in its stream has ended",
            "Launch it without programmatic stream serialization.",
            {
                "never_waits": Reason(
                    "launched with cudaLaunchAttributeProgrammaticStreamSerialization, it may begin before "
                    "the launch ahead of it in its stream has ended, and it never waits for that end: it may "
                    "read what is not there yet and write over what is still being read",
                    "; launch it without the attribute",
                )
            },
        ),
        "leak": FindingKind(
            "memcheck",
            "Each call leaves device memory behind that is never freed",
            "Free on every way out what the launcher allocates: cudaFreeAsync on the same stream, or "
            "cudaFree.",
            {
                "each_call": Reason(
                    "each call leaves device memory behind that is never freed: {allocations:,} "
                    "allocation(s) with {bytes:,} bytes in this one"
                ),
                "at_the_end": Reason("{bytes} bytes at {address:hex} were never freed"),
            },
            triton="Hold no tensor longer than the call: lists and globals keep them.",
        ),
        "unchecked_error": FindingKind(
            "apicheck",
            "A call of the CUDA runtime failed, and nobody asked for its error",
            "Ask cudaGetLastError() behind each launch, and look at what each call returns.",
            {
                "at_the_end": Reason(
                    "the program ended without asking for this error: {message}{cause}", "{cause_why}"
                ),
                "of_a_launch": Reason("{cause}", "{cause_why}; no cudaGetLastError asked for {error}"),
            },
            by_cases=True,
            consequence=True,
        ),
        "unfenced_lock": FindingKind(
            "racecheck",
            "A lock is taken or given back without a fence",
            "Put a __threadfence() behind taking the lock and before giving it back.",
            {
                "no_fences": Reason(_UNFENCED % "behind taking it and before giving it back"),
                "no_fence_behind": Reason(_UNFENCED % "behind taking it"),
                "no_fence_before": Reason(_UNFENCED % "before giving it back"),
            },
            costs=False,
        ),
        "index_overflow": FindingKind(
            "memcheck",
            "An index does not fit into 32 bits",
            "Compute it in 64 bits: size_t(row) * columns.",
            {
                "of_this_line": Reason(
                    "{who} computes an index in 32 bits, which do not hold it, and uses what is left of it "
                    "for an address: compute it in size_t"
                ),
                "of_a_value": Reason(
                    "{who} computes {value} in 32 bits, which do not hold it, and uses what is left of it "
                    "for an address{other_line}: compute it in size_t"
                ),
            },
            costs=False,
            triton="Compute it in 64 bits: tl.program_id(0).to(tl.int64).",
        ),
    }
)
"""All kinds, in the order in which they are to be mended: what does not start, what is out of bounds,
barriers and races, what was never written, kernels that do not end. Wrong numbers come before
``race_stream``."""

BARRIER = "divergent_barrier"
"""The kind of threads that wait at barriers apart."""
OVERRUN = "global_oob"
"""The kind that a write into a guard zone is."""
OVERFLOW = "index_overflow"
"""The kind that may say why an access is outside of an array."""
STREAMS = "race_stream"
"""The kind that comes behind wrong numbers, unless these are right in program order."""
UNWRITTEN = "uninit_shared"
"""The kind before which races between streams come where the numbers are right in program order."""
