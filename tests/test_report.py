"""The report page: whole, offline, honest about what is missing, and deaf to hostile responses."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_fixture import DOMAINS, Shape, digest, edit, make_run

from cascade_core import report
from cascade_core.errors import RunError
from cascade_core.report import answers
from cascade_core.rows import dump, read

SMALL = Shape(steps=12, tasks=20, samples=2)
VOID = {"meta", "br", "img", "input", "link", "hr", "wbr", "base"}
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><!-- ]]> {{ 7*7 }} </pre></style>"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and text by the element that holds it."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.source = path.read_bytes().decode("utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == [], "elements left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        where = self.open[-1] if self.open else ""
        self.texts.append(("data" if where == "script" and self.elements[-1][1].get("type") else where, data))

    @property
    def text(self) -> str:
        return "".join(data for where, data in self.texts if where != "data")

    @property
    def programs(self) -> list[dict[str, str | None]]:
        """The scripts that run; an element of another type is data to a browser."""
        return [script for script in self.all("script") if script.get("type") != "application/json"]

    def inside(self, tag: str) -> str:
        return "".join(data for where, data in self.texts if where == tag)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests that change it take a copy."""
    return make_run(tmp_path_factory.mktemp("runs") / "quickstart", SMALL)


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def change_rows(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(change(row)) + "\n" for row in read(path)))


def eval_files(run: Path) -> list[Path]:
    return sorted(run.glob("stages/*/eval/*/*.jsonl"))


def test_every_value_of_the_matrix_stands_on_the_page_with_its_error_and_counts(finished: Path) -> None:
    text = Page(report.write(finished)).text
    for path in sorted(finished.glob("stages/*/metrics.json")):
        for result in json.loads(path.read_text())["benchmarks"].values():
            estimate = result["estimates"][result["primary"]]
            assert f"{estimate['value']:.3f} ±{estimate['stderr']:.3f}" in text
            assert f"{result['scored']}/{result['limit']}/{result['failed']} of {result['total']}" in text
            if "change" in result:
                low, high = (f"{result['change'][end]:+.3f}".replace("-", "−") for end in ("low", "high"))
                assert f"{low} … {high}" in text


def test_nothing_on_the_page_is_fetched(finished: Path) -> None:
    page = Page(report.write(finished))
    assert not page.all("link") and not page.all("img") and not page.all("iframe") and not page.all("base")
    for tag, attributes in page.elements:
        for name in ("src", "srcset", "action", "formaction", "poster", "data", "xlink:href", "background", "ping"):
            assert name not in attributes, (tag, name)
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\(|@import|image-set", page.inside("style"))
    assert not re.search(r"fetch|XMLHttp|WebSocket|import|http|eval|innerHTML|document\.write", page.inside("script"))


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(finished: Path) -> None:
    page = Page(report.write(finished))
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert len(page.all("style")) == len(page.programs) == 1
    for tag in ("style", "script"):
        right = base64.b64encode(hashlib.sha256(page.inside(tag).encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{right}'" in (policy or "")
    assert (policy or "").startswith("default-src 'none';") and "unsafe" not in (policy or "")
    forbidden = [
        (tag, name)
        for tag, attributes in page.elements
        for name in attributes
        if name == "style" or name.startswith("on")
    ]
    assert forbidden == []


def test_markup_in_a_response_stays_text_wherever_it_stands(run: Path) -> None:
    before = sorted(tag for tag, _ in Page(report.write(run)).elements)

    def poison(row: dict[str, Any]) -> dict[str, Any]:
        prompt = [{"role": HOSTILE, "content": HOSTILE}] if isinstance(row["prompt"], list) else HOSTILE
        score = {**row["score"], **{key: HOSTILE for key in ("note", "error") if key in row["score"]}}
        return {**row, "response": HOSTILE, "prompt": prompt, "source": HOSTILE, "answer": HOSTILE, "score": score}

    for path in eval_files(run):
        change_rows(path, poison)
    page = Page(report.write(run))
    assert HOSTILE in page.text
    assert len(page.programs) == 1 and len(page.all("script")) == 2 and not page.all("img")
    # The system turn of the conversations became one turn: nothing else may differ.
    assert {tag for tag, _ in page.elements} <= set(before)


def test_markup_in_names_settings_and_metrics_stays_text(run: Path) -> None:
    shutil.rmtree(run / "stages" / "03-math")
    lock = json.loads((run / "lock.json").read_text())
    lock["spec"] |= {
        "name": HOSTILE,
        "model": {"path": HOSTILE},
        "stages": [*lock["spec"]["stages"][:2], {"name": "</title><b>x"}],
    }
    (run / "lock.json").write_text(json.dumps(lock))
    (run / "spec.yaml").write_text(HOSTILE)
    metrics = run / "stages" / "02-if" / "metrics.json"
    edit(metrics, benchmarks={HOSTILE: next(iter(json.loads(metrics.read_text())["benchmarks"].values()))})
    with (run / "events.jsonl").open("a") as events:
        events.write(dump({"kind": "step", "stage": "02-if", "step": 90, "time": 9.0, HOSTILE: 0.5}) + "\n")
    page = Page(report.write(run))
    assert page.text.count(HOSTILE) >= 4
    assert len(page.programs) == 1 and len(page.all("script")) == 2 and not page.all("img") and page.all("b")
    assert page.inside("title").startswith(HOSTILE)


def structure_with(run: Path, response: str) -> list[str]:
    """The tags of the page of a run whose responses on one benchmark are all this one."""
    change_rows(run / "stages/03-math/eval/math/test.jsonl", lambda row: {**row, "response": response})
    return [tag for tag, _ in Page(report.write(run)).elements]


@pytest.fixture
def plain(run: Path) -> list[str]:
    return structure_with(run, "plain")


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=()), min_size=1, max_size=300))
def test_no_text_changes_the_structure_of_the_page(run: Path, plain: list[str], text: str) -> None:
    assert structure_with(run, text) == plain


@pytest.mark.parametrize(
    "text", ["\ud800 lone", "a\x00b", "\x1b[31m", "\u202egnp.exe", "\ufeff\uffff", "\r\x85\u2028\u2029"]
)
def test_unfit_characters_are_shown_as_signs(run: Path, text: str) -> None:
    for path in eval_files(run):
        change_rows(path, lambda row: {**row, "response": f"BEGIN{text}END", "id": row["id"] + text})
    source = report.write(run).read_bytes().decode("utf-8")
    unfit = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\uffff]")
    assert not unfit.search(source)
    assert "BEGIN" in source


def test_an_endless_response_is_cut_in_its_middle_and_keeps_its_end(run: Path) -> None:
    for path in eval_files(run):
        change_rows(path, lambda row: {**row, "response": "START" + "x" * 300_000 + "FINISH"})
    path = report.write(run)
    assert "FINISH" in path.read_text() and "START" in path.read_text() and "characters left out" in path.read_text()
    assert path.stat().st_size < 1_000_000


def test_the_same_folder_gives_the_same_bytes_anywhere(finished: Path, run: Path) -> None:
    assert digest(report.write(finished)) == digest(report.write(run)) == digest(report.write(run))


def test_the_same_fixture_gives_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    assert digest(report.write(make_run(tmp_path / "again", SMALL))) == digest(report.write(finished))


def _mid_training(run: Path) -> None:
    shutil.rmtree(run / "stages" / "03-math")
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if '"03-math"' in line and '"step": 5,' in line)
    (run / "events.jsonl").write_text("".join(lines[: last + 1]) + lines[last + 1][:40])


def _being_evaluated(run: Path) -> None:
    (run / "stages" / "03-math" / "metrics.json").unlink()
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if '"03-math"' in line and '"eval"' in line)
    (run / "events.jsonl").write_text("".join(lines[: first + 1]))


def _only_the_start(run: Path) -> None:
    for name in ("01-sft", "02-if", "03-math"):
        shutil.rmtree(run / "stages" / name)
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    (run / "events.jsonl").write_text("".join(line for line in lines if "00-start" in line or "run_start" in line))


def _nothing_yet(run: Path) -> None:
    shutil.rmtree(run / "stages")
    (run / "events.jsonl").unlink()


def _no_eval_rows(run: Path) -> None:
    for path in eval_files(run):
        path.unlink()


def _no_lock(run: Path) -> None:
    (run / "lock.json").unlink()
    (run / "spec.yaml").unlink()


def _damaged(run: Path) -> None:
    (run / "lock.json").write_text("{")
    (run / "stages" / "02-if" / "metrics.json").write_text("[1, 2]")
    (run / "stages" / "notes.txt").write_text("mine")
    with eval_files(run)[-1].open("a") as rows:
        rows.write('{"id": "cut sh')


PARTIAL = {
    _mid_training: ["math is under way: 6 of 12 steps, reward", "the last line is cut short"],
    _being_evaluated: ["math is trained and being evaluated", "not measured", "since sft"],
    _only_the_start: ["No stage has trained yet", "not started", "Responses to the same task"],
    _nothing_yet: ["No stage has trained yet", "spec.yaml"],
    _no_eval_rows: ["Every benchmark after every stage", "Training", "Where the time went"],
    _no_lock: ["quickstart", "spec.yaml is missing", "Every benchmark after every stage"],
    _damaged: ["02-if/metrics.json is no JSON object", "lock.json is no JSON object", "1 damaged line(s) left out"],
}


@pytest.mark.parametrize("spoil", PARTIAL)
def test_a_partial_run_gives_a_report_that_says_what_there_is(run: Path, spoil: Callable[[Path], None]) -> None:
    spoil(run)
    text = " ".join(Page(report.write(run)).text.split())
    for told in PARTIAL[spoil]:
        assert told in text


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_events_torn_anywhere_still_give_a_report(finished: Path, run: Path, data: st.DataObject) -> None:
    whole = (finished / "events.jsonl").read_bytes()
    (run / "events.jsonl").write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    assert "Every benchmark after every stage" in Page(report.write(run)).text


def _places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way] + [place for key, child in inner for place in _places(child, (*way, key))]


def _replaced(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    if not way:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[way[0]] = _replaced(value[way[0]], way[1:], new)
    return copy


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_value_in_any_file_stops_the_report(finished: Path, tmp_path: Path, data: st.DataObject) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "fuzz", dirs_exist_ok=True))
    name = data.draw(st.sampled_from(["lock.json", "stages/02-if/metrics.json", "stages/00-start/metrics.json", "events.jsonl",
                                      "stages/03-math/eval/math/test.jsonl"]))  # fmt: skip
    lines = (finished / name).read_text().splitlines() if name.endswith("jsonl") else [(finished / name).read_text()]
    place = data.draw(st.integers(0, len(lines) - 1))
    value = json.loads(lines[place])
    lines[place] = json.dumps(_replaced(value, data.draw(st.sampled_from(_places(value))), data.draw(JSON)))
    (run / name).write_text("\n".join(lines) + "\n")
    Page(report.write(run))


def test_what_is_no_run_folder_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no run folder: found neither"):
        report.write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_link_of_the_page_leads_somewhere_and_every_id_is_unique(finished: Path) -> None:
    page = Page(report.write(finished))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [attributes.get("aria-labelledby") for _, attributes in page.elements]
    targets = [link["href"][1:] for link in page.all("a") if link.get("href")] + [name for name in named if name]  # type: ignore[index]
    assert set(targets) <= set(ids) and len(page.all("a")) >= 7


def test_pictures_have_words_and_what_scrolls_can_be_focused(finished: Path) -> None:
    page = Page(report.write(finished))
    assert all(svg.get("aria-label") or svg.get("aria-hidden") == "true" for svg in page.all("svg"))
    assert all(th.get("scope") in ("col", "row") for th in page.all("th"))
    regions = [div for div in page.all("div") if "scroll" in (div.get("class") or "").split()]
    assert regions and all(div.get("tabindex") == "0" and div.get("role") == "region" for div in regions)


def test_twelve_stages_and_twenty_benchmarks_fit_on_one_page(tmp_path: Path) -> None:
    shape = Shape(rl_stages=[*DOMAINS, *DOMAINS, "if"], steps=3, tasks=6, samples=2, benchmarks_per_domain=4)
    page = Page(report.write(make_run(tmp_path / "run", shape)))
    assert len(page.all("td")) >= 13 * 20
    assert page.text.count("Responses to the same task") == 1


def test_one_stage_and_one_benchmark_make_a_page(tmp_path: Path) -> None:
    page = Page(report.write(make_run(tmp_path / "run", Shape(rl_stages=("math",), steps=1, tasks=3, samples=1))))
    assert (
        "math raised math/test" in page.text
        or "math did not move math/test" in page.text
        or "math lowered math/test" in page.text
    )


def test_five_stages_of_sixteen_hundred_rows_a_benchmark_take_less_than_three_seconds(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Shape(rl_stages=DOMAINS[:4], steps=40, tasks=400, samples=4))
    report.write(run)
    begin = time.process_time()
    report.write(run)
    assert time.process_time() - begin < 3


def test_of_a_large_run_only_the_beginning_of_its_rows_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "READ_BYTES", 0)
    monkeypatch.setattr(answers, "LEAST_BYTES", 2000)
    text = Page(report.write(run)).text
    assert "too large to read whole" in text
    assert "since sft" not in text, "a paired interval needs all rows"


def test_importing_the_report_loads_nothing_heavy() -> None:
    code = "import sys, cascade_core.report; print([m for m in ('jinja2', 'rich', 'torch', 'plotly', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
