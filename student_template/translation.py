"""Given: the sentences that the model learns to translate, and how they become tensors.

A line of the model's text is ``<source><eos_de><target><eos_en><pad>...``, and only the target counts in
the loss. Sentences come from IWSLT14 German to English, or from ``synthetic``: a pair of made-up languages
with what makes translation more than a word list: another word order, agreement, endings that depend on
gender and number, names that occur once or never before.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

SYNTHETIC = "synthetic"
END_SOURCE, END_TARGET, PADDING = "<eos_de>", "<eos_en>", "<pad>"
SPECIAL = (PADDING, END_SOURCE, END_TARGET)  # their ids are 0, 1, 2

Pair = tuple[str, str]


def load(data: str, sentences: int, seed: int) -> list[Pair]:
    """Up to ``sentences`` pairs of source and target.

    Args:
        data: ``synthetic``; a folder with ``train.tags.de-en.de`` and ``.en`` of IWSLT14; a file of rows
            ``{"translation": {"de": ..., "en": ...}}`` (.jsonl, .json or .parquet); or the name of such a
            data set on the Hugging Face hub. The last two need the package ``datasets``.
        sentences: how many at most.
        seed: of the synthetic ones.

    Raises:
        ValueError: the files are not what they should be.
    """
    if data == SYNTHETIC:
        return list(synthetic(sentences, seed))
    path = Path(data)
    return (read_tagged(path) if path.is_dir() else read_rows(data))[:sentences]


def read_tagged(folder: Path) -> list[Pair]:
    """The training text of IWSLT14 as it is handed out: lines that match, among lines of tags."""
    sides = []
    for language in ("de", "en"):
        file = folder / f"train.tags.de-en.{language}"
        if not file.is_file():
            raise ValueError(f"{file} is missing. Unpack de-en.tgz of IWSLT14 and name its folder.")
        lines = file.read_text(encoding="utf-8").splitlines()
        sides.append([text for line in lines if (text := _sentence(line)) is not None])
    source, target = sides
    if len(source) != len(target):
        raise ValueError(
            f"{folder} holds {len(source)} German and {len(target)} English lines: do they belong together?"
        )
    return [pair for pair in zip(source, target, strict=True) if all(pair)]


def _sentence(line: str) -> str | None:
    """The text of a line; None if it is about the talk and not of it."""
    line = line.strip()
    for tag in ("title", "description"):
        if line.startswith(f"<{tag}>"):
            return line.removeprefix(f"<{tag}>").removesuffix(f"</{tag}>").strip()
    return None if line.startswith("<") else line


def read_rows(data: str) -> list[Pair]:
    """Rows of a file or of a data set of the hub."""
    import datasets  # noqa: PLC0415 - only these need it, and it takes seconds

    kind = {".jsonl": "json", ".json": "json", ".parquet": "parquet"}.get(Path(data).suffix)
    rows: Any = (
        datasets.load_dataset(kind, data_files=data, split="train")
        if kind
        else datasets.load_dataset(data, split="train")
    )
    if "translation" not in rows.column_names:
        raise ValueError(
            f'{data} has the columns {rows.column_names}; expected "translation" with "de" and "en"'
        )
    return [(row["de"], row["en"]) for row in rows["translation"]]


@dataclass(frozen=True)
class _Noun:
    source: str
    target: str
    gender: int


_SYLLABLES = [
    first + vowel + last for first in "bdfgklmnprstvz" for vowel in "aeiou" for last in ("", "n", "r", "l")
]
_ARTICLES = (("der", "die"), ("dia", "die"), ("dos", "die"))  # by gender, one and many
_ENDINGS = (("er", "en"), ("e", "en"), ("es", "en"))


class _Languages:
    """Two lexicons whose words match, drawn from a seed. Words are as rare as Zipf's law has it."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._taken: set[str] = set()
        self.nouns = [_Noun(self._word(2), self._word(2), self._random.randrange(3)) for _ in range(2400)]
        self.verbs = [(self._word(2), self._word(2)) for _ in range(900)]
        self.adjectives = [(self._word(2), self._word(2)) for _ in range(700)]
        self.adverbs = [(self._word(1), self._word(2)) for _ in range(60)]

    def _word(self, syllables: int) -> str:
        while True:
            word = "".join(self._random.choice(_SYLLABLES) for _ in range(syllables))
            if word not in self._taken:
                self._taken.add(word)
                return word


def synthetic(count: int, seed: int) -> Iterator[Pair]:
    """``count`` pairs; the same seed gives the same sentences."""
    languages = _Languages(seed)
    draw = random.Random(seed + 1)
    ranks = {
        len(words): list(accumulate(1 / (rank + 3) for rank in range(len(words))))
        for words in (languages.nouns, languages.verbs, languages.adjectives, languages.adverbs)
    }

    def pick(words: Sequence[Any]) -> Any:
        return draw.choices(words, cum_weights=ranks[len(words)])[0]

    def phrase() -> tuple[str, str, bool]:
        """A noun phrase, and whether it is plural. The adjective stands behind the noun in the target."""
        if draw.random() < 0.12:
            name = "".join(draw.choice(_SYLLABLES) for _ in range(3)).capitalize()
            return name, name, False
        noun, many = pick(languages.nouns), draw.random() < 0.4
        source = [_ARTICLES[noun.gender][many]]
        target = ["le" if not many else "les", noun.target + ("s" if many else "")]
        if draw.random() < 0.4:
            adjective = pick(languages.adjectives)
            source.append(adjective[0] + _ENDINGS[noun.gender][many])
            target.append(adjective[1])
        source.append(noun.source.capitalize() + ("en" if many else ""))
        return " ".join(source), " ".join(target), many

    def clause(verb_at: str = "second") -> tuple[str, str]:
        """A clause; only the source moves its verb."""
        subject, target_subject, many = phrase()
        thing, target_thing, _ = phrase()
        verb = pick(languages.verbs)
        adverb = pick(languages.adverbs) if draw.random() < 0.3 else ("", "")
        source_verb, target_verb = verb[0] + ("en" if many else "t"), verb[1] + ("" if many else "s")
        negated = draw.random() < 0.15
        behind = " nit" if negated else ""
        middle = f"{adverb[0]} {thing}".strip()
        source = {
            "first": f"{source_verb} {subject} {middle}{behind}",
            "second": f"{subject} {source_verb} {middle}{behind}",
            "last": f"{subject} {middle}{behind} {source_verb}",
        }[verb_at]
        before = "no " if negated else ""
        return source, f"{target_subject} {before}{target_verb} {target_thing} {adverb[1]}".strip()

    for _ in range(count):
        kind = draw.random()
        if kind < 0.15:
            question = clause("first")
            yield f"{question[0][0].upper()}{question[0][1:]}?", f"est que {question[1]}?"
        elif kind < 0.45:
            main, other = clause(), clause("last")
            yield f"{main[0]}, weil {other[0]}.", f"{main[1]} porque {other[1]}."
        else:
            main = clause()
            yield f"{main[0]}.", f"{main[1]}."


def train_tokenizer(pairs: Sequence[Pair], vocabulary: int) -> Any:
    """A byte-level BPE tokenizer of at most ``vocabulary`` tokens, learnt from the text of both languages."""
    from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415 - data alone can be read without

    tokenizer = ByteLevelBPETokenizer()
    text = (side for pair in pairs for side in pair)
    tokenizer.train_from_iterator(
        text, vocab_size=vocabulary, special_tokens=list(SPECIAL), show_progress=False
    )
    return tokenizer


@dataclass(frozen=True)
class Text:
    """Encoded lines on one device.

    Attributes:
        tokens: [N, length + 1]; inputs are all but the last, targets all but the first.
        mask: [N, length], 0 where an input is and -inf at padding: what attention adds to the scores.
        counted: [N, length], 1 where the target token belongs to the target sentence.
        count: tokens that are no padding, of all inputs.
    """

    tokens: Tensor
    mask: Tensor
    counted: Tensor
    count: int


def encode(pairs: Sequence[Pair], tokenizer: Any, length: int, device: str) -> Text:
    """``pairs`` as lines of ``length + 1`` tokens, cut where they are longer.

    Lines in which nothing of the target is left are dropped.
    """
    sources = tokenizer.encode_batch([source for source, _ in pairs])
    targets = tokenizer.encode_batch([target for _, target in pairs])
    end_source, end_target = SPECIAL.index(END_SOURCE), SPECIAL.index(END_TARGET)
    lines, begins = [], []
    for source, target in zip(sources, targets, strict=True):
        if len(source.ids) < length:
            line = [*source.ids, end_source, *target.ids, end_target][: length + 1]
            lines.append(line + [SPECIAL.index(PADDING)] * (length + 1 - len(line)))
            begins.append(len(source.ids))
    tokens = torch.tensor(lines)
    real = tokens != SPECIAL.index(PADDING)
    mask = torch.zeros(real[:, :-1].shape).masked_fill(~real[:, :-1], float("-inf"))
    counted = real[:, 1:] & (torch.arange(length) >= torch.tensor(begins)[:, None])
    count = int(real[:, :-1].sum())
    return Text(tokens.to(device), mask.to(device), counted.float().to(device), count)
