"""The pages in a real browser: on a desktop and a phone, light and dark, by keyboard, and to axe-core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import report_samples as samples
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from grader.reports.pages import class_page, leaderboard_page, submission_page
from grader.reports.views import view

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome

    from grader.records.record import Record

HINT = {"kernel": "_Z3kerPf", "file": "k.cu", "line": 17, "message": "32 sectors where 4 would do"}
DESKTOP, PHONE = (1100, 800), (390, 844)


def everything() -> Record:
    """A record with every part that a page can have."""
    close = samples.timed("layernorm_backward", speedup=6.5, hints=[{**HINT, "source": samples.SOURCE}])
    close["performance"]["verdict"] = "AMBIGUOUS"
    return samples.record(
        "Zoë Müller_1001",
        samples.unbuilt(),
        samples.raced(
            printed="hello\n" * 9,
            checks=[{"tool": "racecheck", "verdict": "FAIL", "findings": [samples.two_accesses()]}],
        ),
        close,
        samples.untrusted("softmax_backward"),
        samples.failed_machine("transformer"),
        submission={"name": "Zoë Müller", "sha256": "0", "files": ["k.cu"], "notes": ["handed in late"]},
    )


def whole_class() -> dict[str, Record | None]:
    results: dict[str, Record | None] = {
        f"student{number:02}_{number}": samples.record(
            f"student{number:02}", samples.timed(speedup=3 + number / 2), samples.raced()
        )
        for number in range(11)
    }
    return {**results, "Zoë Müller_1001": everything(), "pending": None, "half": samples.record("half")}


def pages() -> dict[str, str]:
    return {
        "submission": submission_page(view(everything(), staff=False), "Homework 3"),
        "submission, staff": submission_page(view(everything(), staff=True), "Homework 3"),
        "class": class_page(whole_class(), "Homework 3", staff=False, aliases={"student03_3": "Turing"}),
        "class, staff": class_page(whole_class(), "Homework 3", staff=True),
        "leaderboard": leaderboard_page(whole_class(), "Homework 3", {"student03_3": "Turing"}),
        "hostile": submission_page(view(samples.hostile(), staff=True), samples.HOSTILE),
    }


def show(
    browser: Chrome, text: str, folder: Path, size: tuple[int, int] = DESKTOP, scheme: str = "light"
) -> None:
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(path.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(part => part.open = true)")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_page_fits_its_screen_loads_nothing_and_complains_of_nothing(
    browser: Chrome, tmp_path: Path, size: tuple[int, int]
) -> None:
    for name, text in pages().items():
        show(browser, text, tmp_path, size)
        width, seen, loaded = browser.execute_script(
            "return [document.documentElement.scrollWidth, innerWidth, "
            "performance.getEntriesByType('resource').length]"
        )
        assert width <= seen, name
        assert loaded == 0, name
        assert browser.get_log("browser") == [], name
        browser.save_screenshot(str(tmp_path / f"{name}.png"))


def test_dark_is_dark_and_light_is_light(browser: Chrome, tmp_path: Path) -> None:
    script = "return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)"
    text = pages()["submission"]
    show(browser, text, tmp_path, scheme="light")
    assert min(browser.execute_script(script)) > 200
    show(browser, text, tmp_path, scheme="dark")
    assert max(browser.execute_script(script)[:3]) < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Chrome, tmp_path: Path, axe: str, scheme: str) -> None:
    for name, text in pages().items():
        for size in (DESKTOP, PHONE):
            show(browser, text, tmp_path, size, scheme)
            browser.execute_script(axe)
            found: dict[str, Any] = browser.execute_async_script("axe.run().then(arguments[0])")
            bad = [
                (name, rule["id"], node["html"], node["failureSummary"])
                for rule in found["violations"]
                for node in rule["nodes"]
            ]
            assert not bad
            assert len(found["passes"]) > 10


def test_a_table_is_sorted_by_mouse_and_by_keyboard(browser: Chrome, tmp_path: Path) -> None:
    show(browser, pages()["class, staff"], tmp_path)
    table = browser.find_element(By.CSS_SELECTOR, "table.sortable")
    name, score = table.find_elements(By.CSS_SELECTOR, "thead button")[:2]

    def column(place: int) -> list[str]:
        script = (
            "return [...arguments[0].tBodies[0].rows].map(row => row.cells[arguments[1]].textContent.trim())"
        )
        return list(browser.execute_script(script, table, place))

    score.click()
    scores = [float(text) for text in column(1) if text]
    assert scores == sorted(scores)
    assert len(set(scores)) > 5
    assert column(1)[-1] == ""
    score.send_keys(Keys.ENTER)
    assert [float(text) for text in column(1) if text] == scores[::-1]
    assert column(1)[-1] == ""
    header = score.find_element(By.XPATH, "..")
    assert header.get_attribute("aria-sort") == "descending"
    name.send_keys(Keys.SPACE)
    assert column(0)[0] == "half"
    assert header.get_attribute("aria-sort") is None


def test_the_keyboard_reaches_the_content_and_what_is_folded(browser: Chrome, tmp_path: Path) -> None:
    show(browser, pages()["submission"], tmp_path)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "To the content"
    browser.execute_script("document.querySelectorAll('details').forEach(part => part.open = false)")
    summary = browser.find_element(By.TAG_NAME, "summary")
    summary.send_keys(Keys.ENTER)
    assert summary.find_element(By.XPATH, "..").get_attribute("open")


def test_nothing_that_a_student_wrote_runs(browser: Chrome, tmp_path: Path) -> None:
    for text in (pages()["hostile"], class_page({samples.HOSTILE: samples.hostile()}, "x", staff=True)):
        show(browser, text, tmp_path)
        with pytest.raises(NoAlertPresentException):
            _ = browser.switch_to.alert.text
        assert browser.execute_script("return document.images.length") == 0


def test_the_policy_stops_what_escaping_would_let_through(browser: Chrome, tmp_path: Path) -> None:
    hole = pages()["submission"].replace(
        "</main>", "<img src=x onerror='window.ran = 1'><script>window.ran = 1</script></main>"
    )
    show(browser, hole, tmp_path)
    assert browser.execute_script("return window.ran") is None
