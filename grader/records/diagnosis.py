"""Why the numbers of a case are wrong, as data; reports make the words and rank by certainty."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

UNKNOWN = "no known cause"
_QUESTION = re.compile(r"(?P<what>[^?]*?): (?P<ask>[^?]*\?.*)", re.DOTALL)
_NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")


class Certainty(StrEnum):
    """How much a diagnosis says, the most first."""

    STATED = "stated"
    ASKED = "asked"  # it is a question
    PLACED = "placed"  # no more than where wrong elements are
    UNKNOWN = "unknown"

    @property
    def doubt(self) -> int:
        """How little it says, from 0."""
        return tuple(Certainty).index(self)


def theme(text: str) -> str:
    """A text without its numbers, so that it is equal for all who made the same mistake."""
    return _NUMBER.sub("N", text)


@dataclass(frozen=True)
class Diagnosis:
    """What is likely wrong with some outputs of a case, or with the case as a whole.

    Attributes:
        kind: of the mistake, equal for all who made it: the name of a rule, or the text of a typical bug.
        cause: what is wrong.
        remedy: what to look into, a question.
        certainty: how much it says.
        outputs: which have it; none where it is about the case, or about its only output.
        evidence: what else there is to say of the cause.
        place: where the wrong elements are.
        unwritten: whether elements were never written, as no thread has them.
        file: of the line that is to blame, where one is known.
        line: likewise, else 0.
    """

    kind: str
    cause: str
    remedy: str = ""
    certainty: Certainty = Certainty.STATED
    outputs: tuple[str, ...] = ()
    evidence: str = ""
    place: str = ""
    unwritten: bool = False
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """The whole, without the names of the outputs."""
        statement = f"{self.cause}: {self.remedy}" if self.remedy else self.cause
        return "; ".join(filter(None, (statement, self.evidence, self.place)))


NO_CAUSE = Diagnosis("unknown", UNKNOWN, certainty=Certainty.UNKNOWN)


def by_author(text: str) -> Diagnosis:
    """What the author of a formula says of who follows it: ``what is wrong``, or ``what: a question?``."""
    parts = _QUESTION.fullmatch(text)
    cause, remedy = (parts["what"], parts["ask"]) if parts else (text, "")
    return Diagnosis(theme(text), cause, remedy, Certainty.ASKED if "?" in text else Certainty.STATED)


def as_question(kind: str, cause: str, question: str) -> Diagnosis:
    """One that is a question."""
    return Diagnosis(kind, cause, question, Certainty.ASKED)


def in_words(diagnoses: Sequence[Diagnosis]) -> str:
    """All that is said of a case: of the whole first, then of each output."""
    of_case = [str(diagnosis) for diagnosis in diagnoses if not diagnosis.outputs]
    of_outputs = [f"{' and '.join(each.outputs)}: {each}" for each in diagnoses if each.outputs]
    return "; ".join(filter(None, (*of_case, ". ".join(of_outputs))))
