"""The pages as text: self-contained, escaped, complete, in two views."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
import report_samples as samples

from grader.records.findings import KINDS
from grader.reports.explanations import explanations
from grader.reports.pages import class_page, leaderboard_page, submission_page
from grader.reports.views import view

if TYPE_CHECKING:
    from grader.records.record import Record

TITLE = "Homework 3"


class Page(HTMLParser):
    """The tags, links, anchors and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.code = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._inside = tag
        values = dict(attributes)
        assert not [name for name in values if name.startswith("on") or name in {"src", "style"}]
        self.links += [values["href"] or ""] if "href" in values else []
        self.ids += [values["id"] or ""] if "id" in values else []

    def handle_endtag(self, _: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in {"script", "style"}:
            self.code += data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page(record: Record, *, staff: bool = False) -> Page:
    return Page(submission_page(view(record, staff=staff), TITLE))


def classroom(staff: bool = True, **results: Record | None) -> Page:
    return Page(class_page(results, TITLE, staff=staff, links={"doe": "doe/report.html"}))


def test_a_page_shows_what_failed_with_its_diagnosis_and_the_marked_line() -> None:
    record = samples.record("doe", samples.raced())
    text = submission_page(view(record, staff=False), TITLE)
    shown = Page(text).text
    for part in (
        "the last elements of a row are not written",
        "ln_res : 1,037 of 37,000 wrong, 2 NaN",
        "[0, 999] 0.25 NaN",
        "The same in 1 case more 39 x 1000",
        "race shared (racecheck) at layernorm_kernel.cu:17 in ker_layer_norm",
        "0.00 / 12.00",
    ):
        assert part in shown
    assert '<span class="here"><i>17</i>  value = shared[lane];</span>' in text


def test_a_page_draws_which_parts_of_an_output_are_wrong() -> None:
    text = submission_page(view(samples.record("doe", samples.raced()), staff=False), TITLE)
    drawing = text[text.index("which parts of ln_res are wrong") :].partition("</svg>")[0]
    assert re.findall(r'x="([\d.]+)%" y="(\d+)" width="25.00%" height="10" opacity="([\d.]+)"', drawing) == [
        ("75.00", "0", "1.00"),
        ("50.00", "10", "0.10"),
        ("75.00", "10", "1.00"),
    ]


def racing() -> Record:
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": [samples.two_accesses()]}]
    return samples.record("doe", samples.problem(), samples.raced(checks=checks))


def test_a_page_begins_with_a_headline_and_each_problem_with_what_to_mend() -> None:
    shown = page(racing()).text
    assert "1 of 2 problems is right. Begin with LayerNorm forward." in shown
    order = [
        "Fix first Two threads use the same shared memory",
        "thread (33,0,0) of block (0,0,0) thread (0,0,0) of block (0,0,0)",
        "reads at layernorm_kernel.cu:14 if (lane == 0) {",
        "No __syncthreads() stands between the two",
        "writes at layernorm_kernel.cu:17 value = shared[lane];",
        "What to do: Put a __syncthreads() between line 14 and line 17",
        "Wrong number: ln_res[0, 999] in 37 x 1000: expected 0.25, got NaN",
        "Correctness",
        "3 cases not right",
    ]
    card = shown[shown.index(order[0]) :]
    places = [card.index(part) for part in order]
    assert places == sorted(places)
    right = page(samples.record("doe", samples.problem())).text
    assert "Everything that was checked here is right." in right
    assert "Fix first" not in right


def test_a_page_says_what_was_found_for_each_demand() -> None:
    shown = page(samples.record("doe", samples.demanding())).text
    assert "bytes of machine code over the reference's: 1.72, of at most 1.5" in shown
    assert "largest over smallest speedup: no GPU here" in shown


def test_groups_that_passed_are_folded_and_those_that_lost_points_are_not() -> None:
    content = samples.raced()
    content["correctness"]["groups"][0]["verdict"] = "PASS"
    text = submission_page(view(samples.record("doe", content), staff=False), TITLE)
    folded = "".join(re.findall("<details>.*?</details>", text, re.DOTALL))
    assert '<th scope="row">short rows' in folded
    assert "memory and concurrency" not in folded
    assert "1 group of cases passed" in folded


def test_a_kind_of_finding_links_to_what_the_docs_say_of_it_on_the_same_page() -> None:
    found = page(racing())
    assert "#race_shared" in found.links
    assert {link.removeprefix("#") for link in found.links if link.startswith("#")} <= set(found.ids)
    assert "between reading and overwriting" in found.text
    assert set(KINDS) <= set(explanations())


def test_what_cannot_be_measured_is_said_once() -> None:
    assert (
        page(samples.record("doe", samples.problem(), samples.problem("other"))).text.count("no GPU here")
        == 1
    )


def test_a_measured_problem_has_charts_and_a_table() -> None:
    record = samples.record("doe", samples.timed())
    text = submission_page(view(record, staff=False), TITLE)
    assert len(re.findall("<svg", text)) == 2
    assert "64 x 512 8.00x" in text
    shown = Page(text).text
    assert "8.00x the unfused baseline (7.92 to 8.08), target 6.5x; 85% of the device's bandwidth" in shown
    assert "up to 54 registers" in shown


def test_what_is_waived_is_shown_as_that() -> None:
    content = samples.raced()
    content["correctness"]["cases"][0]["waived"] = "the starter does this"
    content["checks"][0]["findings"] = [samples.finding(waived="so does everybody")]
    shown = page(samples.record("doe", content)).text
    assert "1 case not counted 37 x 1000: the starter does this" in shown
    assert "Costs nothing: so does everybody" in shown
    assert "1/3" in shown


def test_times_of_host_pointers_are_said_to_be_copies() -> None:
    assert "are mostly those" in page(samples.record("doe", samples.timed(memory="host"))).text
    assert "are mostly those" not in page(samples.record("doe", samples.timed())).text


def test_undecided_points_are_not_lost_and_a_failed_machine_gives_no_score() -> None:
    assert "16 of all 40 points" in page(samples.record()).text
    assert "No score yet" in page(samples.record("doe", samples.failed_machine())).text


def test_students_repeat_on_fresh_inputs_and_staff_on_the_same() -> None:
    record = samples.record()
    assert "--seed" not in page(record).text
    assert "424242" not in page(record).text
    assert "--device sim --memory device --seed 424242" in page(record, staff=True).text


def test_a_page_loads_nothing_and_runs_only_what_its_policy_names() -> None:
    text = class_page({"doe": samples.record()}, TITLE, staff=True)
    assert not re.search(r"(?:https?:)?//[a-z]", text)
    allowed = re.findall(r"'sha256-([^']+)'", html.unescape(text))
    for element in ("style", "script"):
        (content,) = re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL)
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in allowed
    assert "default-src 'none'" in html.unescape(text)


@pytest.mark.parametrize("staff", [False, True])
def test_nothing_of_a_student_becomes_markup(staff: bool) -> None:
    plain = page(samples.record("doe", samples.unbuilt(), samples.raced(hints=[], printed="x")), staff=staff)
    found = page(samples.hostile(), staff=staff)
    assert found.tags <= plain.tags | {"details", "summary"}
    assert not {"script", "img"} & found.tags
    assert "<script>alert(1)</script>" in found.text
    assert not {"\x1b", "\x00", "\u202e"} & set(found.text)


def test_nothing_of_a_student_becomes_markup_on_the_page_of_the_class() -> None:
    evil = samples.HOSTILE
    results = {f"javascript:{evil}": samples.hostile(), evil: None}
    text = class_page(
        results, evil, staff=True, aliases={evil: evil}, links={f"javascript:{evil}": f"javascript:{evil}"}
    )
    found = Page(text)
    assert "img" not in found.tags
    assert "alert(1)" not in found.code
    assert not [link for link in found.links if link.startswith("javascript:")]


def test_ids_are_unique() -> None:
    for shown in (
        page(samples.record("doe", samples.timed(), samples.raced())),
        classroom(doe=samples.record()),
    ):
        assert len(shown.ids) == len(set(shown.ids))


def test_staff_see_who_is_to_be_looked_at_and_why() -> None:
    found = classroom(
        doe=samples.record("doe", samples.untrusted()),
        max=samples.record("max", samples.failed_machine()),
        eva=None,
    )
    assert "doe/report.html" in found.links
    assert "64 x 32: 1.2 us for what the device needs" in found.text
    assert "CUDA error 719" in found.text
    assert "eva: not graded yet" in found.text


def test_staff_find_the_submissions_before_the_charts() -> None:
    text = class_page({"doe": samples.record()}, TITLE, staff=True)
    assert text.index(">Submissions<") < text.index(">Points<") < text.index(">Common failures<")


def test_the_leaderboard_shows_those_with_an_alias_alone() -> None:
    results = {"doe": samples.record("doe", samples.timed()), "max": samples.record("max", samples.timed())}
    found = Page(leaderboard_page(results, TITLE, {"doe": "Turing"}))
    assert "Turing" in found.text
    assert "8.00x" in found.text
    assert not re.search(r"\b(doe|max)\b", found.text)
    assert "No speed of theirs" in Page(leaderboard_page(results, TITLE, {"eva": "Hopper"})).text


def test_students_see_the_class_without_names() -> None:
    results = {
        "doe": samples.record("doe", samples.timed()),
        "max": samples.record("max", samples.timed(speedup=3)),
        "eva": samples.record("eva", samples.timed(speedup=2), samples.unbuilt("layernorm_forward")),
    }
    text = class_page(results, TITLE, staff=False, aliases={"doe": "Turing"})
    found = Page(text)
    assert "Turing" in found.text
    assert "Right, but too slow 2" in found.text
    assert "flaot" not in found.text, "a mistake of one student tells of that student"
    assert not re.search(r"\b(doe|max|eva)\b", found.text)
    assert "gradebook.csv" not in found.links


def test_a_class_of_nobody_and_of_unknown_problems_has_a_page() -> None:
    assert "0 submissions" in classroom().text
    assert "1 submission, 0 with a score" in classroom(doe=None).text
