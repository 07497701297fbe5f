"""The record of one grading run: ``result.json``, the only thing that reports read.

The models below are the record; ``result.schema.json`` beside this file is exported from them by
``python -m grader.records.record``. The record is versioned: a newer major version is refused, a newer minor
one is read.

Layer: imports other plain data, and nothing else of the grader.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    computed_field,
    model_validator,
)

from grader.records.coverage import Side, Way
from grader.records.demands import MEASURES, DemandMeasure, bound, figure
from grader.records.diagnosis import Diagnosis, in_words
from grader.records.findings import Place, Severity, Tool
from grader.records.gaps import GapKind
from grader.records.old import with_diagnoses, with_ending, with_facts, with_place, with_remedy
from grader.records.sentences import Sentence, sentence
from grader.records.stores import By, LastStore, StoreInTriton
from grader.records.verdict import Ending, Verdict

SCHEMA_VERSION = "1.2"
SCHEMA_FILE = Path(__file__).with_name("result.schema.json")
_REMEDY = "Name another file, or grade that submission again."
SEED_BITS = 48  # of a drawn seed: every reader of JSON holds it exactly

Number = Annotated[float, Field(allow_inf_nan=False)]
Value = int | float | Literal["NaN", "Infinity", "-Infinity"]
"""A number that a kernel may have produced; JSON has no words of its own for the last three."""


KernelMeasure = Literal["speedup", "share_of_limit", "share_of_arithmetic"]
"""What a kernel's speed is over: the unfused baseline, or the limit that memory or arithmetic sets."""
Measure = Literal[KernelMeasure, "over_reference"]
"""What a speed is over; that of a program is over the reference."""


class RecordError(Exception):
    """A record that cannot be read or written; the message says which file and what to do."""


class NewerError(RecordError):
    """A record of a newer major version: not damaged, but for another grader to read."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Points(_Part):
    """Points of a problem or a run: what was earned, of what could be decided, of what there is."""

    earned: Number
    decided: Number
    possible: Number


class GraderInfo(_Part):
    """Which grader judged, and under which configuration."""

    version: str
    config_sha256: str = Field(description="of the assignment file")
    sha256: str = Field(default="", description="of the grader's own files, as far as they judge")


class SubmissionInfo(_Part):
    """What was graded."""

    name: str
    sha256: str
    files: list[str]
    notes: list[str] = []
    error: str | None = Field(default=None, description="why nothing of it could be graded")


class DeviceInfo(_Part):
    """Where the kernels ran."""

    kind: Literal["gpu", "sim"]
    name: str
    reason: str = Field(default="", description="why this device was chosen")
    compiler: str = ""


class SandboxInfo(_Part):
    """What confined compiling and running, and what that does not stop."""

    backend: str
    enforced: list[str]
    not_enforced: list[str]


class KernelResources(_Part):
    """What ptxas says of one kernel, and how large its machine code is."""

    kernel: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    code_bytes: int | None = None


class BuildResult(_Part):
    """How the source file of a problem compiled."""

    ok: bool
    seconds: Number
    cached: bool
    command: str
    log: str
    remedy: str = Field(default="", description="what to do, where the grader knows more than the compiler")
    ending: Ending = Ending.USUAL
    resources: list[KernelResources]

    @model_validator(mode="before")
    @classmethod
    def _of_any_version(cls, content: object) -> object:
        is_old = isinstance(content, dict) and "ending" not in content
        return with_ending(content) if is_old and isinstance(content, dict) else content

    @property
    def code(self) -> str:
        """How many kernels there are and how large their machine code is; "" where that is not known."""
        sizes = [kernel.code_bytes for kernel in self.resources if kernel.code_bytes is not None]
        return f"kernels: {len(sizes)}, {sum(sizes):,} bytes of machine code" if sizes else ""


@dataclass(frozen=True)
class PlaceRecord(Place):
    """A place of a finding or a store, and its line."""

    text: str = ""  # where it is the student's


class StoreRecord(_Part):
    """What has stored last into an element."""

    by: By
    kernel: str = ""
    place: PlaceRecord | None = Field(
        default=None, description="of the kernel's store, with the thread; null where its line is not known"
    )
    in_triton: bool = Field(default=False, description="whether that kernel is one of Triton")

    @classmethod
    def of(cls, store: LastStore) -> StoreRecord:
        """What the record holds of ``store``."""
        place = PlaceRecord(**vars(store.place)) if store.place.line else None
        return cls(by=store.by, kernel=store.kernel, place=place, in_triton=isinstance(store, StoreInTriton))


class BadElement(_Part):
    """One wrong element."""

    index: list[int]
    expected: Value
    got: Value
    last_store: StoreRecord | None = Field(
        default=None, description="what the simulator has seen of it; null where nobody has looked"
    )


class ComparisonRule(_Part):
    """How an output was compared, as the assignment states it."""

    method: Literal["bound", "tolerance", "words", "text", "checker"] = Field(
        description="bound: a derived largest error of each element; tolerance: atol + rtol |expected| of "
        "each element; words: the same of each word that is a number, all others exactly; text: exactly; "
        "checker: by a function of the assignment, as more than one output is right"
    )
    rtol: Number | None = None
    atol: Number | None = None


class OutputResult(_Part):
    """One output of one case against the oracle: absolute errors, and the bound at the worst element."""

    name: str
    max_error: Value
    allowed: Value
    bad: int
    total: int
    nan: int = 0
    infinite: int = 0
    first_bad: list[BadElement]
    picture: list[Annotated[str, Field(pattern=r"^[.1-9#]+$")]] = Field(
        default=[],
        description="how much of each part of the array is wrong, its last axis across and all others down: "
        "'.' nothing, '1' to '9' tenths, '#' all; empty where nothing is wrong, or the output is no array",
    )
    rule: ComparisonRule = Field(default=ComparisonRule(method="bound"), description="how it was compared")


class SourceLines(_Part):
    """Some lines of a student's file."""

    first: int = Field(description="the number of the first of them, from 1")
    lines: list[str]


class GapRecord(_Part):
    """What the simulator lacks and a case has reached; see ``records/gaps.py``."""

    kind: GapKind
    subject: str = Field(description="the instruction, the name of the call, or why code cannot be run")
    feature: str = Field(default="", description="what people call the family of the instruction")
    function: str = ""
    file: str = ""
    line: int = 0
    source: SourceLines | None = Field(default=None, description="around the line, if it is the student's")


class CaseResult(_Part):
    """One case under every schedule of the device."""

    name: str
    group: str
    verdict: Verdict
    sizes: dict[str, int] = Field(default={}, description="of the inputs; none in a record of before")
    schedule: str | None = Field(
        default=None, description="the order of execution that went wrong, if program order did not"
    )
    ending: Ending = Ending.USUAL
    message: str = Field(default="", description="what happened where there are no numbers to show")
    file: str = Field(default="", description="of the line of Python that the message begins with, if any")
    line: int = Field(default=0, description="likewise, else 0")
    source: SourceLines | None = Field(
        default=None, description="lines around that line; of the first such case alone"
    )
    waived: str = Field(
        default="",
        description="why the case does not count, where the assignment does not hold it against anyone",
    )
    gaps: list[GapRecord] = Field(
        default=[], description="why it was not judged, or on a GPU not checked, if that is the reason"
    )
    outputs: list[OutputResult] = []
    diagnoses: list[Diagnosis] = Field(
        default=[], description="why it is wrong: of the case as a whole, then of its outputs"
    )
    old_diagnosis: str = Field(
        default="", description="the diagnosis of a record before 1.2, which has no others"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_any_version(cls, content: object) -> object:
        if not isinstance(content, dict):
            return content
        content = content if "diagnoses" in content else with_diagnoses(content)
        return content if "line" in content else with_place(content)

    @computed_field(description="all of the diagnoses in words")  # type: ignore[prop-decorator]
    @property
    def diagnosis(self) -> str:
        """Why it is wrong, for people."""
        return self.old_diagnosis or in_words(self.diagnoses)


class GroupResult(_Part):
    """A case group and its points."""

    name: str
    verdict: Verdict
    earned: Number
    possible: Number
    hidden_until: AwareDatetime | None = Field(
        default=None, description="when students may see its cases; until then, counts alone"
    )


class UnreachedRecord(_Part):
    """What no case has reached, so that it was not judged."""

    file: str
    line: int
    kernel: str = Field(description="that it is in; empty for host code")
    side: Side | Way = Field(
        description="what was never seen: of a branch or, in host code, a block of code; or where a number "
        "was to the constant that it is compared with"
    )
    constant: int | None = Field(default=None, description="that a number is compared with")


class CorrectnessResult(_Part):
    """All cases of a problem."""

    verdict: Verdict
    summary: str = Field(default="", description="one line for a student, where all cases say the same")
    groups: list[GroupResult] = []
    cases: list[CaseResult] = []
    unreached: list[UnreachedRecord] = Field(default=[], description="what was not judged, for staff")


class FindingRecord(_Part):
    """What a checker saw, once per place; one with a reason why it is ``waived`` costs nothing."""

    waived: str = ""
    severity: Severity = Severity.ERROR
    kind: str
    reason: str = Field(description="how it came about, in one word; see records/findings.py")
    kernel: str
    file: str
    line: int
    places: list[PlaceRecord] = Field(default=[], description="its own, then the other access's of a race")
    facts: dict[str, int | str] = Field(default={}, description="numbers and names that the sentence has")
    source: SourceLines | None = Field(default=None, description="around the line, if it is the student's")
    seen: str = Field(default="", description="the first part of the sentence, if it is of an old record")
    why: str = Field(default="", description="the second part, likewise")

    @model_validator(mode="before")
    @classmethod
    def _of_any_version(cls, content: object) -> object:
        is_old = isinstance(content, dict) and "message" in content and "reason" not in content
        return with_facts(content) if is_old and isinstance(content, dict) else content

    @property
    def values(self) -> dict[str, int | str]:
        """The facts by their names."""
        return self.facts

    @property
    def sentence(self) -> Sentence:
        """What it says, for people."""
        return Sentence(self.seen, self.why) if self.seen else sentence(self)

    @computed_field(description="the sentence, for programs that do not make their own of the facts")  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """What it says, in one text."""
        return str(self.sentence)


class CheckResult(_Part):
    """One checker over all cases."""

    tool: Tool
    verdict: Verdict
    findings: list[FindingRecord] = []


class TimedCase(_Part):
    """One shape that performance was measured on. Times are in microseconds."""

    name: str
    verdict: Verdict
    speedup: Number | None = None
    interval: tuple[Number, Number] | None = None
    baseline_us: Number | None = None
    yours_us: Number | None = None
    bandwidth_fraction: Number | None = None
    minimal_bytes: int | None = Field(default=None, description="that any implementation must move")
    floor: Number | None = Field(
        default=None, description="what the baseline differs from itself, as a log ratio"
    )
    method: str = ""
    others_us: dict[str, Number] = Field(
        default={}, description="times of other implementations, for information"
    )
    samples: dict[str, list[Number]] = Field(default={}, description="raw times, for an appeal")


class GpuCondition(_Part):
    """One look at the GPU; null where it does not say."""

    moment: str
    sm_mhz: Number | None = None
    most_sm_mhz: Number | None = None
    memory_mhz: Number | None = None
    celsius: Number | None = None
    watts: Number | None = None
    busy_percent: Number | None = None
    persistent: bool | None = Field(
        default=None, description="whether the driver stays loaded while nobody uses the GPU"
    )
    slowdowns: list[str] = Field(default=[], description="why the clocks were lower than they could be")
    others: int | None = Field(default=None, description="processes that used the GPU")


class PerformanceResult(_Part):
    """The speed verdict of a problem."""

    verdict: Verdict
    target: Number
    measure: Measure = Field(
        default="speedup",
        description="whether the speedup is over the unfused baseline, a streaming kernel, "
        "multiplications and additions alone, or the reference program",
    )
    speedup: Number | None = None
    interval: tuple[Number, Number] | None = None
    bandwidth_fraction: Number | None = None
    message: str = ""
    info: list[str] = Field(default=[], description="what does not count: other implementations, doubts")
    condition: list[GpuCondition] = Field(default=[], description="of the GPU, before and while it was timed")
    cases: list[TimedCase] = []

    @property
    def compared_with(self) -> str:
        """What the speedup is over, in words."""
        return {
            "speedup": "the unfused baseline",
            "share_of_limit": "the limit that memory sets",
            "share_of_arithmetic": "the limit that arithmetic sets",
            "over_reference": "the reference program",
        }[self.measure]


class DemandResult(_Part):
    """What the assignment asks for beside right results and speed."""

    measure: DemandMeasure = Field(description="what is counted or compared")
    verdict: Verdict
    most: Number | None = Field(default=None, description="the largest value that is right")
    least: Number | None = Field(
        default=None, description="the smallest value that is right, if there is no most"
    )
    points: Number = Field(description="that it earns, once every case is right")
    required: bool = Field(default=False, description="whether the problem earns nothing where it is not met")
    found: Number | None = None
    message: str = Field(default="", description="why nothing was found, or where")

    @property
    def said(self) -> str:
        """What was found, in one line."""
        asked = f"{bound(self.most, self.least)}{', or the problem earns nothing' if self.required else ''}"
        where = f" ({self.message})" if self.message else ""
        found = None if self.found is None else f"{figure(self.measure, self.found)}{where}, of {asked}"
        return f"{MEASURES[self.measure].words}: {found or self.message}"


class HintRecord(_Part):
    """Why a line would be slow, as the simulator counted it; never a speed."""

    kernel: str
    file: str
    line: int
    message: str
    source: SourceLines | None = Field(default=None, description="around the line, if it is the student's")


class TrustResult(_Part):
    """Whether the facts about a problem agree with each other."""

    verdict: Verdict
    reasons: list[str] = []


class ProblemResult(_Part):
    """Everything about one problem."""

    id: str
    title: str
    verdict: Verdict
    points: Points
    message: str = Field(default="", description="why nothing ran, where nothing ran")
    language: str = Field(
        default="cuda", description="what the kernels are written in, as far as that is known"
    )
    memory: Literal["device", "host"] = "device"
    notes: list[str] = Field(
        default=[], description="how the launcher differs from what was asked for, and is graded all the same"
    )
    build: BuildResult | None = None
    correctness: CorrectnessResult
    checks: list[CheckResult] = []
    performance: PerformanceResult
    demands: list[DemandResult] = []
    hints: list[HintRecord] = []
    trust: TrustResult
    printed: str = Field(default="", description="the end of what the student's code printed")

    @model_validator(mode="before")
    @classmethod
    def _of_any_version(cls, content: object) -> object:
        return with_remedy(content) if isinstance(content, dict) else content

    @property
    def written_in(self) -> str:
        """The language for a heading, where it is not CUDA; else empty."""
        return f", in {_TITLES.get(self.language, self.language)}" if self.language != "cuda" else ""


_TITLES = {
    "triton": "Triton",
    "load_inline": "CUDA C++ of load_inline",
    "cupy": "CUDA C++ of CuPy",
    "nvrtc": "CUDA C++ of NVRTC",
}
"""Languages by their names in headings."""


class Record(_Part):
    """One grading run."""

    version: str = Field(default=SCHEMA_VERSION, alias="schema")
    grader: GraderInfo
    assignment: str
    submission: SubmissionInfo
    seed: int
    started: str = Field(description="ISO 8601, UTC")
    seconds: Number
    device: DeviceInfo | None = Field(
        default=None, description="null where grading ended before one was chosen"
    )
    sandbox: SandboxInfo | None = None
    score: Points
    problems: list[ProblemResult]
    error: str | None = Field(
        default=None, description="a fault of the machine or of the grader that ended the run"
    )
    exit_code: int

    @property
    def not_graded(self) -> str:
        """Why nothing of the submission could be decided, if that is its own fault; else empty."""
        error = self.submission.error
        return f"not graded: {error}" if error and not self.score.decided else ""

    @property
    def errors(self) -> list[str]:
        """What ended the whole run, or kept it from beginning."""
        told = self.not_graded or self.submission.error
        return [error for error in (self.error, told) if error]


def value(number: float) -> Value:
    """``number`` as JSON can hold it; integers of any size stay exact."""
    if isinstance(number, int):
        return number
    if number != number:  # noqa: PLR0124 - NaN differs from itself
        return "NaN"
    if number in {float("inf"), float("-inf")}:
        return "Infinity" if number > 0 else "-Infinity"
    return float(number)


def write(record: Record, path: Path) -> None:
    """Write ``record`` to ``path`` so that a reader sees the old file or the whole new one.

    Raises:
        RecordError: the folder is missing or read-only, or the disk is full.
    """
    write_text(record.model_dump_json(by_alias=True, indent=1) + "\n", path)


def write_text(text: str, path: Path) -> None:
    """Replace ``path`` by ``text``; see ``write_bytes``."""
    write_bytes(text.encode(), path)


def write_bytes(content: bytes, path: Path) -> None:
    """Replace ``path`` by ``content`` in one step, or write there if it is no file: a device, a pipe.

    Raises:
        RecordError: the folder is missing or read-only, or the disk is full.
    """
    temporary: str | None = None
    try:
        if path.exists() and not path.is_file():  # /dev/stdout is a link to no path if it is a pipe
            path.write_bytes(content)
            return
        path = path.resolve()  # what a link leads to, not the link
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise RecordError(
            f"{path}: cannot be written: {error.strerror}. Name another file, or make room there."
        ) from error


def read(path: Path) -> Record:
    """The record in ``path``.

    Raises:
        RecordError: it cannot be read or is no record.
        NewerError: it is of a newer major version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{path}: no result record: {error}. {_REMEDY}") from error
    major = str(content.get("schema", "")).split(".")[0] if isinstance(content, dict) else ""
    if not major.isdecimal():
        raise RecordError(f"{path}: no result record: it has no schema version. {_REMEDY}")
    if int(major) > int(SCHEMA_VERSION.split(".", maxsplit=1)[0]):
        raise NewerError(
            f"{path}: written by a newer grader (schema {content['schema']}, this one reads "
            f"{SCHEMA_VERSION}). Update the grader."
        )
    try:
        return Record.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        path_in_record = ".".join(map(str, first["loc"]))
        raise RecordError(
            f"{path}: not a valid result record: {path_in_record}: {first['msg']}. {_REMEDY}"
        ) from error


def json_schema() -> str:
    """The JSON schema of the record, as text."""
    return json.dumps(Record.model_json_schema(by_alias=True), indent=1) + "\n"


if __name__ == "__main__":
    write_text(json_schema(), SCHEMA_FILE)
