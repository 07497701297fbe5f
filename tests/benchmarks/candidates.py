"""Versions of the reference that may be faster: each is a few edits, with what they are expected to change.

None of them is in ``reference/`` before it has been measured. ``kernels.py`` times them beside the reference;
the outcome goes into docs/kernels.md, and an edit that won into the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "reference"


@dataclass(frozen=True)
class Candidate:
    """Edits of one file: each pair's first text occurs there exactly once and becomes the second.

    Attributes:
        id: its name.
        problem: what it may speed up.
        edits: pairs of old and new text.
        prediction: what will happen on an H100, and why.
        file: of the reference.
    """

    id: str
    problem: str
    edits: tuple[tuple[str, str], ...]
    prediction: str
    file: str = "layernorm_kernel.cu"

    def text(self) -> str:
        """The edited file.

        Raises:
            ValueError: a text does not occur exactly once.
        """
        text = (REFERENCE / self.file).read_text()
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.id}: {old!r} occurs {text.count(old)} times in {self.file}")
            text = text.replace(old, new)
        return text


_SOFTMAX, _LAYERNORM = "softmax_kernel.cu", "layernorm_kernel.cu"
_512_KEYS = "else if (length <= 512) launch(Bucket<64, 8>{});"
_LONG = "LONG = GROUP >= 128;"
_THREADS = "THREADS = GROUP > 128 ? GROUP : 128;"
_SCORES = "      else load(value[c], x + key);\n"
_RESULT = "    if (key < length) store(out + key, grad[c]);\n"
_SHORT_RESULT = """    if constexpr (B::SHORT) {
      if (key < length) store_first_to_leave(out + key, grad[c]);
    } else if (key < length) {
      store(out + key, grad[c]);
    }
"""
_1024_COLUMNS = "else if (hidden_dim <= 1024) launch(Bucket<128, 2>{});"


def _copy(name: str, problem: str, file: str, first_words: str) -> Candidate:
    edit = (f"// {first_words} over the last axis", f"// A copy: {first_words} over the last axis")
    return Candidate(name, problem, (edit,), "the same: what one run can tell", file)


def _forward(name: str, prediction: str, *edits: tuple[str, str]) -> Candidate:
    return Candidate(f"sf-{name}", "softmax_forward", edits, prediction, _SOFTMAX)


def _columns(name: str, prediction: str, bucket: str) -> Candidate:
    edit = (_1024_COLUMNS, _1024_COLUMNS.replace("Bucket<128, 2>", bucket))
    return Candidate(f"lf-{name}", "layernorm_forward", (edit,), prediction, _LAYERNORM)


CANDIDATES = (
    _copy("sf-copy", "softmax_forward", _SOFTMAX, "Softmax"),
    _copy("sb-copy", "softmax_backward", _SOFTMAX, "Softmax"),
    _copy("lf-copy", "layernorm_forward", _LAYERNORM, "LayerNorm"),
    _copy("lb-copy", "layernorm_backward", _LAYERNORM, "LayerNorm"),
    _forward(
        "sixteen-keys",
        "512 keys: 102.5 of 102, without a mask 102.5 of 101: no meeting of warps, as torch.compile does it",
        (_512_KEYS, _512_KEYS.replace("64, 8", "32, 16")),
    ),
    _forward(
        "four-keys",
        "512 keys: 101.5 of 102: a block per row, as Liger does it",
        (_512_KEYS, _512_KEYS.replace("64, 8", "128, 4")),
        (_LONG, "LONG = GROUP >= 128 && KEYS > 4;"),
        ("if constexpr (B::KEYS == 4) {", "if constexpr (B::GROUP * B::KEYS == 32) {"),
    ),
    _forward(
        "small-blocks",
        "512 keys: 102.3 of 102: no row waits for the other one's warps",
        (_THREADS, "THREADS = GROUP > 64 ? GROUP : GROUP == 64 ? 64 : 128;"),
    ),
    _forward(
        "large-blocks",
        "512 keys: 101.8 of 102; 1024 keys 101 of 101.4",
        (_THREADS, "THREADS = GROUP > 256 ? GROUP : GROUP >= 64 ? 256 : 128;"),
    ),
    _forward(
        "short-both-ways",
        "40 keys: 107 of 108, as alone before its results were stored so; 64 keys the same",
        (_SCORES, f"      else if constexpr (B::SHORT) load_first_to_leave(value[c], x + key);\n{_SCORES}"),
    ),
    Candidate(
        "sb-short-both-ways",
        "softmax_backward",
        ((_RESULT, _SHORT_RESULT),),
        "40 keys: 107.5 of 107.4, 64 keys 107 of 108.6",
        _SOFTMAX,
    ),
    _columns("two-warps", "8192 x 1024: 100 of 99.5, 32,768 x 1024 the same", "Bucket<64, 4>"),
    _columns("eight-warps", "8192 x 1024: 99.5 of 99.5, as Liger does it", "Bucket<256, 1>"),
)
