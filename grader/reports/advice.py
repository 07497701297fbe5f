"""What the kinds of findings mean for a beginner, and what to do; ``docs/findings.md`` says more of each.

The kinds stand in the order in which they are to be mended: what does not start, what is out of bounds,
barriers and races, what was never written, kernels that do not end. Wrong numbers come between those and
``race_stream``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """Of one kind of finding.

    Attributes:
        what: is wrong, without a full stop.
        do: to mend it, a sentence.
        cases: other pairs of the two, by a text in the finding's message; one that is empty is as above.
    """

    what: str
    do: str
    cases: tuple[tuple[str, str, str], ...] = ()

    def of(self, message: str) -> tuple[str, str]:
        """What is wrong and what to do, for a finding that says ``message``."""
        found = ((what or self.what, do or self.do) for text, what, do in self.cases if text in message)
        return next(found, (self.what, self.do))


_RACE_CASES = (
    (
        "asynchronous copy",
        "A thread uses shared memory that an asynchronous copy is still filling",
        "Wait for the copy first (__pipeline_wait_prior), and then for the block (__syncthreads()).",
    ),
)
_ATOMIC = "Use an atomic, let one thread write, or do what needs all blocks in a second launch."
_ROUND_UP = "Round the number of blocks up: (n + threads - 1) / threads, which is at least 1."

ADVICE = {
    "device_pointer_on_host": Advice(
        "Host code reads or writes device memory, which only kernels may",
        "Do this in a kernel, or copy to a variable of the host first (cudaMemcpy).",
    ),
    "invalid_launch": Advice(
        "The kernel does not start",
        "Correct the number of blocks, of threads, or of bytes of shared memory in this launch.",
        (
            ("the grid is empty", "The kernel does not start, because its grid has no blocks", _ROUND_UP),
            (
                "threads; the limit is",
                "The kernel does not start, because its blocks have too many threads",
                "Use at most 1024 threads per block, and let each take several elements: i += blockDim.x.",
            ),
            (
                "shared memory",
                "The kernel does not start, because it asks for too much shared memory",
                "Use less than 48 KiB per block, or call cudaFuncSetAttribute before the launch.",
            ),
            (
                "registers",
                "The kernel does not start, because its blocks need too many registers",
                "Use fewer threads per block, or write __launch_bounds__(threads) before the kernel's name.",
            ),
            (
                "a cooperative grid",
                "The kernel does not start, because the GPU cannot hold all blocks of its grid at once",
                "Ask cudaOccupancyMaxActiveBlocksPerMultiprocessor how many fit, and let each do more.",
            ),
        ),
    ),
    "host_pointer": Advice(
        "A kernel gets a pointer of the host",
        "Allocate with cudaMalloc, copy with cudaMemcpy, and pass that pointer.",
    ),
    "global_oob": Advice(
        "A thread reads or writes outside of every array",
        "Compare the index with the size first (if (i < n)); the block may not divide the size.",
        (
            (
                "a store by a descriptor",
                "A program writes outside of every array",
                "Give this access a mask (mask=offsets < n), or store the last tile without a descriptor.",
            ),
            (
                "the mask of this access",
                "A program reads or writes outside of every array",
                "Give this access a mask that is true for what is inside alone: mask=offsets < n.",
            ),
            ("behind the end of an allocation", "A thread goes past the end of an array", ""),
            (
                "memory behind the end of",
                "Something writes past the end of an array",
                "Compare the index with the size first, and look at how many bytes each copy moves.",
            ),
            (
                "memory before",
                "Something writes before the start of an array",
                "Compare the index with 0 first, and look at where each copy begins.",
            ),
            (" reads ", "A thread reads outside of every array", ""),
            (" writes ", "A thread writes outside of every array", ""),
        ),
    ),
    "shared_oob": Advice(
        "An index leaves the block's shared memory",
        "Make the array long enough for the longest row, or guard the index; a launch counts it in bytes.",
    ),
    "local_oob": Advice(
        "An index leaves a thread's own array",
        "Make the array as long as the longest run of the loop needs, or guard the index.",
    ),
    "misaligned": Advice(
        "The address of an access is no multiple of the access's size",
        "Use float4 only where every row begins at a multiple of 16 bytes; else load single floats.",
    ),
    "const_input": Advice(
        "An input that may only be read is written to",
        "Take memory of your own for what lies between input and output: cudaMallocAsync on the same stream.",
    ),
    "use_after_free": Advice(
        "Memory is used that has been freed", "Free it behind its last use, in the order of the stream."
    ),
    "double_free": Advice(
        "Memory is freed twice, or was never allocated", "Free each allocation once, where it was allocated."
    ),
    "memcpy_overflow": Advice(
        "A copy or a fill is longer than the memory behind its pointer",
        "Count its bytes by the array's own type: n * sizeof(float).",
    ),
    "divergent_barrier": Advice(
        "Not all threads of the block reach the same __syncthreads()",
        "Let every thread reach it: put the condition around the work, and not around the barrier.",
    ),
    "exited_lanes": Advice(
        "A shuffle takes its value from a thread that has left the kernel",
        "Do not return before it: let such threads take part with a neutral value (0 for a sum).",
        (
            (
                "does not have",
                "A shuffle takes its value from a thread that the block does not have",
                "Launch whole warps, a multiple of 32 threads, or name fewer lanes in the mask.",
            ),
            (
                "does not exist",
                "A shuffle names a thread that the block does not have",
                "Launch whole warps, a multiple of 32 threads, or name fewer lanes in the mask.",
            ),
        ),
    ),
    "missing_lanes": Advice(
        "A warp-wide operation names threads that do not come to it",
        "Name exactly the threads that execute it in its mask, or move it out of the branch.",
    ),
    "race_shared": Advice(
        "Two threads use the same shared memory, one of them writes, and no barrier orders them",
        "Put a __syncthreads() {between}, where every thread of the block reaches it.",
        _RACE_CASES,
    ),
    "race_warp": Advice(
        "Two threads of a warp use the same shared memory, one writes, and nothing orders them",
        "Put a __syncwarp() {between}: the threads of a warp do not run in step.",
        _RACE_CASES,
    ),
    "race_global": Advice(
        "Two blocks use the same global memory, one of them writes, and nothing orders them",
        _ATOMIC,
        (
            (
                "programs run in any order",
                "Two programs use the same memory, one of them writes, and nothing orders them",
                "Use tl.atomic_add, let one program write, or do what needs all programs in a second launch.",
            ),
            (
                "tl.debug_barrier()",
                "Two threads of a program use the same memory, one writes, and no barrier orders them",
                "Put a tl.debug_barrier() {between}, or give each its own place.",
            ),
            (
                "__syncthreads()",
                "Two threads use the same global memory, one of them writes, and no barrier orders them",
                "Put a __syncthreads() {between}, where every thread of the block reaches it.",
            ),
            (
                "__syncwarp()",
                "Two threads of a warp use the same global memory, one writes, and nothing orders them",
                "Put a __syncwarp() {between}: the threads of a warp do not run in step.",
            ),
            (
                "in the same instruction",
                "Several threads write different values to one place at once",
                _ATOMIC,
            ),
        ),
    ),
    "stale_read": Advice(
        "A read through the read-only cache may miss what the same launch has written",
        "Read it through a plain pointer, without __ldg and __restrict__, or in another launch.",
    ),
    "uninit_shared": Advice(
        "Shared memory is read that no thread of the block has written",
        "Read only what was written (lane < warps ? slots[lane] : 0), or set the rest first.",
    ),
    "uninit_global": Advice(
        "Global memory is read that nothing has written",
        "Set it before you add to it (cudaMemsetAsync on the same stream), or write every element of it.",
    ),
    "budget": Advice(
        "The kernel does not end: it stays in this loop",
        "Look at the loop's condition and at its step: can the condition still become false?",
    ),
    "deadlock": Advice(
        "The kernel does not end: all of its threads wait for each other",
        "Count which threads come to each barrier, and how often.",
        (
            (
                "can be resident",
                "Blocks wait for each other, and the GPU cannot hold all of them at once",
                "Launch no more blocks than fit and let each do more, or split the kernel in two launches.",
            ),
        ),
    ),
    "race_stream": Advice(
        "Two streams use the same memory, one of them writes, and no event orders them",
        "Record an event behind the first (cudaEventRecord), and let the other wait (cudaStreamWaitEvent).",
        (
            (
                "in the default stream",
                "Work is on the default stream, which does not wait for the launcher's own stream",
                "Launch on the given stream: kernel<<<blocks, threads, 0, stream>>>.",
            ),
        ),
    ),
    "early_launch": Advice(
        "A kernel may begin before the one ahead of it in its stream has ended",
        "Launch it without programmatic stream serialization.",
    ),
    "leak": Advice(
        "Each call leaves device memory behind that is never freed",
        "Free on every way out what the launcher allocates: cudaFreeAsync on the same stream, or cudaFree.",
    ),
    "unchecked_error": Advice(
        "A call of the CUDA runtime failed, and nobody asked for its error",
        "Ask cudaGetLastError() behind each launch, and look at what each call returns.",
    ),
}

RACES = frozenset({"race_shared", "race_warp", "race_global"})

FOLLOWS = {"uninit_global": "race_stream", "uninit_shared": "race_shared"}
"""What is not said beside another finding, from which it follows: nobody has written it yet."""

RAISED = (
    (
        "must be a power of 2",
        "Take the next power of 2, triton.next_power_of_2(n), and leave out what is too much by a mask.",
    ),
    ("must be of type tl.constexpr", "Write `: tl.constexpr` behind this parameter of the kernel."),
    ("Cannot call @triton.jit'd", "Launch it with a grid: kernel[(programs,)](...)."),
    ("does not compile", "Correct this line first: other errors may follow from it."),
)
"""Words of what Python code or Triton says, and what to do then; the first that fit count."""

REACH = {
    "cuda": "Round the number of blocks up, (n + threads - 1) / threads; blockIdx.x tells each its elements.",
    "triton": "Round the number of programs up, triton.cdiv(n, size); tl.program_id tells each its elements.",
}
"""What to do about elements that no thread reaches, by language."""
