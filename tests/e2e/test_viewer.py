"""Guards what a person does with the viewer in a real browser: look, step, filter, share.

And that what guests and models write can do nothing in it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page
from viewed_runs import make_result, make_run, make_step, record, varied_run
from viewing import DRAWN, SHOWN_STEP, rows, viewing


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a run with several agents, and texts that mean harm."""
    with viewing(varied_run(tmp_path_factory.mktemp("recorded") / "run")) as url:
        yield url


def test_a_run_is_looked_through_by_keyboard(page: Page, recorded: str) -> None:
    page.open(recorded, rows(5))
    page.press("j", "j", "Enter")
    page.until(f"{DRAWN} && location.pathname.endsWith('/trial')")
    assert page.text("#task") == "copy-csv"
    assert page.text("#chips").split("\n") == ["completed", "score 1", "strict 0", "agent says done"]
    assert "the columns are in another order" in page.text("#head")
    page.press("j", "ArrowDown", "k")
    page.until(f"{SHOWN_STEP}?.startsWith('Step 2')")
    assert page.run("location.hash") == "#step=2"
    assert "The table is best read directly." in page.text("#body")
    assert "mean   2.0  5.0" in page.text("#body")
    page.press("End")
    page.until(f"{SHOWN_STEP}?.startsWith('Step 7')")
    page.press("j", "j")
    assert page.run("location.hash") == "#step=7"
    page.press("n")
    page.until("document.querySelector('#who')?.innerText.startsWith('computer_13')")
    page.press("p")
    page.until("document.querySelector('#who')?.innerText.startsWith('code+gui')")
    page.press("?")
    page.until("document.querySelector('#keys').open")
    page.press("?", "u")
    page.until(rows(5))


def test_a_link_leads_to_a_step_and_its_marks(page: Page, recorded: str) -> None:
    page.open(recorded, rows(5))
    link = page.run("document.querySelector('#rows tr:nth-child(3) a').href")
    page.open(f"{link}#step=2", DRAWN)
    page.until(f"{SHOWN_STEP}?.startsWith('Step 2')")
    assert page.run("document.querySelectorAll('#screens figure:first-child .spot').length") == 2
    drag = "document.querySelector('#screens .spot.drag line')"
    assert page.run(f"['x1','y1','x2','y2'].map((name) => {drag}.getAttribute(name))") == ["300", "200", "900", "600"]
    assert "dragged at 900, 600" in page.run("document.querySelector('#screens img').alt")
    page.press("z")
    page.until("document.querySelector('#large').open && document.querySelector('#large svg')")
    page.press("j", "Escape")
    page.until(f"!document.querySelector('#large').open && {SHOWN_STEP}?.startsWith('Step 3')")


def test_clicks_are_drawn_where_they_are_on_a_screen_larger_than_the_picture(page: Page, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["small"], picture_px=640)
    record(run, "t", "small", [make_step(1)], make_result("t", "small"))
    with viewing(run) as url:
        page.open(f"{url}trial?at=t/small/0/attempt-0", DRAWN)
        place = page.run(
            "(({ cx, cy }) => [cx.baseVal.value, cy.baseVal.value])(document.querySelector('.spot circle'))"
        )
        assert place == [600, 400]
        # The mark lies over the same place of the picture, however that is fitted into its frame.
        fitted = page.run("""(() => {
            const image = document.querySelector('#screens img').getBoundingClientRect();
            const mark = document.querySelector('.spot .core').getBoundingClientRect();
            const scale = Math.min(image.width / 1280, image.height / 800);
            const left = image.x + (image.width - 1280 * scale) / 2, top = image.y + (image.height - 800 * scale) / 2;
            return [(mark.x + mark.width / 2 - left) / scale, (mark.y + mark.height / 2 - top) / scale];
        })()""")
        assert fitted == pytest.approx([600, 400], abs=2)


def test_trials_are_filtered_and_the_filter_is_kept(page: Page, recorded: str) -> None:
    page.open(recorded, rows(5))
    page.press("/")
    page.type("another order")
    page.until(rows(1))
    page.run("document.querySelector('#filter').reset()")
    page.until(rows(5))
    page.run("""(() => { const agent = document.querySelector('#filter').elements.agent;
        agent.value = 'oracle'; agent.dispatchEvent(new Event('input', { bubbles: true })); })()""")
    page.until(rows(2))
    assert page.run("location.search") == "?agent=oracle"
    page.run("document.querySelector('[data-sort=score]').click()")
    page.until("document.querySelector('[aria-sort=ascending] [data-sort=score]')")
    page.run("document.querySelector('#rows a').click()")
    page.until("document.querySelector('#place')?.innerText === '1 of 2'")
    page.press("u")
    page.until(rows(2))


def test_text_that_means_harm_is_only_text(page: Page, recorded: str) -> None:
    page.open(recorded, rows(5))
    page.open(page.run("document.querySelector('#rows tr:nth-child(5) a').href"), DRAWN)
    page.run("document.querySelectorAll('details').forEach((found) => { found.open = true; })")
    for number in (1, 2, 3):
        page.until(f"{SHOWN_STEP}?.startsWith('Step {number}')")
        seen = page.text("body")
        assert "<script>window.harmed = 1</script>" in seen
        assert not {"\u202e", "\u2066", "\x1b", "\x07"} & set(seen)
        page.press("j")
    page.run("document.querySelector('.block button').click()")
    page.until("Array.from(document.querySelectorAll('.block pre')).some((pre) => pre.textContent.length > 250000)")
    assert page.run(
        "[typeof window.harmed, document.querySelectorAll('#body img, #body script, #body svg').length]"
    ) == [
        "undefined",
        0,
    ]


@pytest.mark.parametrize("width", [480, 1280])
def test_nothing_sticks_out_of_the_page(page: Page, recorded: str, width: int) -> None:
    page.resize(width, 800, is_dark=width == 480)
    try:
        for path in ("", "trial?at=hostile/" + folder_of(recorded, page)):
            page.open(recorded + path, "document.querySelector('#rows tr, #screens svg')")
            assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        page.resize(1280, 800)


def folder_of(url: str, page: Page) -> str:
    """Return the rest of the key of the trial with harmful texts."""
    page.open(url, rows(5))
    return str(page.run("document.querySelector('#rows tr:nth-child(5)').dataset.key.split('/').slice(1).join('/')"))
