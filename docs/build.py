"""Builds the documentation site, offline: `python -m docs.build`, or `make docs`.

Pages are the files of `docs/pages`, the notebooks, the READMEs, and the reference that `reference` and `public_names`
make. Their code is run on recorded answers. Zensical makes the site; each page has a twin in Markdown, which `llms.txt`
lists.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from docs.figures import FigureFolder
from docs.first_screens import record_first_screens, write_first_screens
from docs.name_uses import examples_in
from docs.outside_formats import formats_page
from docs.page_runner import PageRunner
from docs.page_text import Page, notebook_text, plain_page, run_page
from docs.public_names import GROUPS, names_page
from docs.reference import commands_page, dimensions_page, metrics_page
from gamelens.local.sample_data import sample_files
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import running_sandbox

ROOT = Path(__file__).parents[1]
HERE = ROOT / "docs"
STAGE = ROOT / ".cache" / "site"
RECORDED = HERE / "recorded"
OUTSIDE = HERE / "outside"
SCENARIO = "demo"  # what `gl.connect()` has without a key, so that a reader's blocks show what the pages show
Source = tuple[str, str, Path]
"""Name, text and answers of a page whose code is run."""
READMES = {
    "README.md": "rooms/index.md",
    "src/gamelens/README.md": "rooms/source.md",
    "tests/README.md": "rooms/tests.md",
    "data/README.md": "rooms/data.md",
    "CONTRIBUTING.md": "rooms/contributing.md",
    "src/gamelens/sandbox/collector/README.md": "rooms/collector.md",
    "src/gamelens/wire/HOW_TO.md": "rooms/wire-how-to.md",
    "CHANGELOG.md": "rooms/changelog.md",
    **{
        f"src/gamelens/{room}/README.md": f"rooms/{room}.md"
        for room in (
            *("client", "notebook", "investigations", "analysis", "local", "assistant"),
            *("messages", "raw_events", "cli", "sandbox", "simulator", "wire"),
        )
    },
}
"""Pages of files that have their home elsewhere."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
_REPLAYS = 'replay="answers"'
_FIRST_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.DOTALL)


def pages(figures: FigureFolder) -> Iterator[Page]:
    """Yield every page, with its code run. *figures* takes up what it draws."""
    runner, texts = PageRunner(), []
    for name, text, answers in sources():
        with runner.page(answers):
            page = run_page(name, text, runner, partial(figures.add, page=name))
        texts.append((name, page.title, text))
        yield page
    for path, name in READMES.items():
        text = _PICTURE.sub("", (ROOT / path).read_text(encoding="utf-8"))
        yield plain_page(name, _with_site_links(text, path, name))
    yield plain_page("reference/metrics.md", metrics_page())
    yield plain_page("reference/dimensions.md", dimensions_page())
    yield plain_page("reference/commands.md", commands_page())
    yield plain_page("reference/outside-formats.md", formats_page())
    examples = examples_in(texts)
    yield from (plain_page(f"reference/{group}.md", names_page(group, examples)) for group in GROUPS)


def sources() -> Iterator[Source]:
    """Yield the notebooks and the pages of `docs/pages`."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        yield f"tutorial/{path.stem}.md", notebook_text(path), ROOT / "data" / "recorded"
    yield from _own_pages()


def _own_pages() -> Iterator[Source]:
    for path in sorted((HERE / "pages").rglob("*.md")):
        yield path.relative_to(HERE / "pages").as_posix(), path.read_text(encoding="utf-8"), RECORDED


def record() -> None:
    """Ask what the pages ask of a sandbox with new players, and write its answers down.

    So are the first screens of reports, and the README's picture is drawn.
    """
    shutil.rmtree(RECORDED, ignore_errors=True)
    RECORDED.mkdir()
    runner, figures = PageRunner(), FigureFolder()
    with TemporaryDirectory() as folder, running_sandbox(Path(folder)) as ready:
        ensure_populated(ready, Path(folder), SCENARIO)
        os.environ |= environment_of(ready) | {"GAMELENS_STATE_DIR": folder}
        shutil.copytree(sample_files(), OUTSIDE, dirs_exist_ok=True)
        _draw_picture(runner)
        for name, text, answers in sorted(_own_pages(), key=lambda page: _REPLAYS in page[1]):  # those come last
            with runner.page(answers, is_recording=True):
                run_page(name, text, runner, partial(figures.add, page=name))
        record_first_screens(Path(folder))


def _draw_picture(runner: PageRunner) -> None:
    """Draw what the first block of the README shows, for its readers by day and by night."""
    code = _FIRST_BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    with runner.page(RECORDED, is_recording=True):
        runner.run(f"from gamelens.notebook import charts\n{code}")
        for theme in ("light", "dark"):
            path = ROOT / "data" / "pictures" / f"retention_{theme}.png"
            runner.run(f"charts.use_theme({theme!r})\ncharts.save(retention.lens.plot(), {str(path)!r})")
        runner.run("charts.use_theme('auto')")


def _with_site_links(text: str, path: str, name: str) -> str:
    """Return a README with links to other READMEs as links to their pages, and other files as plain text."""

    def replaced(link: re.Match[str]) -> str:
        mark, shown, target, anchor = link[1], link[2], link[3], link[4] or ""
        if not target or "://" in target:
            return link[0]
        file = os.path.normpath(PurePosixPath(path).parent / target)
        page = READMES.get(file) or READMES.get(f"{file}/README.md")
        if page is None:
            return shown if not mark else ""
        return f"[{shown}]({os.path.relpath(page, PurePosixPath(name).parent)}{anchor})"

    return _LINK.sub(replaced, text)


def build(site: Path) -> list[Page]:
    """Write the site into the folder *site* and return its pages."""
    shutil.rmtree(STAGE, ignore_errors=True)
    source, figures = STAGE / "docs", FigureFolder()
    made = [*pages(figures)]
    for page in made:
        _write(source / page.name, page.source)
    figures.write(source)
    write_first_screens(source)
    shutil.copytree(HERE / "assets", source / "assets")
    shutil.copy(HERE / "zensical.toml", STAGE)
    zensical = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    subprocess.run(zensical, cwd=STAGE, check=True)  # noqa: S603 our own command
    for page in made:
        _write(STAGE / "site" / page.name, page.twin)
    _write(STAGE / "site" / "llms.txt", _listing(made))
    for name in ("404.html", "sitemap.xml"):  # of a web server, with absolute addresses
        (STAGE / "site" / name).unlink()
    shutil.rmtree(site, ignore_errors=True)
    shutil.move(STAGE / "site", site)
    return made


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _listing(made: list[Page]) -> str:
    """Return `llms.txt`: every page of the navigation, with its first sentence."""
    project = tomllib.loads((HERE / "zensical.toml").read_text(encoding="utf-8"))["project"]
    by_name = {page.name: page for page in made}
    lines = [f"# {project['site_name']}", f"> {project['site_description']}"]
    for section in project["nav"]:
        for title, entries in section.items():
            lines.append(f"## {title}")
            found = [by_name[name] for name in names_in(entries)]
            lines.append("\n".join(f"- [{page.title}]({page.name}): {page.summary}" for page in found))
    return "\n\n".join(lines) + "\n"


def names_in(entries: object) -> Iterator[str]:
    """Yield the pages of a part of the navigation."""
    if isinstance(entries, str):
        yield entries
    for entry in entries if isinstance(entries, list) else entries.values() if isinstance(entries, dict) else ():
        yield from names_in(entry)


def main() -> None:
    """Build the site and say how long it took, or record the answers that it is built from."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "site")
    parser.add_argument("--record", action="store_true", help="write the answers of a new sandbox to docs/recorded")
    given = parser.parse_args()
    if given.record:
        record()
        return
    out: Path = given.out
    begun = time.monotonic()
    made = build(out)
    print(f"{len(made)} pages in {out}, in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
