"""What ``docs/findings.md`` says of each kind of finding, as markup for a page, which loads no other files.

The heading of a kind there is its name, so ``docs/findings.md#race_shared`` is its place in the docs, too.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Mapping

_DOCS = (Path(__file__).parents[1] / "installed" / "docs", Path(__file__).parents[2] / "docs")
"""Where the docs lie in an installed package, and beside it in a source tree."""
_KIND = re.compile(r"^### (?P<kind>\w+)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = (
    (re.compile(r"\[([^]]+)\]\([^)]+\)"), r"\1"),
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+)\*(?![\w*])"), r"<strong>\1</strong>"),
)


@cache
def explanations() -> Mapping[str, Markup]:
    """Paragraphs and code of each kind of finding, by its name."""
    file = next(folder for folder in _DOCS if folder.is_dir()) / "findings.md"
    return {
        match["kind"]: _markup(match["text"]) for match in _KIND.finditer(file.read_text(encoding="utf-8"))
    }


def _markup(text: str) -> Markup:
    parts = re.split(r"^```\n(.*?)^```\n", text, flags=re.MULTILINE | re.DOTALL)
    blocks = []
    for index, part in enumerate(parts):
        if index % 2:
            blocks.append(f'<pre tabindex="0">{escape(part)}</pre>')
        else:
            blocks += [_block(block.strip()) for block in part.split("\n\n") if block.strip()]
    return Markup("\n".join(blocks))  # noqa: S704 - our own docs


def _block(text: str) -> str:
    if not text.startswith("* "):
        return f"<p>{_inline(text)}</p>"
    entries = (f"<li>{_inline(entry)}</li>" for entry in text.removeprefix("* ").split("\n* "))
    return f"<ul>{''.join(entries)}</ul>"


def _inline(text: str) -> str:
    shown = escape(text, quote=False)
    for pattern, markup in _INLINE:
        shown = pattern.sub(markup, shown)
    return shown
