"""The first lines of a problem's report: for eighteen typical bugs they name cause, line and remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import homework
import pytest
import report_samples as samples

from grader.devices.sim import Sim
from grader.records import sentences
from grader.records.diagnosis import theme
from grader.records.findings import KINDS, Reason
from grader.records.record import ProblemResult
from grader.reports.causes import without_place
from grader.reports.fix_first import Fix, causes, fix_first, fixes
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TEXTS = Path(__file__).with_name("fix_first.txt")
"""What the report of each begins with. Names of kernels end with that of the bug: all are built together."""


def held() -> dict[str, list[str]]:
    parts = TEXTS.read_text().split("\n\n")
    return {name: lines for name, *lines in (part.strip().splitlines() for part in parts)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ProblemResult]:
    """Every bug, graded in one run."""
    folder = tmp_path_factory.mktemp("homework")
    assignment = homework.write(folder)
    names = tuple(bug.id for bug in homework.BUGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sim, "architecture", "compute_80")  # no machine code, which nobody runs
        request = grading.GradingRequest(
            folder, assignment, names, GradingOptions("sim", memory="device"), seed=1
        )
        record = grading.grade(request, bench=Bench(remembers=True))
    return {problem.id: problem for problem in record.problems}


@pytest.mark.parametrize("bug", homework.BUGS, ids=lambda bug: bug.id)
def test_a_typical_bug_is_named_with_its_line_and_its_remedy(
    graded: Mapping[str, ProblemResult], bug: homework.Bug
) -> None:
    first, *others = fixes(graded[bug.id])
    assert list(first.lines) == held()[bug.id]
    assert len(first.lines) <= 3
    assert not others, "the same fault is said once"
    if first.line:
        assert first.text.strip() == bug.text.splitlines()[first.line - 1].strip()


def nameless(problem: ProblemResult) -> ProblemResult:
    """The same result with the name of its kind in the place of each text of a diagnosis or an ending."""
    content = problem.model_dump(mode="json")
    for case in content["correctness"]["cases"]:
        case["message"] = case["message"] and f"ended {case['ending']}"
        for diagnosis in case["diagnoses"]:
            diagnosis |= {"cause": diagnosis["kind"], "remedy": "", "evidence": "", "place": ""}
    return result(content)


def test_no_report_is_decided_by_a_text(
    graded: Mapping[str, ProblemResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    def decided(problem: ProblemResult) -> list[tuple[object, ...]]:
        return [
            (fix.kind, fix.location, fix.more, fix.example, fix.ended, [one.line for one in fix.accesses])
            for fix in fixes(problem)
        ]

    def groups(problems: Iterable[ProblemResult]) -> list[list[int]]:
        """Which problems have a cause in common."""
        told = [{theme(without_place(cause)) for cause in causes(problem)} for problem in problems]
        return [[number for number, other in enumerate(told) if other & one] for one in told]

    before = {name: decided(problem) for name, problem in graded.items()}
    together = groups(graded.values())
    without = {name: nameless(problem) for name, problem in graded.items()}
    named = {
        name: replace(
            kind,
            mistake=name,
            do="",
            reasons={
                reason: Reason(name, mistake=f"{name} {told.fault}", fault=told.fault)
                for reason, told in kind.reasons.items()
            },
        )
        for name, kind in KINDS.items()
    }
    monkeypatch.setattr(sentences, "KINDS", named)
    assert {name: decided(problem) for name, problem in without.items()} == before
    assert groups(without.values()) == together
    for name, problem in without.items():
        scores = (problem.points, problem.correctness.groups, [check.verdict for check in problem.checks])
        whole = graded[name]
        assert scores == (whole.points, whole.correctness.groups, [check.verdict for check in whole.checks])


@pytest.mark.parametrize("ending", ["usual", "not begun"])
def test_the_place_of_an_error_in_python_is_no_part_of_its_text(ending: str) -> None:
    content = samples.raced(checks=[])
    content["correctness"]["summary"] = "not begun" * (ending == "not begun")
    content["correctness"]["cases"] = [
        {
            "name": f"{number} rows",
            "group": "short rows",
            "verdict": "FAIL",
            "ending": ending,
            "diagnoses": [],
            "message": f"k.py:{number}: ValueError: no",
            "file": "k.py",
            "line": number,
        }
        for number in (2, 4)
    ]
    fix = fixes(result(content))[0]
    assert (fix.fault, fix.location) == ("ValueError: no", "k.py:2")
    nothing_said = fixes(nameless(result(content)))[0]
    assert nothing_said.fault == f"ended {ending}"
    assert (nothing_said.location, nothing_said.more) == (fix.location, fix.more)


def test_a_launch_that_fails_in_some_cases_costs_nothing_beside_them(
    graded: Mapping[str, ProblemResult],
) -> None:
    groups = {group.name: group for group in graded["too-many-threads"].correctness.groups}
    assert groups["long rows"].earned == 0
    assert groups["memory and concurrency"].earned == groups["memory and concurrency"].possible


def result(content: dict[str, Any]) -> ProblemResult:
    return ProblemResult.model_validate(content)


def found(*kinds: str, **changes: object) -> ProblemResult:
    """A problem with wrong numbers and findings of ``kinds``, each at a line of its own."""
    findings = [
        samples.finding(kind=kind, line=number, source=None, message=f"a {kind}")
        for number, kind in enumerate(kinds, 1)
    ]
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": findings}]
    return result(samples.raced(checks=checks, **changes))


def test_what_is_most_fundamental_comes_first() -> None:
    kinds = ("leak", "early_launch", "uninit_global", "race_shared", "global_oob", "invalid_launch")
    assert [fix.kind for fix in fixes(found(*kinds))] == [
        *("invalid_launch", "global_oob", "race_shared", "uninit_global", "early_launch", "leak"),
    ]
    build = samples.unbuilt()["build"]
    (first,) = fixes(found(*kinds, build=build))
    assert first.lines[0] == 'softmax_kernel.cu does not compile: identifier "flaot" is undefined'


def test_numbers_that_are_wrong_in_program_order_come_before_streams_and_behind_all_else() -> None:
    content = samples.raced(checks=[])
    content["correctness"]["cases"][0]["schedule"] = None
    findings = [
        samples.finding(kind=kind, line=line) for line, kind in enumerate(("race_stream", "budget"), 1)
    ]
    content["checks"] = [{"tool": "racecheck", "verdict": "FAIL", "findings": findings}]
    first, numbers, last = fixes(result(content))
    assert (first.kind, numbers.kind, last.kind) == ("budget", "", "race_stream")
    assert numbers.fault == "The last elements of a row are not written"
    content["correctness"]["cases"][0]["schedule"] = "streams as late as their events allow"
    assert [fix.kind for fix in fixes(result(content))] == ["race_stream", "budget", ""]


def test_beside_a_finding_nothing_is_unknown_and_no_question_is_asked() -> None:
    for text in ("ln_res: no known cause", "is a sum incomplete?", "only columns up to 7"):
        content = samples.raced()
        content["correctness"]["cases"][0]["diagnosis"] = text
        (race,) = fixes(result(content))
        assert race.kind == "race_shared"
        content["checks"] = []
        (numbers,) = fixes(result(content))
        assert "no known cause" not in " ".join(numbers.lines)
        assert (
            numbers.example == "ln_res[0, 999] in 37 x 1000: expected 0.25, got NaN (1,037 of 37,000 wrong)"
        )


def test_numbers_beside_a_finding_have_a_cause_only_if_they_are_numbers() -> None:
    content = samples.raced()
    content["correctness"]["cases"][0]["diagnosis"] = "the maximum is not subtracted"
    output = content["correctness"]["cases"][0]["outputs"][0]
    for nan, fixed in ((output["bad"], ["race_shared"]), (output["bad"] - 1, ["race_shared", ""])):
        output |= {"nan": nan, "infinite": 0}
        assert [fix.kind for fix in fixes(result(content))] == fixed


def test_a_race_on_an_array_asks_for_the_index_before_it_asks_for_a_barrier() -> None:
    race = {**samples.two_accesses(), "kind": "race_global", "reason": "no_syncwarp"}
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": [race]}]
    fix = fixes(result(samples.raced(checks=checks)))[0]
    assert fix.do.startswith(
        "If each thread is to have elements of its own, an index or a vector load is wrong"
    )
    assert "put a __syncwarp() between line" in fix.do


def test_a_question_on_one_of_many_cases_of_no_known_cause_is_not_asked() -> None:
    content = samples.raced(checks=[])
    first = content["correctness"]["cases"][0]
    question = "ln_res: each row is off by a factor of its own: is the sum wrong?"
    for others, asked in ((1, True), (7, False)):
        cases = [
            first | {"name": f"{index} x 1000", "diagnosis": "no known cause"} for index in range(others)
        ]
        content["correctness"]["cases"] = [first | {"diagnosis": question}, *cases]
        (fix,) = fixes(result(content))
        assert ("a factor of its own" in fix.fault) is asked
        assert (fix.do == "Is the sum wrong?") is asked


def test_a_question_of_the_diagnosis_is_what_to_do() -> None:
    content = samples.raced(checks=[])
    content["correctness"]["cases"][0]["diagnosis"] = (
        "ln_res: each row is off by a factor of its own: is the sum that it is divided by wrong?; "
        "only column 3. vars: no known cause"
    )
    content["correctness"]["cases"][1]["diagnosis"] = "no known cause"
    (fix,) = fixes(result(content))
    assert fix.fault == "ln_res: each row is off by a factor of its own"
    assert fix.do == "Is the sum that it is divided by wrong?"


def test_the_examples_of_an_assignments_checker_are_shown() -> None:
    content = samples.raced(checks=[])
    case = content["correctness"]["cases"][0]
    case["outputs"] = [{**case["outputs"][0], "name": "parent", "bad": 2, "total": 9, "first_bad": []}]
    case["diagnoses"] = [
        {
            "kind": "no edge",
            "cause": "no edge leads from there",
            "certainty": "stated",
            "evidence": "parent[3] is 8, parent[5] is 0",
        }
    ]
    (fix,) = fixes(result(content))
    assert fix.example == f"parent[3] is 8, parent[5] is 0 in {case['name']}: 2 of 9 wrong"


def test_both_lines_of_a_race_are_said_once_in_their_order_also_from_an_old_record() -> None:
    race = samples.two_accesses()
    other = {**race, "kind": "race_warp", "line": 14, "places": race["places"][::-1]}
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": [other, race]}]
    (fix,) = [fix for fix in fixes(result(samples.raced(checks=checks))) if fix.kind]
    assert [(one.thread, one.does, one.line) for one in fix.accesses] == [
        ("thread (33,0,0) of block (0,0,0)", "reads", 14),
        ("thread (0,0,0) of block (0,0,0)", "writes", 17),
    ]
    assert fix.where == "layernorm_kernel.cu:14: if (lane == 0) { and line 17: value = shared[lane];"
    assert fix.do.startswith("Put a __syncthreads() between line 14 and line 17")


def test_a_barrier_that_is_there_is_not_asked_for_once_more() -> None:
    lines = [
        "  tree[t] += tree[t + half];",
        "  // __syncthreads();",
        "  __syncthreads();",
        "}",
        "x = tree[0];",
    ]
    race = samples.finding(source={"first": 14, "lines": lines}, line=18, reason="no_syncthreads")
    race |= {"facts": {"byte": 0}, "file": "k.cu"}
    del race["message"]
    race["places"] = [
        {"file": "k.cu", "line": line, "does": does} for line, does in ((18, "reads"), (14, "writes"))
    ]
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": [race]}]
    (fix,) = [fix for fix in fixes(result(samples.raced(checks=checks))) if fix.kind]
    assert fix.do.startswith("The barrier at line 16 does not order them: let every thread")
    race["places"].reverse()  # of different rounds of a loop
    (fix,) = [fix for fix in fixes(result(samples.raced(checks=checks))) if fix.kind]
    assert fix.do.startswith("Put a __syncthreads()")


def test_the_call_that_leads_to_a_line_is_shown_with_it() -> None:
    call = {"file": "/opt/k.cu", "line": 41}
    place = {"file": "layernorm_kernel.cu", "line": 17, "calls": [call]}
    lanes = samples.finding(kind="missing_lanes", message="lanes never come", places=[place])
    checks = [{"tool": "synccheck", "verdict": "FAIL", "findings": [lanes]}]
    first = fix_first(result(samples.raced(checks=checks)))
    assert first is not None
    assert first.where == "layernorm_kernel.cu:17: value = shared[lane];  (called at k.cu:41)"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("linkage specification is not allowed", "Close the brace of the function before this line"),
        ('expected a ";"', "Look at the end of the statement before this, too"),
        ('identifier "flaot" is undefined', "Correct this line first"),
    ],
)
def test_an_error_of_the_compiler_may_come_from_a_line_before(error: str, advice: str) -> None:
    broken = samples.unbuilt(log=f"k.cu(22): error: {error}")
    assert fixes(result(broken))[0].do.startswith(advice)


def test_of_a_program_that_is_not_linked_the_line_of_the_linker_that_says_why_is_shown() -> None:
    telling = "main.cpp:7: undefined reference to `scan()'"
    log = f"nvcc -O3 -o scan main.o scan.o\nld: main.o: in function `main':\n{telling}\n"
    first = fixes(
        result(samples.unbuilt(log=log, message="scan.cu was not linked, as nothing defines scan()"))
    )[0]
    assert first.do == f"The compiler says: {telling}"
    build = samples.unbuilt(log=log)["build"] | {"remedy": "Write it."}
    assert fixes(result(samples.unbuilt(build=build, message="not linked")))[0].do == "Write it."


def test_what_only_follows_is_not_said() -> None:
    assert [fix.kind for fix in fixes(found("unchecked_error", "invalid_launch"))] == ["invalid_launch"]
    assert fixes(found("unchecked_error"))[-1].kind == "unchecked_error"


def test_words_of_the_machine_become_words_of_the_source() -> None:
    message = (
        "_ZN3one3kerEPf, /tmp/build/k.cu:3: thread (5,0,0) reads 16 bytes of global memory at 0x20000004065, "
        "which lies 0 bytes behind the end of an allocation of 80 bytes"
    )
    checks = [{"tool": "memcheck", "verdict": "FAIL"}]
    checks[0]["findings"] = [samples.finding(kind="global_oob", message=message)]  # type: ignore[assignment]
    first = fix_first(result(samples.raced(checks=checks)))
    assert first is not None
    assert first.detail == (
        "ker, k.cu:3: thread (5,0,0) reads 16 bytes of global memory right behind the end of an allocation "
        "of 80 bytes"
    )


def test_a_file_that_is_missing_or_that_nobody_began_says_what_to_do() -> None:
    missing = samples.unbuilt(build=None, message="k.cu is missing. Found kernel.cu: rename it to k.cu.")
    assert fixes(result(missing))[0].lines == ("k.cu is missing", "Found kernel.cu: rename it to k.cu.")
    content = samples.raced()
    content["correctness"]["summary"] = "nothing was written: the output still holds what was there before"
    assert fixes(result(content))[0].fault == "Nothing was written"
    nothing = {"kind": "nothing_written", "cause": "nothing was written", "file": "k.cu", "line": 7}
    content["correctness"]["cases"][0]["diagnoses"] = [nothing]
    assert fixes(result(content))[0].location == "k.cu:7"
    bodies = ("a.py:2: forward is still to be written", "a.py:4: loss is still to be written")
    content["correctness"]["summary"] = "; ".join(bodies)
    content["correctness"]["cases"] = [
        {"name": body, "group": "short rows", "verdict": "FAIL", "message": body}
        for body in (*bodies, bodies[0])
    ]
    assert fixes(result(content))[0].lines == (
        "forward is still to be written",
        "a.py:2  (also at a.py:4)",
        "Write its body, and take out the line that raises NotImplementedError.",
    )


def test_a_call_that_broke_is_said_with_its_case() -> None:
    content = samples.raced(checks=[])
    content["correctness"]["cases"][0] |= {"message": "the code died of SIGSEGV on the host", "outputs": []}
    (fix,) = fixes(result(content))
    assert fix.lines == ("The code died of SIGSEGV on the host", "in 37 x 1000")
    content["correctness"]["cases"][0]["message"] = "cudaErrorIllegalAddress: _Z3kerPf, /tmp/k.cu:3"
    assert fixes(result(content))[0].fault == "cudaErrorIllegalAddress: ker, k.cu:3"


@pytest.mark.parametrize("diagnosis", ["y: 1 of 1025 elements were never written", "nothing was written"])
@pytest.mark.parametrize(("language", "rounded"), [("cuda", "rounded up: (n +"), ("triton", "triton.cdiv(n")])
def test_elements_that_no_thread_reaches_have_a_remedy(diagnosis: str, language: str, rounded: str) -> None:
    content = samples.raced(checks=[], language=language)
    content["correctness"]["cases"][0]["diagnosis"] = diagnosis
    (fix,) = fixes(result(content))
    assert rounded in fix.do


def test_what_python_raises_is_said_with_its_line_and_a_remedy() -> None:
    content = samples.raced(checks=[])
    source = {"first": 6, "lines": ["def ker(y):", "    at = tl.arange(0, 1000)"]}
    message = "k.py:7: the kernel ker does not compile: arange's range must be a power of 2"
    content["correctness"]["cases"][0] |= {"message": message, "source": source, "outputs": []}
    (fix,) = fixes(result(content))
    assert fix.lines == (
        "The kernel ker does not compile: arange's range must be a power of 2",
        "k.py:7: at = tl.arange(0, 1000)",
        "Take the next power of 2, triton.next_power_of_2(n), and leave out what is too much by a mask.",
    )
    content["correctness"]["cases"][0] |= {"message": "k.py:7: TypeError: no", "source": None}
    assert fixes(result(content))[0].lines == ("TypeError: no", "k.py:7")


@pytest.mark.parametrize(("others", "said"), [(8, "Not divided"), (20, "Each row is off")])
def test_what_is_sure_of_few_cases_does_not_speak_for_many(others: int, said: str) -> None:
    content = samples.raced(checks=[])
    first = content["correctness"]["cases"][0] | {"diagnosis": "not divided by the sum"}
    other = first | {"diagnosis": "each row is off by a factor of its own: is the sum wrong?"}
    content["correctness"]["cases"] = [first, *(other | {"name": str(n)} for n in range(others))]
    assert fixes(result(content))[0].fault.startswith(said)


def test_only_what_lost_points_is_to_be_mended() -> None:
    assert fixes(result(samples.problem())) == ()
    assert fixes(result(samples.failed_machine())) == ()
    assert fixes(result(samples.timed())) == ()
    (slow,) = fixes(result(samples.timed(speedup=3.0)))
    assert slow.fault == "Right, but too slow"
    assert slow.do == "It is 3.00x as fast as the baseline, the target is 6.5x."
    content = samples.timed(speedup=3.0)
    content["performance"]["measure"] = "share_of_limit"
    (slow,) = fixes(result(content))
    assert slow.do == "It is 3.00x as fast as the limit that memory sets, the target is 6.5x."
    content = samples.raced()
    for case in content["correctness"]["cases"]:
        case["waived"] = "the starter does this"
    content["checks"][0]["findings"] = [samples.finding(waived="the starter does this")]
    assert causes(result(content)) == ()


def test_what_the_simulator_cannot_run_is_named_with_its_line_and_a_remedy() -> None:
    (undecided,) = fixes(result(samples.lacking()))
    assert undecided.lines == (
        "Undecided: the simulator cannot run textures",
        "softmax_kernel.cu:15: shared[warp] = value;",
        "Read the array itself: a const float* __restrict__ goes through the same cache.",
    )
    assert undecided.detail.endswith("reached in 1 of 2 cases")
    content = samples.lacking(verdict="FAIL")
    content["correctness"]["cases"][0] = samples.raced()["correctness"]["cases"][0]
    wrong, *others = fixes(result(content))
    assert not wrong.undecided
    assert others[-1].undecided
    for case in content["correctness"]["cases"]:
        case["waived"] = "this release has none"
    assert not any(fix.undecided for fix in fixes(result(content)))


@pytest.mark.parametrize(
    ("gap", "what", "do"),
    [
        ({"kind": "call", "subject": "cudaMallocArray"}, "cudaMallocArray", "Allocate with cudaMalloc"),
        ({"kind": "call", "subject": "cudaGraphAddNode"}, "cudaGraphAddNode", "Do without this call."),
        (
            {"kind": "instruction", "subject": "@%p1 vadd.s32 %r1, 2"},
            "the instruction vadd.s32",
            "Write this",
        ),
        ({"kind": "code", "subject": "no PTX for this kernel"}, "no PTX for this kernel", "Compile"),
    ],
)
def test_other_gaps_have_a_remedy_too(gap: dict[str, str], what: str, do: str) -> None:
    content = samples.lacking()
    content["correctness"]["cases"][1]["gaps"] = [gap]
    (undecided,) = fixes(result(content))
    assert undecided.fault.endswith(what)
    assert undecided.do.startswith(do)


def test_a_demand_that_is_not_met_is_what_to_mend() -> None:
    (fix,) = fixes(result(samples.demanding()))
    assert fix.fault == "Right, but the code is too large"
    assert fix.do == "It has 1.72 times the reference's bytes of machine code, of at most 1.5."


def test_reasons_not_to_trust_are_what_to_do() -> None:
    (fix,) = fixes(result(samples.untrusted()))
    assert "full bandwidth" in fix.do


def test_every_kind_has_its_place_in_the_docs() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "findings.md").read_text()
    kinds = {line.removeprefix("### ") for line in docs.splitlines() if line.startswith("### ")}
    assert kinds == set(KINDS)


def test_a_barrier_between_two_calls_of_a_function_is_asked_for_at_the_calls() -> None:
    race = samples.two_accesses() | {"reason": "no_syncthreads", "facts": {"byte": 0}}
    del race["message"]
    race["places"] = [
        {"file": "k.cu", "line": line, "does": does, "calls": [{"file": "k.cu", "line": caller}]}
        for line, does, caller in ((17, "writes", 89), (14, "reads", 88))
    ]
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": [race]}]
    (fix,) = [fix for fix in fixes(result(samples.raced(checks=checks))) if fix.kind]
    assert fix.do.startswith("Put a __syncthreads() between the calls at line 88 and line 89,")
    assert fix.gap == (88, 89)


def test_what_a_newer_standard_has_is_said_of_an_error() -> None:
    build = samples.unbuilt()["build"] | {
        "command": "nvcc -std=c++17 k.cu",
        "log": 'k.cu(5): error: identifier "concept" is undefined\n  concept Real = true;\n',
    }
    assert (
        fixes(found(build=build))[0].do == "This is C++20; C++17 is what is compiled. Write it without that."
    )


def stored(**store: object) -> Fix:
    """What is said of wrong numbers, of which the first was stored like this."""
    content = samples.raced(checks=[])
    (element,) = content["correctness"]["cases"][0]["outputs"][0]["first_bad"]
    element["last_store"] = {"by": "kernel", "kernel": "_Z14ker_layer_normPfS_", **store}
    (fix,) = fixes(result(content))
    return fix


def test_wrong_numbers_have_the_statement_that_stored_them() -> None:
    element = "ln_res[0, 999] in 37 x 1000: expected 0.25, got NaN (1,037 of 37,000 wrong)"
    place = {"file": "k.cu", "line": 7, "thread": (1, 0, 0), "block": (2, 0, 0), "text": "  y[j] = x[j];"}
    fix = stored(place=place)
    assert fix.where == "Stored at k.cu:7: y[j] = x[j];"
    assert fix.detail == f"{element}; thread (1,0,0) of block (2,0,0) of ker_layer_norm stored it"
    assert fix.cause.endswith(", stored at k.cu:7")
    assert without_place(fix.cause) == fix.fault
    in_triton = stored(kernel="_norm", place=place | {"file": "k.py"}, in_triton=True)
    assert in_triton.detail == f"{element}; program (2,0,0) of _norm stored it"
    in_a_library = stored(place=place | {"text": ""})
    assert (in_a_library.location, in_a_library.where) == ("", fix.detail)
    assert stored(by="nothing", kernel="").where == f"{element}; nothing stores to it"
    assert stored(by="copy", kernel="").where == element


def test_a_line_that_is_to_blame_comes_before_that_of_the_store() -> None:
    content = samples.raced(checks=[])
    case = content["correctness"]["cases"][0]
    place = {"file": "k.cu", "line": 7, "thread": (1, 0, 0), "block": (2, 0, 0), "text": "y[j] = x[j];"}
    case["outputs"][0]["first_bad"][0]["last_store"] = {"by": "kernel", "kernel": "k", "place": place}
    case["diagnoses"] = [{"kind": "unset_variable", "cause": "x is not set", "file": "k.cu", "line": 3}]
    (fix,) = fixes(result(content))
    assert fix.where == "k.cu:3"
    assert fix.detail.endswith("of k stored it (line 7)")


def test_the_example_is_of_an_output_that_the_diagnosis_is_about() -> None:
    content = samples.raced(checks=[])
    case = content["correctness"]["cases"][0]
    element = {"index": [3], "expected": 1.0, "got": 0.0}
    case["outputs"].append({**case["outputs"][0], "name": "vars", "first_bad": [element]})
    case["diagnoses"] = [
        {"kind": "unknown", "cause": "no known cause", "certainty": "unknown", "outputs": ["ln_res"]},
        {"kind": "reads", "cause": "attn_mask is read elsewhere", "outputs": ["vars"]},
    ]
    (fix,) = fixes(result(content))
    assert fix.fault == "vars: attn_mask is read elsewhere"
    assert fix.example.startswith("vars[3] in ")


def test_a_sentence_that_begins_with_a_name_leaves_it_as_it_is() -> None:
    content = samples.raced(checks=[])
    content["correctness"]["cases"][0]["diagnoses"] = [
        {"kind": "reads", "cause": "attn_mask is read elsewhere"}
    ]
    (fix,) = fixes(result(content))
    assert fix.fault == "attn_mask is read elsewhere"


@pytest.mark.parametrize(("totals", "told"), [((300, 400), "long"), ((300, 90), "short"), ((400,), "short")])
def test_of_two_causes_that_of_all_larger_cases_is_told(totals: tuple[int, ...], told: str) -> None:
    content = samples.raced(checks=[])
    first = content["correctness"]["cases"][0]

    def case(kind: str, number: int, total: int) -> dict[str, Any]:
        outputs = [first["outputs"][0] | {"bad": 1, "nan": 0, "infinite": 0, "total": total}]
        diagnoses = [{"kind": kind, "cause": f"so it is in {kind} rows"}]
        return first | {"name": f"{kind} {number}", "outputs": outputs, "diagnoses": diagnoses}

    content["correctness"]["cases"] = [
        *(case("short", number, total) for number, total in enumerate((10, 100, 200))),
        *(case("long", number, total) for number, total in enumerate(totals)),
    ]
    (fix,) = fixes(result(content))
    assert fix.fault == f"So it is in {told} rows"
