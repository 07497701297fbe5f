"""All results as one page for a browser: a table, and below it what became of every submission.

The page stands alone: it loads nothing and runs nothing, and everything that a student wrote is text in it.
"""

from __future__ import annotations

from html import escape
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import quote

from grader.batch.gradebook import earned, note, problem_ids, totals
from grader.reports.console import problem_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.results import ProblemResult, Record

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
body { font: 15px system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse }
th, td { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }
td.points { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
pre { background: #f6f6f6; padding: .6em; overflow-x: auto }
.PASS { color: #176b2c } .FAIL { color: #b3261e } .UNTRUSTED { color: #8a1c8a }
.AMBIGUOUS, .INFRA_ERROR { color: #8a5a00 } .NOT_MEASURED { color: #666 }
</style>
</head>
<body>
<h1>$title</h1>
<p>Blank: not decided. <a href="gradebook.csv">The same as a spreadsheet</a></p>
<table>
<thead><tr>$header</tr></thead>
<tbody>
$rows
</tbody>
</table>
$details
</body>
</html>
""")


def page(results: Mapping[str, Record | None], title: str) -> str:
    """The records by submission, None for one without a result, as HTML."""
    ids = problem_ids(results)
    return _PAGE.substitute(
        title=escape(title),
        header="".join(
            f"<th>{escape(word)}</th>" for word in ("submission", "score", "of", "possible", *ids, "note")
        ),
        rows="\n".join(_row(name, results[name], ids) for name in sorted(results)),
        details="\n".join(
            _section(name, problem)
            for name, record in ((name, results[name]) for name in sorted(results))
            if record
            for problem in record.problems
        ),
    )


def _row(name: str, record: Record | None, ids: tuple[str, ...]) -> str:
    problems = {problem.id: problem for problem in record.problems} if record else {}
    shown = f'<a href="{quote(name)}/result.json">{escape(name)}</a>' if record else escape(name)
    cells = [f"<td>{shown}</td>"]
    cells += [f'<td class="points">{number}</td>' for number in totals(record)]
    cells += [_cell(name, problems.get(problem_id)) for problem_id in ids]
    return f"<tr>{''.join(cells)}<td>{escape(note(record))}</td></tr>"


def _cell(name: str, problem: ProblemResult | None) -> str:
    if problem is None:
        return "<td></td>"
    link = quote(f"{name}/{problem.id}")
    return (
        f'<td class="points">{earned(problem)} '
        f'<a class="{problem.verdict}" href="#{link}">{problem.verdict}</a></td>'
    )


def _section(name: str, problem: ProblemResult) -> str:
    place = escape(f"{name}/{problem.id}")
    return f'<h2 id="{place}">{place}</h2>\n<pre>{escape(problem_text(problem))}</pre>'
