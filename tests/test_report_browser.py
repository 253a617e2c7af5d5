"""The report in a real browser: what its script does, what its policy stops, how it looks on a phone, on paper, without script.

They need a Chromium and install none. Where there is none they fail on CI and are left out, by name, elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_chromium import Browser, find
from report_fixture import Shape, make_run

from cascade_core import report
from cascade_core.report import serve
from cascade_core.rows import dump, read

pytestmark = pytest.mark.slow

HOSTILE = (
    "<script>window.hit=1</script><img src=x onerror='window.hit=2'><svg onload=window.hit=3>"
    "<a href='javascript:window.hit=4'>x</a></script><!-- &lt;b&gt; \u202e\x00 ]]> </pre></details>"
)
FRAMES = [(1280, False), (1280, True), (390, False), (390, True)]


@pytest.fixture(scope="module")
def chromium() -> str:
    found = find()
    if found is None and os.environ.get("CI") == "true":
        pytest.fail("no chromium on this machine, and CI must have one: apt-get install chromium")
    if found is None:
        pytest.skip("no chromium on this machine: the report was not tried in a browser")
    return found


@pytest.fixture(scope="module")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(chromium, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run", Shape(steps=8, tasks=60, samples=2))


@pytest.fixture(scope="module")
def page(finished: Path) -> str:
    return report.write(finished).as_uri()


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def text(browser: Browser, name: str) -> str:
    return str(browser.js(f"document.getElementById('browse-{name}').textContent"))


def choose(browser: Browser, name: str, value: str) -> None:
    browser.js(f"{{const s = document.getElementById('browse-{name}'); s.value = {json.dumps('=' + value)};"
               "s.dispatchEvent(new Event('change'))}")  # fmt: skip


def focused(browser: Browser) -> int:
    return int(
        browser.js(
            "[...document.getElementById('browse-rows').children].findIndex(r => r.contains(document.activeElement))"
        )
    )


def titles(browser: Browser) -> list[str]:
    return list(browser.js("[...document.querySelectorAll('#browse-rows .title')].map(t => t.textContent)"))


@pytest.mark.parametrize(("width", "dark"), FRAMES)
def test_the_page_fits_its_window_and_neither_fetches_nor_complains(
    browser: Browser, page: str, tmp_path: Path, width: int, dark: bool
) -> None:
    browser.open(page, width=width, dark=dark)
    browser.press("j", "Enter")
    assert browser.js("document.documentElement.scrollWidth") == width
    assert browser.complaints == [] and browser.requests == [page]
    light = browser.js("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every(c => c > 128)")
    assert light is not dark
    assert len(browser.picture(tmp_path / "page.png")) > 50_000


@pytest.mark.parametrize(("width", "dark"), FRAMES)
def test_every_text_of_the_page_can_be_told_from_what_is_behind_it(
    browser: Browser, page: str, width: int, dark: bool
) -> None:
    browser.open(page, width=width, dark=dark)
    for view in ("figures", "values", "changes"):
        browser.js(f"document.getElementById('view-{view}').click()")
        assert browser.js(CONTRAST) == []


# Of all elements with text of their own: those whose contrast (WCAG 2.2, relative luminance) is below 4.5, with what they say.
# A canvas turns any colour that CSS can name into numbers.
CONTRAST = """(() => {
  const paint = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1); return [...paint.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const behind = (one) => { for (; one; one = one.parentElement) { const c = rgb(getComputedStyle(one).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
  const found = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || one.closest("svg, script, .hidden, .skip, :disabled") || !one.checkVisibility() || !one.offsetParent) continue;
    const [a, b] = [light(rgb(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) found.push([one.className || one.tagName, one.textContent.slice(0, 40), ((a + .05) / (b + .05)).toFixed(2)]);
  }
  return found;
})()"""


def test_a_search_finds_what_stands_in_prompts_responses_notes_and_ids(browser: Browser, page: str) -> None:
    browser.open(page)
    assert text(browser, "count") == "120 of 120 tasks"
    for query, expected in [("if/test-0007", 1), ("MATH/test-0007 boxed", 1), ("no such words", 0)]:
        browser.press("/")
        browser.js(
            f"{{const t = document.getElementById('browse-text'); t.value = {json.dumps(query)}; t.dispatchEvent(new Event('input'))}}"
        )
        browser.until(f"document.getElementById('browse-count').textContent === '{expected} of 120 tasks'")
        assert browser.js("document.getElementById('browse-none').hidden") is (expected > 0)
    browser.press("Escape")
    assert text(browser, "count") == "120 of 120 tasks"
    browser.press("Escape")
    assert browser.js("document.activeElement === document.body")


def test_filters_show_the_tasks_that_the_page_counted(browser: Browser, page: str) -> None:
    browser.open(page)
    counted = browser.js(
        "[...document.querySelectorAll('#responses .sheet')].map(s => [s.querySelector('h3').textContent, s.querySelector('.counts').textContent])"
    )
    told = {
        name: {kind.strip().split(" ", 1)[1]: int(kind.split()[0]) for kind in line.split("·")}
        for name, line in counted
    }
    for benchmark, kinds in told.items():
        choose(browser, "benchmark", benchmark)
        for kind in ("gained", "lost", "unchanged"):
            choose(browser, "kind", kind)
            number = sum(n for name, n in kinds.items() if name.split(",")[0] == kind)
            assert number > 0 and text(browser, "count") == f"{number} of 120 tasks"
            assert all(
                k.startswith(kind)
                for k in browser.js("[...document.querySelectorAll('#browse-rows .kind')].map(k => k.textContent)")
            )
    browser.js("document.getElementById('browse-kind').selectedIndex = 0")
    choose(browser, "benchmark", "if/test")
    for domain, number in [("math", 0), ("if", 60)]:
        choose(browser, "domain", domain)
        assert text(browser, "count") == f"{number} of 120 tasks"


def test_a_task_shows_every_stage_with_verdict_response_and_note(browser: Browser, page: str, finished: Path) -> None:
    browser.open(page)
    browser.press("j", "Enter")
    browser.until("document.querySelector('#browse-rows details[open] .cards')")
    task = browser.js("document.querySelector('#browse-rows .fine').textContent").split()[1]
    cards = browser.js("[...document.querySelectorAll('#browse-rows .cards li')].map(c => [c.querySelector('h4').firstChild.data.trim(),"
                       "c.querySelector('.badge').textContent.split(' ')[1], c.querySelector('pre').textContent, c.querySelector('.note')?.textContent])")  # fmt: skip
    rows = [next(row for row in read(path) if row["id"] == task and row["sample"] == 0)
            for path in sorted(finished.glob(f"stages/*/eval/{task.rpartition('-')[0]}.jsonl"))]  # fmt: skip
    assert [card[0] for card in cards] == ["start", "sft", "if", "math"]
    for (_, verdict, response, note), row in zip(cards, rows, strict=True):
        assert response == row["response"] and note == (row["score"].get("error") or row["score"].get("note"))
        assert (verdict == "right") == (row["score"]["value"] == 1)


def test_keys_go_from_task_to_task_and_over_the_end_of_a_page(browser: Browser, page: str) -> None:
    browser.open(page)
    first = titles(browser)
    browser.press("j", "j", "j", "k")
    assert focused(browser) == 1
    browser.press("Enter")
    browser.until("document.querySelectorAll('#browse-rows details')[1].open")
    browser.press("Escape")
    assert browser.js("document.querySelectorAll('#browse-rows details[open]').length") == 0
    browser.press(*"j" * 19)
    assert text(browser, "place") == "page 2 of 6" and focused(browser) == 0 and titles(browser) != first
    browser.press("k")
    assert text(browser, "place") == "page 1 of 6" and focused(browser) == 19 and titles(browser) == first
    browser.js("document.getElementById('browse-after').click()")
    assert text(browser, "place") == "page 2 of 6"


def test_letters_that_are_typed_into_the_search_are_no_commands(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.press("/", "j", "k", "/")
    assert browser.js("document.getElementById('browse-text').value") == "jk/"


def test_a_hostile_response_stays_text_and_runs_nowhere(browser: Browser, run: Path) -> None:
    def poison(row: dict[str, Any]) -> dict[str, Any]:
        score = {**row["score"], "note": HOSTILE}
        return {**row, "id": HOSTILE + row["id"], "response": HOSTILE, "prompt": [{"role": HOSTILE, "content": HOSTILE}],
                "source": HOSTILE, "answer": HOSTILE, "prefill": HOSTILE, "score": score}  # fmt: skip

    for path in run.glob("stages/*/eval/*/*.jsonl"):
        path.write_text("".join(dump(poison(row)) + "\n" for row in read(path)))
    address = report.write(run).as_uri()
    browser.open(address)
    browser.press("/", *"onerror", "Enter")
    browser.until("document.querySelector('#browse mark')")
    for row in range(3):
        browser.js(f"document.querySelectorAll('#browse-rows details')[{row}].open = true")
    browser.until("document.querySelectorAll('#browse-rows .cards').length === 3")
    shown = browser.js("document.querySelector('#browse-rows .cards .note').textContent")
    assert shown.startswith("<script>window.hit=1</script>") and "⟨U+202E⟩⟨U+0000⟩" in shown
    assert browser.js("document.querySelectorAll('main img, main a[href^=javascript], main svg[onload]').length") == 0
    assert browser.js("window.hit") is None
    assert browser.complaints == [] and browser.requests == [address]


def test_a_script_that_got_into_the_page_is_stopped_by_its_policy(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.js("{const s = document.createElement('script'); s.textContent = 'window.hit = 1'; document.body.append(s);"
               "const i = document.createElement('img'); i.src = 'https://example.invalid/x'; document.body.append(i)}")  # fmt: skip
    assert browser.js("window.hit") is None
    browser.until("true")
    assert len([told for told in browser.complaints if "Content Security Policy" in told]) >= 2


def test_without_script_the_samples_are_there_and_nothing_that_does_not_work(browser: Browser, page: str) -> None:
    browser.open(page, script=False)
    tree = browser.call("DOMSnapshot.captureSnapshot", computedStyles=["display"], includeDOMRects=False)
    seen = {tree["strings"][place] for place in tree["documents"][0]["layout"]["text"] if place >= 0}
    assert "Responses to the same task" in seen and "Every benchmark after every stage" in seen
    assert "All responses" not in seen and "Browse" not in seen


def test_the_matrix_is_a_heat_map_on_request_and_deeper_means_more(browser: Browser, page: str) -> None:
    browser.open(page)
    figures = browser.js("document.querySelector('.matrix').innerText")
    browser.js("document.getElementById('view-values').click()")
    cells = browser.js(
        "[...document.querySelectorAll('.matrix td')].map(c => [parseFloat(c.innerText), getComputedStyle(c).getPropertyValue('--part')])"
    )
    assert len(cells) == 8 and len({part for _, part in cells}) >= 3
    for value, part in cells:
        assert part == f"{round(10 * value) * 10}%"
    browser.js("document.getElementById('view-changes').click()")
    assert "▲" in browser.js("document.querySelector('.matrix').innerText")
    browser.js("document.getElementById('view-figures').click()")
    assert browser.js("document.querySelector('.matrix').innerText") == figures


def test_on_paper_everything_is_open_and_afterwards_as_it_was(browser: Browser, page: str) -> None:
    browser.open(page)
    closed = browser.js("document.querySelectorAll('details:not([open])').length")
    assert closed > 10
    browser.js("addEventListener('afterprint', () => { window.then = 1 }); addEventListener('beforeprint', () => {"
               "window.still = document.querySelectorAll('details:not([open])').length })")  # fmt: skip
    printed = browser.pdf()
    assert printed.startswith(b"%PDF") and len(printed) > 50_000
    browser.until("window.then")
    assert browser.js("window.still") == 0
    assert browser.js("document.querySelectorAll('details:not([open])').length") == closed


def test_on_paper_everything_is_open_without_script(browser: Browser, page: str) -> None:
    browser.open(page, width=720)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        browser.until("document.documentElement.scrollWidth <= 720")  # A4 upright, with the browser's own margins
        closed = "[...document.querySelectorAll('details:not([open]) > :not(summary)')]"
        assert browser.js(f"{closed}.length") > 10
        browser.until(f"{closed}.every(one => one.checkVisibility() && one.getBoundingClientRect().height > 0)")
        assert browser.js("document.querySelector('nav').checkVisibility()") is False
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


RENEWED = "document.readyState === 'complete' && document.body.innerText.includes('odd new field')"


@pytest.fixture
def served(run: Path) -> Iterator[tuple[Path, str]]:
    server = serve._Server(0, serve.Following(run))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield run, f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_served_page_renews_itself_and_keeps_what_the_reader_chose(
    browser: Browser, served: tuple[Path, str]
) -> None:
    run, address = served
    browser.open(address)
    browser.until("document.getElementById('live').innerText === 'the run is finished'")
    choose(browser, "kind", "lost")
    browser.js("document.getElementById('view-values').click(); document.querySelector('.raw').open = true")
    count = text(browser, "count")
    with (run / "events.jsonl").open("a") as events:
        events.write(dump({"kind": "step", "stage": "03-math", "step": 77, "time": 9.0, "odd_new_field": 0.5}) + "\n")
    browser.until(RENEWED)
    assert text(browser, "count") == count
    assert browser.js("document.getElementById('view-values').checked && document.querySelector('.raw').open")
    assert browser.complaints == [] and all(one.startswith(address) for one in browser.requests)


def test_a_served_page_waits_while_the_reader_is_reading(browser: Browser, served: tuple[Path, str]) -> None:
    run, address = served
    browser.open(address, width=390, height=800)
    browser.press("j", "Enter")
    browser.until("document.querySelector('#browse-rows details[open]')")
    with (run / "events.jsonl").open("a") as events:
        events.write(dump({"kind": "step", "stage": "03-math", "step": 77, "time": 9.0, "odd_new_field": 0.5}) + "\n")
    browser.until("document.getElementById('live').className === 'new'")
    assert "odd new field" not in browser.js("document.body.innerText")
    browser.js("document.getElementById('live').click()")
    browser.until(RENEWED)
