"""Records before schema 1.2, which hold sentences where there are facts now.

What reports need of them is read out of the sentences here, and nowhere else: the reason of a finding and who
did what, the outputs that a diagnosis is about and how certain it is.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from grader.records.diagnosis import UNKNOWN, Certainty, by_author
from grader.records.placed import placed
from grader.records.verdict import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.records.diagnosis import Diagnosis

_BEHIND_THE_FACTS = re.compile(r"; |, and nothing orders the two")
_ACCESSES = re.compile(
    r"(?P<later>thread \([\d,]+\) of block \([\d,]+\)) (?P<does>\w+) .*? that (?:an asynchronous copy of )?"
    r"(?P<earlier>(?:thread \([\d,]+\) of )?block \([\d,]+\)) (?:has (?P<did>written|read)|)"
)
_INDEX = re.compile(r"(thread|block) \((\d+),(\d+),(\d+)\)")
_ACCESS = re.compile(r" (reads|writes) ")
_DONE = {"written": "writes", "read": "reads", None: "copies"}
_COPY = (("asynchronous copy", "copy"),)
_REASONS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "invalid_launch": (
        ("the grid is empty", "empty_grid"),
        ("threads; the limit is", "large_block"),
        ("shared memory", "shared_memory"),
        ("registers", "registers"),
        ("a cooperative grid", "crowded_grid"),
    ),
    "global_oob": (
        ("a store by a descriptor", "behind_by_descriptor"),
        ("behind the end of an allocation", "behind"),
        ("memory behind the end of", "end_written"),
        ("memory before", "start_written"),
        ("", "nowhere"),
    ),
    "exited_lanes": (("does not have", "shuffle_from_absent"), ("does not exist", "matrix_of_absent")),
    "race_shared": _COPY,
    "race_warp": _COPY,
    "race_global": (
        ("programs run in any order", "any_order"),
        ("tl.debug_barrier()", "no_syncthreads"),
        ("__syncthreads()", "no_syncthreads"),
        ("__syncwarp()", "no_syncwarp"),
        ("in the same instruction", "same_instruction"),
    ),
    "deadlock": (("can be resident", "crowded"),),
    "race_stream": (("in the default stream", "in_default"),),
}
"""Reasons whose advice is not that of their kind, by words of the sentence; the first that fit count."""


_OUTPUTS = r"(?P<outputs>\w+(?:(?:, | and )\w+)*): "
_NEXT_OUTPUT = re.compile(r"\. (?=\w+(?:(?:, | and )\w+)*: )")
_PART = re.compile(rf"(?:{_OUTPUTS})?(?P<cause>.*)", re.DOTALL)
_PLACED = re.compile(r"only |right up to |all .* but every ")
_UNBEGUN = "is still to be written"
_UNWRITTEN = re.compile(r"\d+ of \d+ elements were never written|nothing was written")
_LINE = re.compile(r"the shuffle at (?P<file>\S+):(?P<line>\d+) ")


def with_diagnoses(case: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a case of today from those of an old one."""
    text, message = str(case.get("diagnosis", "")), str(case.get("message", ""))
    endings = {Ending.NOT_RUN: message.startswith("not run: "), Ending.UNBEGUN: message.endswith(_UNBEGUN)}
    ending = next((ending for ending, is_so in endings.items() if is_so), Ending.USUAL)
    case = {"ending": ending, **case}
    if not text:
        return case
    diagnoses = [_diagnosis(part.partition("; ")[0]) for part in _NEXT_OUTPUT.split(text)]
    if len(diagnoses) > 1 and not diagnoses[0].outputs:  # a note, in front of what the first output has
        diagnoses.insert(1, replace(_diagnosis(UNKNOWN), outputs=("",)))
    return {**case, "diagnoses": diagnoses, "old_diagnosis": text}


def with_place(case: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a case of today from those of one that has the place in its message alone."""
    position = placed(str(case.get("message", "")))
    return {**case, **(asdict(position) if position else {})}


_NOT_COMPILED = " did not compile: "


def with_ending(build: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a build of today from those of an old one."""
    stopped = str(build.get("log", "")).startswith("Compiling was stopped")
    return {**build, "ending": Ending.LIMIT if stopped else Ending.USUAL}


def with_remedy(problem: Mapping[str, Any]) -> Mapping[str, Any]:
    """A problem whose build has a remedy, which an old record has in the message alone."""
    build = problem.get("build")
    if not isinstance(build, dict) or "remedy" in build:
        return problem
    return {
        **problem,
        "build": {**build, "remedy": str(problem.get("message", "")).partition(_NOT_COMPILED)[2]},
    }


def _diagnosis(text: str) -> Diagnosis:
    part = _PART.fullmatch(text)
    outputs, cause = (part["outputs"], part["cause"]) if part else ("", text)
    diagnosis = by_author(cause)
    if UNKNOWN in cause:
        diagnosis = replace(diagnosis, certainty=Certainty.UNKNOWN)
    elif _PLACED.match(cause):
        diagnosis = replace(diagnosis, certainty=Certainty.PLACED, cause=cause, remedy="")
    line = _LINE.match(cause)
    return replace(
        diagnosis,
        outputs=tuple(re.split(", | and ", outputs)) if outputs else (),
        unwritten=_UNWRITTEN.match(cause) is not None,
        file=line["file"] if line else "",
        line=int(line["line"]) if line else 0,
    )


def with_facts(finding: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a finding of today from those of an old one."""
    message, kind = str(finding.get("message", "")), str(finding.get("kind", ""))
    observation = _BEHIND_THE_FACTS.split(message)[0]
    places = [dict(place) for place in finding.get("places", ())]
    if (both := _ACCESSES.search(message)) and len(places) > 1:
        deeds = ((both["later"], both["does"]), (both["earlier"], _DONE[both["did"]]))
        for number, (who, does) in enumerate(deeds):
            places[number] |= {name: index for name, *index in _INDEX.findall(who)} | {"does": does}
    elif access := _ACCESS.search(message):
        places = places or [{"file": finding.get("file", ""), "line": finding.get("line", 0)}]
        places[0]["does"] = access[1]
    reason = next((reason for words, reason in _REASONS.get(kind, ()) if words in message), "")
    return {
        **finding,
        "reason": reason,
        "places": places,
        "seen": observation,
        "why": message.removeprefix(observation),
    }
