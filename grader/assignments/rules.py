"""The rules of an assignment: points, targets and limits as typed data, read from ``assignment.toml``.

Every key of the file is a field here, with its type, default and meaning; any other key is refused with the
nearest valid name.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from grader.records.demands import DemandMeasure
from grader.records.file_names import is_pattern
from grader.records.record import KernelMeasure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_UNITS = frozenset({"s", "ms", "us"})  # groups of a region
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Points = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Attempts = Literal["last", "best"]
LanguageName = Literal["cuda", "triton", "load_inline", "cupy", "nvrtc"]


class AssignmentError(Exception):
    """An assignment that does not exist or is wrong; the message names file, key and remedy."""


class _Table(BaseModel):
    """A table of the TOML file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class WorkLimits(_Table):
    """What compiling and running one submission may use."""

    compile_seconds: Positive = Field(default=180.0, description="processor time to compile one file")
    compile_memory_gib: Positive = Field(default=6.0, description="memory to compile one file")
    run_seconds_gpu: Positive = Field(default=10.0, description="device time of one call on a GPU")
    run_seconds_sim: Positive = Field(
        default=60.0, description="processor time of the host code of one call on the simulator"
    )
    sim_instructions: int = Field(
        default=16_000_000, gt=0, description="warp instructions of one call on the simulator, at least"
    )
    sim_instructions_per_element: int = Field(
        default=512, ge=0, description="and so many more for each element of the call's largest array"
    )
    sim_instructions_per_row: int = Field(
        default=16_384,
        ge=0,
        description="in all, if warps end or pass barriers: four times the above, and so many for each row",
    )
    host_memory_gib: Positive = Field(
        default=2.0, description="host memory of the process that runs the kernels"
    )
    processes: int = Field(default=64, gt=0, description="processes and threads at a time")
    output_mib: float = Field(
        default=1.0, gt=0, le=1, description="what one call of the student's code may print; a pipe holds it"
    )
    scratch_mib: Positive = Field(default=256.0, description="files written while running")
    leaks_allowed: bool = Field(
        default=True,
        description="whether every call of a launcher may leave device memory behind that nobody frees; "
        "false: the group memory and concurrency fails, as by a race",
    )


class Step(_Table):
    """A speed below the target that earns some of the points."""

    at: Positive = Field(description="speedup, or share of the limit, from which on it counts")
    points: Points = Field(description="performance points that it earns in all")


class Demand(_Table):
    """Something beside right results and speed, which earns its points as a whole or not at all."""

    measure: DemandMeasure = Field(
        description="code: bytes of machine code in the library over those of the reference's; spread: the "
        "largest over the smallest speedup of the cases that are timed; headers: includes of those in names. "
        "The simulator counts the others: launches in one call; different kernels in all cases; accesses to "
        "shared memory; atomic operations; and sectors of global memory over the fewest that would do"
    )
    most: Points | None = Field(default=None, description="the largest value that is right; of headers 0")
    least: Positive | None = Field(
        default=None, description="instead of most, the smallest value that is right"
    )
    names: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="of headers: folders or files, such as thrust or cooperative_groups.h",
    )
    points: Points = Field(default=0.0, description="that it earns, once every case is right")
    required: bool = Field(default=False, description="whether the problem earns nothing where it is not met")

    @model_validator(mode="before")
    @classmethod
    def _without_headers(cls, content: object) -> object:
        none = isinstance(content, dict) and content.get("measure") == "headers" and "least" not in content
        return {"most": 0.0, **content} if none and isinstance(content, dict) else content

    @model_validator(mode="after")
    def _complete(self) -> Demand:
        if (self.most is None) == (self.least is None):
            raise ValueError(
                f"say of {self.measure} either most, the largest right value, or least, the smallest"
            )
        if bool(self.names) != (self.measure == "headers"):
            raise ValueError('names are those of headers: { measure = "headers", names = ["thrust", "cub"] }')
        if not self.points and not self.required:
            raise ValueError(f"{self.measure} is worth nothing: give it points, or required = true")
        return self


class ProgramTable(_Table):
    """A program problem that needs no Python: what is built, and a folder of inputs and expected outputs."""

    files: tuple[str, ...] = Field(
        min_length=1,
        strict=False,
        description="the student's files that are compiled; headers that they include come along. Behind the "
        "first one there may be patterns, such as *.cu, for whatever further files lie beside it",
    )
    cases: str = Field(
        default="cases",
        description="folder of the cases, from this file's: a folder for each, with the files args, stdin "
        "and exit where they are needed, expected.SUFFIX or a folder expected, and what the program reads",
    )
    libwb: Literal["", "vector", "integral_vector", "matrix", "image"] = Field(
        default="",
        description="of a lab that is written with libwb: the type of its output. The folders of cases are "
        "then datasets, with input0.raw and so on and output.raw, and the header wb.h is there",
    )
    output: str = Field(
        default="stdout",
        description="the file that expected.SUFFIX is compared with; stdout is what the program prints",
    )
    compare: Literal["words", "exact"] = Field(
        default="words",
        description="of text: word by word, with numbers compared as numbers, or exactly",
    )
    rtol: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="a number may differ from e, which is expected, by atol + rtol |e|"
    )
    atol: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(default=0.0, description="see rtol")
    raw: Literal["", "float32", "float64", "int32", "int64", "uint8"] = Field(
        default="", description="element type of files whose names end in .raw, .bin or .dat"
    )
    ignore: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="regular expressions: lines of text in which one is found, such as times, do not count",
    )
    given: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="files of the assignment, by path from its folder, that lie beside the student's when "
        "these are compiled; one that ends in .cu, .cpp, .cc or .c is compiled, too",
    )
    flags: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="options of nvcc, such as -DN=16 or -std=c++20; the grader itself says for which GPU",
    )
    libraries: tuple[Literal["thrust", "cub", "cublas", "curand", "cusparse"], ...] = Field(
        default=("thrust", "cub"),
        strict=False,
        description="the libraries of CUDA that the student's files may use",
    )
    warnings: Literal["shown", "error"] = Field(
        default="shown", description="whether a warning of nvcc is an error, so that nothing is graded"
    )
    checker: str = Field(
        default="",
        description="name of a Python file of the assignment, whose function check(case, run, outputs) "
        "returns what is wrong, or an empty text; cases then need no expected output",
    )
    on: dict[str, Literal["sim", "gpu"]] = Field(
        default_factory=dict,
        description="by group of cases, the only kind of device that runs them, such as large = 'gpu'",
    )
    timed: str = Field(
        default="",
        description="folder of further cases, like those of cases, in which the speed is measured on a GPU",
    )
    region: str = Field(
        default="",
        description="regular expression for the time that the program prints of what counts, in a group "
        "named s, ms or us, such as '(?P<ms>[0-9.]+) ms'; without it, the time of the whole process counts",
    )
    make: str = Field(
        default="",
        description="target of a Makefile among files or given, which is the program: make then calls nvcc",
    )
    cmake: str = Field(
        default="", description="the same of a CMakeLists.txt: the name of what add_executable makes"
    )
    project: str = Field(
        default="",
        description="folder of the assignment whose files are given, by their paths from there; a name in "
        "files may then have a folder of it, too, in which the student's file of that name is put",
    )
    kernels: bool = Field(
        default=True,
        description="whether a run counts only if it launches a kernel, as the simulator sees it",
    )

    @model_validator(mode="after")
    def _valid(self) -> ProgramTable:
        if is_pattern(self.files[0]):
            raise ValueError(
                f"files: name a file before the pattern {self.files[0]!r}, such as that with main"
            )
        for pattern in self.ignore:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"ignore: {pattern!r} is no regular expression: {error}") from error
        if self.region and not _UNITS.intersection(_groups(self.region)):
            raise ValueError(f"region: {self.region!r} needs a group named s, ms or us: (?P<ms>[0-9.]+)")
        names = {name.rpartition("/")[2] for name in (*self.files, *self.given)}
        if self.make and self.cmake:
            raise ValueError("make and cmake: a program is built by one of them")
        if self.make and not self.project and not names & {"Makefile", "makefile", "GNUmakefile"}:
            raise ValueError(f"make = {self.make!r} needs a Makefile in files, or in given")
        if self.cmake and not self.project and "CMakeLists.txt" not in names:
            raise ValueError(f"cmake = {self.cmake!r} needs a CMakeLists.txt in files, given or project")
        for flag in self.flags:
            if re.match(r"-?-(arch|gencode|gpu-|generate-code|cudart|o$|c$|ptx|output)", flag):
                raise ValueError(f"flags: {flag} is the grader's to choose: leave it out")
        return self


def _groups(pattern: str) -> Mapping[str, int]:
    try:
        return re.compile(pattern).groupindex
    except re.error as error:
        raise ValueError(f"region: {pattern!r} is no regular expression: {error}") from error


class Band(_Table):
    """A time, as a multiple of the reference's, up to which a program earns points."""

    up_to: Positive = Field(description="times the reference's time")
    points: Points = Field(description="performance points that it earns in all")


def _by_speedup(content: Mapping[str, Any], bands: Sequence[Any]) -> Mapping[str, Any]:
    """The entry of a problem with performance, target and steps as its bands say, where these are some."""
    try:
        best, *others = [Band.model_validate(band) for band in bands]
    except ValueError:  # there are none, or pydantic tells later what is wrong with them
        return content
    steps = [Step(at=1 / band.up_to, points=band.points) for band in reversed(others)]
    return {**content, "performance": best.points, "target": 1 / best.up_to, "steps": steps, "bands": ()}


class ProblemPoints(_Table):
    """What one problem of the assignment is worth."""

    id: str = Field(description="name of the problem's module in the folder problems")
    title: str = Field(description="what the reports call it")
    correctness: Points = Field(
        description="points for right results, in proportion to the case groups passed"
    )
    performance: Points = Field(
        default=0.0, description="points for speed: times min(1, speedup / target), unless there are steps"
    )
    target: Positive = Field(
        description="speedup that earns all performance points; where there are none, it need not be said"
    )
    program: ProgramTable | None = Field(
        default=None,
        description="of a program problem that has no module in the folder problems: what it is",
    )
    measure: KernelMeasure = Field(
        default="speedup",
        description="what the speedup is over: the unfused baseline; a streaming kernel of as many bytes, so "
        "that it is the share of the limit that memory sets; or the multiplications and additions of its "
        "matrix products and convolutions alone, so that it is the share of the limit that arithmetic sets; "
        "that of a program is always over the reference",
    )
    host_target: Positive | None = Field(
        default=None,
        description="target of a launcher that takes host pointers, whose time is mostly copies; the same if "
        "there is none",
    )
    language_targets: dict[LanguageName, Positive] = Field(
        default_factory=dict,
        description="by language, targets of submissions in one that cannot be as fast as others",
    )
    gpu_targets: dict[str, Positive] = Field(
        default_factory=dict,
        description="by a word of a GPU's name, as H100, the target on such a GPU; host_target and "
        "language_targets change by the same factor there",
    )
    steps: tuple[Step, ...] = Field(
        default=(),
        strict=False,
        description="speeds below the target that earn a part of the points, in rising order: a speed "
        "between two of them earns what the slower one does, and one below the first nothing",
    )
    bands: tuple[Band, ...] = Field(
        default=(),
        strict=False,
        description="the same in times of the reference, in rising order, instead of performance, target and "
        "steps: the first earns all, and one slower than the last nothing",
    )
    demands: tuple[Demand, ...] = Field(
        default=(), strict=False, description="what earns points beside right results and speed"
    )
    per_output: bool = Field(
        default=False,
        description="whether the outputs share the points of each case group, so that a right one keeps its "
        "part where others are wrong",
    )
    languages: tuple[LanguageName, ...] = Field(
        default=(),
        strict=False,
        description="what its kernels may be written in, where that differs from the assignment's languages",
    )
    graded: bool = Field(
        default=True, description="false: not part of this release's grading, its points stay undecided"
    )

    @model_validator(mode="before")
    @classmethod
    def _without_speed(cls, content: object) -> object:
        if isinstance(content, dict) and isinstance(content.get("bands"), list | tuple):
            content = _by_speedup(content, content["bands"])
        untimed = isinstance(content, dict) and not content.get("performance")
        return {"target": 1.0, **content} if untimed and isinstance(content, dict) else content

    @model_validator(mode="after")
    def _rising(self) -> ProblemPoints:
        stairs = [*((step.at, step.points) for step in self.steps), (self.target, self.performance)]
        for (at, points), (next_at, next_points) in pairwise(stairs):
            if at >= next_at or points >= next_points:
                raise ValueError(
                    f"{points:g} points at {at:g} stand before {next_points:g} at {next_at:g}. Each step has "
                    "to be faster and worth more than the one before it, and the target (all "
                    f"{self.performance:g} at {self.target:g}) than the last."
                )
        return self

    @property
    def possible(self) -> float:
        """All points of this problem."""
        return self.correctness + self.performance + sum(demand.points for demand in self.demands)

    def with_host_pointers(self) -> ProblemPoints:
        """The points and targets for a launcher that takes host pointers."""
        return self._with_target(self.host_target or self.target)

    def in_language(self, language: str) -> ProblemPoints:
        """The points and targets for a submission in ``language``."""
        targets = (target for name, target in self.language_targets.items() if name == language)
        return self._with_target(next(targets, self.target))

    def on_gpu(self, name: str) -> ProblemPoints:
        """The points and targets on the GPU of this name, as the driver tells it: "NVIDIA H100 80GB HBM3"."""
        words = name.lower().replace("-", " ").split()
        targets = (target for word, target in self.gpu_targets.items() if word.lower() in words)
        factor = next(targets, self.target) / self.target
        changed = {
            "host_target": self.host_target and factor * self.host_target,
            "language_targets": {
                language: factor * target for language, target in self.language_targets.items()
            },
        }
        return self._with_target(factor * self.target).model_copy(update=changed)

    def _with_target(self, target: float) -> ProblemPoints:
        """The points with another target; each step stays the same share of the target."""
        steps = tuple(Step(at=step.at * target / self.target, points=step.points) for step in self.steps)
        return self.model_copy(update={"target": target, "steps": steps})


class Deadline(_Table):
    """The date until which work is handed in, and the points that being late costs.

    Records keep the points before that.
    """

    due: AwareDatetime = Field(
        strict=False,
        description="date and time with their distance from UTC, such as 2026-12-01T23:59:00+01:00",
    )
    grace_minutes: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0.0, description="so much later costs nothing; from then on days count from the deadline"
    )
    per_day: Share = Field(description="share of the earned points that each day begun takes off")
    most: Share = Field(default=1.0, description="share that is taken off at most")

    @model_validator(mode="after")
    def _consistent(self) -> Deadline:
        if self.most < self.per_day:
            raise ValueError(f"most ({self.most:g}) is less than what one day takes off ({self.per_day:g})")
        return self

    def days_late(self, moment: datetime) -> int:
        """The days that have begun between the deadline and ``moment``; 0 within the time of grace."""
        late = moment - self.due
        return 0 if late <= timedelta(minutes=self.grace_minutes) else ceil(late / timedelta(days=1))

    def taken_off(self, days: int) -> float:
        """The share of the earned points that is taken off what is so many days late."""
        return min(self.most, days * self.per_day)


class Hidden(_Table):
    """Case groups of which students see counts until a date; points and staff's pages are not different."""

    groups: tuple[str, ...] = Field(min_length=1, strict=False, description="names of case groups")
    until: AwareDatetime = Field(
        strict=False, description="date and time with their distance from UTC, as of the deadline"
    )


class Waiver(_Table):
    """What is not held against a submission in some cases of a problem: those that meet any condition."""

    problem: str = Field(description="id of the problem")
    reason: str = Field(description="why, for the reports")
    findings: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="kinds of findings that cost nothing there; without any, those cases are not run",
    )
    numbers: bool = Field(
        default=False, description="whether wrong numbers cost nothing there either, nor a launcher's end"
    )
    not_multiple_of: dict[str, Annotated[int, Field(gt=0)]] = Field(
        default_factory=dict, description="condition: the size named is no multiple of the number"
    )
    above: dict[str, int] = Field(
        default_factory=dict, description="condition: the size named is above the number"
    )
    contents: tuple[str, ...] = Field(
        default=(), strict=False, description="condition: the case has one of these distributions of values"
    )

    @model_validator(mode="after")
    def _conditional(self) -> Waiver:
        if not (self.not_multiple_of or self.above or self.contents):
            raise ValueError("no condition. Name some of: not_multiple_of, above, contents.")
        return self

    @property
    def excludes(self) -> bool:
        """Whether the cases that it covers are not run."""
        return not self.findings

    def covers(self, sizes: Mapping[str, int], content: str) -> bool:
        """Whether a case of the problem meets a condition.

        Args:
            sizes: the sizes of the case by name.
            content: its distribution of values.
        """
        odd = any(name in sizes and sizes[name] % number for name, number in self.not_multiple_of.items())
        large = any(sizes.get(name, 0) > number for name, number in self.above.items())
        return odd or large or content in self.contents


class Rules(_Table):
    """What ``assignment.toml`` says of a set of problems."""

    id: str = Field(description="stable name; that of the folder where the assignment is an installed one")
    title: str = Field(description="what the reports call it")
    extends: str | None = Field(
        default=None,
        description="id of an installed assignment, or the folder of another, from this file's. This one has "
        "its problems, template, reference and limits where it says nothing else",
    )
    template: str = Field(
        default="student_template", description="folder of what students begin with, from this file's"
    )
    reference: str = Field(default="reference", description="folder of the reference, from this file's")
    languages: tuple[LanguageName, ...] = Field(
        default=("cuda",),
        min_length=1,
        strict=False,
        description="what kernels may be written in: cuda, in the problem's file, and triton, in one of its "
        "name with .py; of several files that answer a problem, that of the last language counts; a problem "
        "may name its own. Module problems take all but cuda",
    )
    group_points: dict[str, Points] = Field(
        default_factory=dict,
        description="points, of each problem's correctness points, of the case groups named here; "
        "the other groups share the rest equally",
    )
    allowed_imports: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="regular expressions of functions and libraries that a built library may use beyond the "
        "import policy; those of C++ by their mangled names, which nm -D shows",
    )
    hidden: Hidden | None = Field(
        default=None, description="case groups of which students see counts alone, and until when"
    )
    deadline: Deadline | None = Field(
        default=None, description="when submissions are late, and what it costs; without it, none is"
    )
    attempts: Attempts = Field(
        default="last", description="which of several submissions of a student counts in the gradebook"
    )
    limits: WorkLimits = Field(default=WorkLimits(), description="limits of compiling and running")
    problems: tuple[ProblemPoints, ...] = Field(min_length=1, strict=False, description="in order of reports")
    waivers: tuple[Waiver, ...] = Field(
        default=(),
        strict=False,
        description="what is not held against a submission; the first that fits counts",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Rules:
        ids = [problem.id for problem in self.problems]
        if twice := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"problem {min(twice)!r} stands twice")
        for waiver in self.waivers:
            if waiver.problem not in ids:
                raise ValueError(f"a waiver names {waiver.problem!r}.{nearest(waiver.problem, ids)}")
        for pattern in self.allowed_imports:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"allowed_imports: {pattern!r} is no regular expression: {error}") from error
        named = sum(self.group_points.values())
        for problem in self.problems:
            allowed = self.languages_of(problem.id)
            for language in problem.language_targets:
                if language not in allowed:
                    raise ValueError(
                        f"language_targets of {problem.id!r} names {language}, in which it cannot be "
                        f"answered: its languages are {', '.join(allowed)}"
                    )
            if named > problem.correctness:
                raise ValueError(
                    f"group_points sum to {named:g}, more than the {problem.correctness:g} "
                    f"correctness points of {problem.id!r}"
                )
        return self

    def waiver(self, problem_id: str, sizes: Mapping[str, int], content: str) -> Waiver | None:
        """The first waiver that covers a case of a problem; see ``Waiver.covers``."""
        fitting = (
            waiver
            for waiver in self.waivers
            if waiver.problem == problem_id and waiver.covers(sizes, content)
        )
        return next(fitting, None)

    def languages_of(self, problem_id: str) -> tuple[LanguageName, ...]:
        """The languages that the kernels of a problem may be written in."""
        return self.problem(problem_id).languages or self.languages

    @property
    def every_language(self) -> tuple[LanguageName, ...]:
        """All languages that kernels of at least one problem may be written in."""
        named = (name for problem in self.problems for name in self.languages_of(problem.id))
        return tuple(dict.fromkeys(named))

    def problem(self, problem_id: str) -> ProblemPoints:
        """The entry of one problem.

        Raises:
            AssignmentError: the assignment has no such problem.
        """
        for problem in self.problems:
            if problem.id == problem_id:
                return problem
        ids = [problem.id for problem in self.problems]
        raise AssignmentError(f"{self.id} has no problem {problem_id!r}.{nearest(problem_id, ids)}")


def tables(path: Path) -> dict[str, Any]:
    """Read the tables of a TOML file.

    Raises:
        AssignmentError: the file cannot be read or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors mark UTF-8 at its beginning
    except OSError as error:
        raise AssignmentError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AssignmentError(f"{path}: not TOML: {error}") from error


def merged(base: Mapping[str, Any], extension: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of an assignment over those of the one that it extends.

    ``extension`` says which problems there are and in which order; what it leaves out of a problem's entry,
    or of ``limits``, is as in ``base``. Any other key that it has replaces that of ``base``.
    """
    entries = {entry["id"]: entry for entry in base["problems"]}
    tables = {**base, **extension, "limits": {**base.get("limits", {}), **extension.get("limits", {})}}
    tables["problems"] = [
        {**entries.get(entry.get("id"), {}), **entry} for entry in extension.get("problems", base["problems"])
    ]
    return tables


def parse(tables: Mapping[str, Any], path: Path) -> Rules:
    """The rules that are in the tables ``tables`` of the file at ``path``.

    Raises:
        AssignmentError: there is a wrong, missing or unknown key.
    """
    try:
        return Rules.model_validate(tables)
    except ValidationError as error:
        faults = "; ".join(
            _explain(detail["loc"], detail["type"], detail["msg"]) for detail in error.errors()
        )
        raise AssignmentError(f"{path}: {faults}") from error


def _explain(where: tuple[int | str, ...], kind: str, message: str) -> str:
    """One line for one fault of a file; ``where`` is the path of keys to it."""
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")
    if kind == "extra_forbidden":
        return f"unknown key {key!r}.{nearest(str(where[-1]), list(_table_at(where).model_fields))}"
    if kind == "timezone_aware":
        return f"{key}: it has no distance from UTC. Write it as 2026-12-01T23:59:00+01:00."
    if kind == "missing":
        return f"missing key {key!r}"
    message = message.removeprefix("Value error, ")  # of pydantic, for what a validator here says itself
    return f"{key}: {message}" if key else message


def _table_at(where: tuple[int | str, ...]) -> type[_Table]:
    """The model whose key the last part of ``where`` is."""
    table: type[_Table] = Rules
    for part in where[:-1]:
        if isinstance(part, str):
            annotation = table.model_fields[part].annotation
            candidates = (annotation, *get_args(annotation))
            table = next(kind for kind in candidates if isinstance(kind, type) and issubclass(kind, _Table))
    return table


def nearest(name: str, valid: list[str]) -> str:
    """The end of a message about a name that does not exist."""
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else f" Valid: {', '.join(valid)}."
