"""Guards the HTML page: what guests and models wrote must stay text, and the page must need nothing beside it."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from synthetic_runs import add_trial, lock_of, model_agent, new_run, plausible_run, result_of, step_of

from deskfork.records.reader import read_run
from deskfork.report.build import build_report
from deskfork.report.page import render_page
from page_reader import PageReader

HOSTILE = '<script>alert(1)</script>\x00\x1b[2J\u202e$\\frac{x}$ \'onload="x" 😀 &amp;'


@pytest.fixture(scope="module")
def plausible(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("page")
    run = plausible_run(folder / "runs", agents=["a", "b", "c"], pairs=4, repeats=2)
    page = folder / "pages" / "report.html"
    return render_page(build_report([read_run(run.root)]), page), page


def test_the_page_is_whole_and_self_contained(plausible: tuple[str, Path]) -> None:
    page, _ = plausible
    read = PageReader(page)
    assert not {"script", "iframe", "object", "embed", "link", "base", "form"} & set(read.elements)
    assert read.elements.count("svg") >= 5
    assert all(value.startswith("data:") for value in read.fetched)
    assert "@import" not in page
    assert len(page) < 400_000


def test_the_page_tells_every_section_and_trial(plausible: tuple[str, Path]) -> None:
    read = PageReader(plausible[0])
    ids = {value for name, value in read.attributes if name == "id"}
    wanted = {"success", "repeats", "comparisons", "effort", "phases", "actions", "gui_lines", "self_report"}
    assert wanted | {"failure_modes", "evaluator", "wording", "pair", "trials"} <= ids
    assert {link[1:] for link in read.links() if link.startswith("#") and "_" not in link[:3]} <= ids
    # Two wordings of four goals: three agents twice, and both bounds once.
    assert plausible[0].count('<tr><td class="fixed"><a href="./') == 8 * (3 * 2 + 2)


def test_links_lead_to_the_trials_folders(plausible: tuple[str, Path]) -> None:
    text, page = plausible
    links = {link for link in PageReader(text).links() if "trials/" in link}
    assert len(links) == 8 * (3 * 2 + 2)
    for link in links:
        assert (page.parent / unquote(link) / "result.json").resolve().is_file()


def test_what_guests_wrote_is_text(tmp_path: Path) -> None:
    lock = lock_of(["t-a", "t-v"], [{**model_agent("x"), "name": HOSTILE}])
    run = new_run(tmp_path / "runs <b> 'x'", lock.model_copy(update={"provider": HOSTILE}))
    step = step_of(1, f"open({HOSTILE!r}, 'w').write('x')", {"file": 1}, refused=HOSTILE, error=HOSTILE)
    for task in ("t-a", "t-v", HOSTILE):
        for repeat, score in enumerate((None, 0.0, 1.0)):
            verdict = {"score": score, "reason": HOSTILE, "metrics": [{"metric": HOSTILE, "score": score}]}
            mixes = {"line_mix": {"gui": 1 + repeat, HOSTILE: 2}, "phases_s": {HOSTILE: 1.0, "agent": 2.0}}
            told = {"model": HOSTILE, "verdict": verdict, "error": HOSTILE, "ending": HOSTILE}
            add_trial(run, result_of(task, HOSTILE, score, repeat, **told, **mixes), [step])
    page = render_page(build_report([read_run(run.root)]), tmp_path / "page.html")
    read = PageReader(page)
    assert "script" not in read.elements
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in read.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e]", page)
    assert all(link.startswith(("./", "#")) for link in read.links())


def test_a_report_with_nothing_in_it_is_a_page(tmp_path: Path) -> None:
    run = new_run(tmp_path / "runs", None)
    assert "svg" not in PageReader(render_page(build_report([read_run(run.root)]), tmp_path / "x.html")).elements
    add_trial(run, result_of("t", "a", None))
    assert "Trials without a score" in render_page(build_report([read_run(run.root)]), tmp_path / "x.html")


def test_the_same_report_is_the_same_page(tmp_path: Path) -> None:
    run = plausible_run(tmp_path / "runs", agents=["a", "b"], pairs=2, repeats=1)
    pages = [render_page(build_report([read_run(run.root)]), tmp_path / "x.html") for _ in range(2)]
    assert pages[0] == pages[1]
