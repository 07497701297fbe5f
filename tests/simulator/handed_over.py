"""Programs whose threads order what they do themselves: flags and fences, atomics, mbarriers, named barriers.

Each pattern (in ``handed_over.cuh``) is written once, over the type of its values, who hands over to whom,
how a flag is raised and looked at, how far fences and operations reach, and what is wrong: a fence that is
missing, stands on the wrong side or does not reach far enough, a flag of block scope, a thread that speaks
for others. :mod:`generated` runs them. The rules are those of the PTX ISA, "Memory Consistency Model".
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from pathlib import Path

TYPES = {1: "uint8_t", 2: "uint16_t", 4: "unsigned", 8: "unsigned long long", 16: "Wide"}

SOURCE = Path(__file__).with_suffix(".cuh").read_text()

HOWS = ("polled", "exchanged", "relaxed", "releasing")
PLACES = (("warp", True), ("warp", False), ("block", False))
FENCES = ("no_release", "late_release", "no_acquire", "early_acquire")
TOO_NARROW = ("narrow_release", "narrow_acquire")


@dataclass(frozen=True)
class HandedOver:
    """One program.

    Attributes:
        pattern: what its kernel does.
        scope: between whom the race is: lanes of a warp, warps of a block, blocks.
        size: bytes of a value.
        shared: whether the values are in shared memory.
        kind: of its race, empty if it is right.
        way: template arguments that say how threads order what they do.
        fault: what is wrong or, of a right one, the argument that says that nothing is.
    """

    pattern: str
    scope: str
    size: int
    shared: bool
    kind: str
    way: tuple[str, ...]
    fault: str
    sound: str

    @property
    def name(self) -> str:
        memory = "shared" if self.shared else "global"
        words = (self.pattern, self.scope, str(self.size), memory, *self.way, self.fault)
        return re.sub(r"[\W_]+", "_", " ".join(words))

    @property
    def twin(self) -> HandedOver:
        """The right program that is like this one."""
        return replace(self, kind="", fault=self.sound)

    @property
    def beside(self) -> frozenset[str]:
        """Kinds of findings that are right beside the race."""
        return frozenset({"unfenced_lock"} if self.kind and self.pattern == "lock_around" else ())

    @property
    def function(self) -> str:
        """The C++ function that runs it and returns CUDA's error."""
        arguments = ", ".join((TYPES[self.size], str(self.shared).lower(), *self.way, self.fault))
        return f'extern "C" int {self.name}() {{ return in_one({self.pattern}<{arguments}>); }}'


def _kind(scope: str, *, shared: bool) -> str:
    return "race_global" if not shared else "race_warp" if scope == "lane" else "race_shared"


def _by_flags() -> list[tuple[str, str, bool, tuple[str, ...], tuple[str, ...]]]:
    """Pattern, scope, memory, way, and the faults that it can have."""
    patterns = {
        "message": HOWS,
        "one_for_all": HOWS,
        "each_fences": ("polled",),
        "last_one": ("exchanged", "relaxed", "releasing"),
        "look_back": HOWS,
        "queue_of_slots": HOWS,
        "lock_around": HOWS,
        "graph_of_atomics": ("exchanged", "relaxed", "releasing"),
        "told_on": HOWS,
    }
    programs = []
    for pattern, hows in patterns.items():
        for (scope, shared), how in itertools.product(PLACES, hows):
            for reach in ("gpu", "sys") if scope == "block" else ("cta", "gpu"):
                faults = [*FENCES]
                if scope == "block":
                    faults += TOO_NARROW
                    if how != "polled" and pattern != "each_fences":
                        faults.append("narrow_flag")
                if pattern == "one_for_all":
                    faults += ["alone", "unheard"]
                if pattern == "graph_of_atomics":
                    faults.append("broken_chain")
                if pattern == "told_on":  # one fence between the two flags would do
                    faults = [*FENCES] if how == "releasing" else ["neither"]
                between = "warps_" if scope == "warp" else "blocks_"
                programs.append((pattern, scope, shared, (between, how, reach), tuple(faults)))
    return programs


def generate() -> list[HandedOver]:
    """All programs, in a fixed order: right and wrong by turns, a pattern's faults one after the other."""
    pairs = []
    for turn, (pattern, scope, shared, way, faults) in enumerate(_by_flags()):
        for place, size in enumerate(TYPES):
            fault = faults[(turn + place) % len(faults)]
            pairs.append((pattern, scope, size, shared, way, fault, "nothing"))
    slips = {
        "pipeline": ("arrives_early", "reads_early", "overwrites", "speaks_alone"),
        "named": ("arrives_early", "takes_part_only", "overwrites"),
    }
    for pattern, shared, arrival, stages in itertools.product(
        slips, (True, False), ("every_lane", "one_lane"), ("1", "2")
    ):
        possible = [s for s in slips[pattern] if s != "speaks_alone" or arrival == "one_lane"]
        if pattern == "named" and stages == "2":
            possible.remove("overwrites")
        for place, size in enumerate(TYPES):
            slip = possible[(place + int(stages)) % len(possible)]
            pairs.append((pattern, "warp", size, shared, (arrival, stages), slip, "none"))
    for part, how, shared in itertools.product(("4", "8", "16"), ("masked", "tiled"), (True, False)):
        pairs += [("parts", "lane", size, shared, (part, how), "false", "true") for size in TYPES]
    for how, shared in itertools.product(("shuffled_", "voted", "matched"), (True, False)):
        pairs += [("parts", "lane", size, shared, ("32",), f"{how}, true", "whole, true") for size in TYPES]
    programs = [
        HandedOver(pattern, scope, size, shared, kind, way, fault if kind else sound, sound)
        for pattern, scope, size, shared, way, fault, sound in pairs
        for kind in ("", _kind(scope, shared=shared))
    ]
    return list(dict.fromkeys(programs))
