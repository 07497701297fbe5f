"""What a program wrote against what is expected: text, words and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.devices.device import Answer, Status
from grader.judge.correctness.programs import Compared, compared_output, judged
from grader.problems.checking import Wrong
from grader.problems.formats import FORMATS
from grader.problems.problem import Case
from grader.problems.program import STDOUT, Expected, Numbers, Run, Text, Words, program
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.problems.problem import Checker
    from grader.records.record import CaseResult


def compared(expected: Expected, content: bytes | str, *ignored: str) -> Compared:
    content = content.encode() if isinstance(content, str) else content
    return compared_output("stdout", expected, content, ignored)


@pytest.mark.parametrize(
    ("expected", "content"),
    [
        (Text("a  b\nc\n"), "a  b  \nc\n\n"),
        (Words("sum: 10\n"), "sum:  10.0\n"),
        (Words("1000", rtol=1e-3), "1001"),
        (Words("nan inf 0x"), "nan inf 0x"),
        (Words("0", atol=1e-6), "-0.0000009"),
        (Words("1.0 2.0", rtol=1e-6), "1.0\n2.0\n"),
        (Numbers(np.array([1, 2, 3])), "1 2 3"),
        (Numbers(np.array([[1.0, 2.0]]), rtol=1e-6), "1\n2.000001"),
        (Numbers(np.array([10, 20], np.uint8), "uint8", atol=1.0), bytes([11, 19])),
        (Numbers(np.array([1.0]), allowed=np.array([0.5])), "1.5"),
        (Numbers(np.array([])), ""),
    ],
)
def test_right_outputs(expected: Expected, content: bytes | str) -> None:
    result = compared(expected, content)
    assert result.diagnosis is None
    assert result.result.bad == 0


@pytest.mark.parametrize(
    ("expected", "content", "bad", "cause"),
    [
        (Text("a  b"), "a b", 1, 'line 1 of stdout: "a b" instead of "a  b"'),
        (Text("a\nb"), "a", 1, 'the end of stdout, where "b" should follow'),
        (Text("a"), "a\n\nb", 2, 'line 2 of stdout: "" behind the expected end'),
        (Words("1 2 3"), "1 2", 1, 'the end of stdout, where "3" should follow, word 3'),
        (Words("1\n2"), "1\n2\n3", 1, 'line 3 of stdout, word 3: "3" behind the expected end'),
        (Words("sum 1"), "Sum 1", 1, 'line 1 of stdout, word 1: "Sum" instead of "sum"'),
        (Words("1000", rtol=1e-3), "1001.1", 1, 'line 1 of stdout, word 1: "1001.1" instead of "1000"'),
        (Words("1"), "nan", 1, 'line 1 of stdout, word 1: "nan" instead of "1"'),
        (Words("1"), "one", 1, 'line 1 of stdout, word 1: "one" instead of "1"'),
        (Words("nan"), "1", 1, 'line 1 of stdout, word 1: "1" instead of "nan"'),
        (Numbers(np.array([1, 2])), "1 3", 1, "element [1] of stdout is 3 instead of 2"),
        (Numbers(np.array([1, 2])), "1", 2, "there are 1 numbers in stdout, and not 2 numbers"),
        (Numbers(np.array([1, 2])), "1 x", 2, "in stdout there is 'x' where number 2 should be"),
        (Numbers(np.array([1.0]), rtol=1.0), "nan", 1, "element [0] of stdout is nan instead of 1"),
        (
            Numbers(np.zeros((2, 2), np.uint8), "pnm"),
            FORMATS["pnm"].write(np.zeros((2, 3), np.uint8)),
            4,
            "there are 2 x 3 in stdout, and not 2 x 2",
        ),
        (Words("1"), "1 " * (1 << 20), 1, "there are 2,097,152 bytes in stdout, far more than is expected"),
    ],
)
def test_wrong_outputs_are_told_where_they_first_differ(
    expected: Expected, content: bytes | str, bad: int, cause: str
) -> None:
    result = compared(expected, content)
    assert result.diagnosis is not None
    assert (result.result.bad, result.diagnosis.cause) == (bad, cause)


def test_lines_with_times_do_not_count_and_keep_their_numbers() -> None:
    expected = Words("time: 1 ms\nsum 3\nmax 2\n")
    assert compared(expected, "Time: 17.3 ms\nsum 3\nTime: 2 ms\nmax 2", r"(?i)^time").diagnosis is None
    wrong = compared(expected, "time: 17.3 ms\nsum 3\ntime: 2 ms\nmax 1", r"(?i)^time").diagnosis
    assert wrong is not None
    assert wrong.cause == 'line 4 of stdout, word 4: "1" instead of "2"'
    assert compared(Numbers(np.array([1])), "took 3 s\n1\n", "took").diagnosis is None


def test_the_record_says_by_which_rule_numbers_were_compared() -> None:
    rule = compared(Words("10 20", rtol=0.1, atol=0.5), "11 20").result.rule
    assert (rule.method, rule.rtol, rule.atol) == ("words", 0.1, 0.5)
    result = compared(Words("10 20", rtol=0.1, atol=0.5), "11 20").result
    assert (result.max_error, result.allowed) == (1.0, 1.5)
    assert compared(Numbers(np.array([1.0]), rtol=0.1), "1").result.rule.method == "tolerance"
    assert compared(Numbers(np.array([1.0]), allowed=np.array([0.0])), "1").result.rule.method == "bound"


CASE = Case("one", "cases", {}, "", 1)


def case_result(run: Run, answer: Answer) -> tuple[Verdict, str]:
    problem = program(id="p", file="p.cu", fixed={"cases": {"one": run}})
    result = judged(problem, CASE, run, answer)
    return result.verdict, result.message or result.diagnosis


def test_every_output_counts_and_is_named() -> None:
    run = Run(expected={STDOUT: Words("1"), "c.txt": Words("2")}, exit_code=3)
    right = Answer(Status.RETURNED, files={STDOUT: b"1", "c.txt": b"2"}, exit_code=3, kernels=1)
    assert case_result(run, right) == (Verdict.PASS, "")
    wrong = Answer(Status.RETURNED, files={STDOUT: b"1", "c.txt": b"3"}, exit_code=3, kernels=1)
    assert case_result(run, wrong) == (Verdict.FAIL, 'c.txt: line 1 of c.txt, word 1: "3" instead of "2"')
    absent = Answer(Status.RETURNED, files={STDOUT: b"1"}, exit_code=3, kernels=1)
    assert case_result(run, absent) == (
        Verdict.FAIL,
        "the program did not write c.txt, and ended with exit code 3",
    )
    ended = Answer(Status.RETURNED, files={STDOUT: b"1", "c.txt": b"2"}, kernels=1)
    assert case_result(run, ended) == (Verdict.FAIL, "the program ended with exit code 0; 3 is expected")


def test_a_gpu_does_not_tell_how_many_kernels_ran() -> None:
    run = Run(expected={STDOUT: Words("1")})
    assert case_result(run, Answer(Status.RETURNED, files={STDOUT: b"1"}))[0] is Verdict.PASS
    assert case_result(run, Answer(Status.RETURNED, files={STDOUT: b"1"}, kernels=0))[0] is Verdict.FAIL


def permuted(case: Case, run: Run, outputs: Mapping[str, bytes]) -> str:
    """Whether the output is a permutation of the input, which no expected output can say."""
    got = sorted(int(word) for word in outputs["order.txt"].split())
    return "" if got == list(range(case.sizes["n"])) else f"{run.arguments[0]}: not every number once"


@pytest.mark.parametrize(
    ("files", "kernels", "message"),
    [
        ({STDOUT: b"done", "order.txt": b"2 0 1"}, 1, ""),
        ({STDOUT: b"done", "order.txt": b"2 0 0"}, 1, "3: not every number once"),
        ({STDOUT: b"done", "order.txt": b"2 0 x"}, 1, "the output cannot be read: invalid literal for int()"),
        ({STDOUT: b"done"}, 1, "the program did not write order.txt, and ended with exit code 0"),
        ({STDOUT: b"undone", "order.txt": b"2 0 1"}, 1, ""),  # which the comparison says already
        ({STDOUT: b"done", "order.txt": b"2 0 1"}, 0, "the output is right, but no kernel was launched"),
    ],
)
def test_a_checker_says_what_no_expected_output_can(
    files: dict[str, bytes], kernels: int, message: str
) -> None:
    sizes = {"a": [{"n": 3}]}
    problem = program(id="order", file="order.cu", run=lambda _: run, sizes=sizes, checker=permuted)
    run = Run(expected={STDOUT: Words("done")}, arguments=("3",), outputs=("order.txt",))
    (case,) = problem.cases(1)
    result = judged(problem, case, run, Answer(Status.RETURNED, files=files, kernels=kernels))
    assert result.message.startswith(message)
    right = not message and files[STDOUT] == b"done"
    assert result.verdict is (Verdict.PASS if right else Verdict.FAIL)


def test_a_checker_of_a_program_may_name_what_is_wrong_and_is_no_student_s_fault_where_it_fails() -> None:
    run = Run(expected={}, outputs=("order.txt",))
    (case,) = program(id="order", file="order.cu", run=lambda _: run, sizes={"a": [{"n": 3}]}).cases(1)

    def result(checker: Checker) -> CaseResult:
        checked = program(
            id="order", file="order.cu", run=lambda _: run, sizes={"a": [{"n": 3}]}, checker=checker
        )
        files = {STDOUT: b"", "order.txt": b"2 0 1"}
        return judged(checked, case, run, Answer(Status.RETURNED, files=files, kernels=1))

    wrong = result(lambda *_: Wrong("a vertex is missing", "order.txt"))
    assert (wrong.verdict, wrong.message) == (Verdict.FAIL, "a vertex is missing")
    failing = result(lambda _, __, outputs: outputs["other.txt"].decode())
    assert failing.verdict is Verdict.INFRA_ERROR
    assert "checker fails in n = 3 with KeyError: 'other.txt'" in failing.message
