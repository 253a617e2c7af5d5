"""The documentation as a site: it builds without a warning, shows every page, and loads nothing from the network."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REMOTE = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)
REMOTE_STYLE = re.compile(r"(?:url\(\s*|@import\s+)[\"']?(?:https?:)?//", re.IGNORECASE)


class Page(HTMLParser):
    """What a page loads by itself (`loaded`), and where its navigation leads (`navigation`)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.navigation: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.loaded += [values[name] for name in ("src", "srcset", "poster", "data") if name in values]
        if tag == "a":
            self.navigation += [values["href"]] if "md-nav__link" in values.get("class", "") else []
        elif "href" in values and values.get("rel") != "canonical":
            self.loaded.append(values["href"])


def build(site: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_site_builds_strictly_shows_every_page_and_loads_nothing_from_the_network(tmp_path: Path) -> None:
    build(tmp_path)
    pages = {path.relative_to(tmp_path).as_posix(): path.read_text("utf-8") for path in tmp_path.rglob("*.html")}
    sources = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert sources <= set(pages)
    assert sources <= set(Page(pages["index.html"]).navigation)
    assert "<blockquote>" not in pages["reference.html"]  # an example outside of a section "Examples:"
    loaded = [(name, target) for name, text in pages.items() for target in Page(text).loaded]
    assert any(target.endswith(".js") for _, target in loaded) and any(target.endswith(".css") for _, target in loaded)
    assert [entry for entry in loaded if REMOTE.match(entry[1])] == []
    styles = [*tmp_path.rglob("*.css"), *tmp_path.rglob("*.html")]
    assert [path.name for path in styles if REMOTE_STYLE.search(path.read_text("utf-8"))] == []
    assert [name for name, text in pages.items() if 'class="mermaid"' in text] == []  # drawn by a script from elsewhere


def test_what_a_page_loads_is_seen() -> None:
    page = Page('<script src="https://a/b.js"></script><link rel="icon" href="//c/d.png"><a href="https://e/">e</a>')
    assert page.loaded == ["https://a/b.js", "//c/d.png"] and all(map(REMOTE.match, page.loaded))
    assert Page('<a class="md-nav__link" href="f.html">f</a><a href="g.html">g</a>').navigation == ["f.html"]
    assert REMOTE_STYLE.search("@font-face{src:url('https://h/i.woff2')}") and not REMOTE_STYLE.search("url(../j.svg)")
