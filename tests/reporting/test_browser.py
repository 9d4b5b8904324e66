"""The report in a real browser, as people and as screen readers meet it."""

import base64
from itertools import pairwise

import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bisvm
from bisvm import BilevelSVC
from tests.reporting.conftest import SCRIPT
from tools.browser import Browser, find_chromium

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason="no Chromium: apt-get install chromium, or set BISVM_CHROMIUM",
)


@pytest.fixture(scope="module")
def page(reported, tmp_path_factory):
    """One browser with the report open."""
    profile = tmp_path_factory.mktemp("profile")
    with Browser(CHROMIUM, profile) as browser:
        browser.show()
        browser.open(reported / "out.html")
        yield browser


def test_it_opens_without_a_complaint_and_asks_for_nothing(page):
    assert page.complaints() == []
    (only,) = page.requests()
    assert only.startswith("file://") and only.endswith("out.html")
    assert page.evaluate("document.title") == "Can we predict 'target'?"


def test_a_script_among_the_data_is_shown_and_not_run(page):
    assert page.evaluate("document.scripts.length") == 1
    assert SCRIPT in page.evaluate("document.body.innerText")
    # Even one that had got onto the page would not run.
    page.evaluate(
        "(() => { const s = document.createElement('script');"
        " s.textContent = 'window.harmed = true'; document.body.append(s);"
        " s.remove(); })()"
    )
    assert page.evaluate("window.harmed === undefined")
    (said,) = page.complaints()
    assert "Content Security Policy" in said
    page.events.clear()


def test_every_picture_is_there_and_has_a_name(page):
    sizes = page.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth])")
    assert len(sizes) == 3 and all(done and width > 100 for done, width in sizes)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    names = page.names_of_images()
    assert len(names) >= 6 and all(len(name) > 8 for name in names)


def test_headings_go_down_one_at_a_time_and_tables_have_heads(page):
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    bare = "[...document.querySelectorAll('table')].filter(t => !t.caption || !t.tHead)"
    assert page.evaluate(f"{bare}.length") == 0


COLUMNS = "document.querySelector('table.sortable.columns')"
FIRST = f"[...{COLUMNS}.tBodies[0].rows].map(r => r.cells[0].textContent)"


def test_tables_sort_and_narrow_down(page):
    before = page.evaluate(FIRST)
    assert before[0] == SCRIPT
    page.evaluate(f"{COLUMNS}.tHead.rows[0].cells[0].firstChild.click()")
    by_name = page.evaluate(FIRST)
    assert sorted(by_name) == sorted(before) and by_name != before
    head = f"{COLUMNS}.tHead.rows[0].cells[2]"
    page.evaluate(f"{head}.firstChild.click()")
    assert page.evaluate(f"{head}.getAttribute('aria-sort')") == "descending"
    # The only column with missing values.
    assert page.evaluate(FIRST)[0] == "column 1"
    page.evaluate(f"{head}.firstChild.click()")
    assert page.evaluate(FIRST)[-1] == "column 1"
    page.evaluate(
        f"(() => {{ const i = {COLUMNS}.parentElement.previousSibling.control;"
        " i.value = 'COLUMN 1'; i.dispatchEvent(new Event('input')); })()"
    )
    rows = f"[...{COLUMNS}.tBodies[0].rows].filter(r => !r.hidden).length"
    assert page.evaluate(rows) == 1
    # Tables that fit on a screen have no such box.
    assert page.evaluate("document.querySelectorAll('input[type=search]').length") == 1
    # A bar has no order of its own.
    bar = "document.querySelector('table.sortable:not(.columns) th:last-child')"
    assert page.evaluate(f"{bar}.textContent") == "bar"
    assert page.evaluate(f"{bar}.querySelector('button') === null")
    assert page.complaints() == []


def test_pictures_tell_their_values_to_a_pointer_and_to_keys(page):
    figure = "document.querySelectorAll('figure[data-points]')[0]"
    page.evaluate(f"{figure}.focus()")
    page.key("ArrowRight")
    output = f"{figure}.querySelector('output').textContent"
    assert page.evaluate(output).startswith("evaluation 1: loss ")
    page.key("ArrowRight")
    assert page.evaluate(output).startswith("evaluation 2: loss ")
    page.evaluate(f"{figure}.blur()")
    assert page.evaluate(output) == ""
    last = "[...document.querySelectorAll('figure[data-points]')].at(-1)"
    page.evaluate(f"{last}.scrollIntoView({{block: 'center'}})")
    x, y = page.evaluate(
        f"(() => {{ const b = {last}.querySelector('img').getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    page.point(x, y)
    told = page.evaluate(f"{last}.querySelector('output').textContent")
    assert " = " in told and ": 0." in told
    assert page.complaints() == []


def test_a_threshold_can_be_moved(page):
    box = "document.querySelector('[data-thresholds]')"
    output = f"{box}.querySelector('output').textContent"
    assert page.evaluate(output).endswith("The model decides here.")
    place = f"{box}.querySelector('.here').getAttribute('cy')"
    before = page.evaluate(place)
    page.evaluate(
        f"(() => {{ const i = {box}.querySelector('input'); i.value = i.max;"
        " i.dispatchEvent(new Event('input')); })()"
    )
    assert page.evaluate(place) != before
    assert "(recall 100.0%)" in page.evaluate(output)
    assert page.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1000])
def test_light_dark_wide_and_narrow(page, dark, width):
    page.show(dark=dark, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert contrast(page, "body", "body") > 7
    assert contrast(page, "figcaption", "body") > 4.5
    assert contrast(page, "a[href='#columns']", "body") > 4.5
    inverted = page.evaluate(
        "getComputedStyle(document.querySelector('img:not(.photo)')).filter"
    )
    assert inverted.startswith("invert(1)") == dark
    picture = base64.b64decode(page.screenshot())
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    page.show()


def test_a_phone_shows_whole_tables(page, reported, tmp_path):
    data = load_wine(as_frame=True)
    model = make_pipeline(StandardScaler(), BilevelSVC("rbf", learn=(), cv=3))
    train, test = slice(None, None, 2), slice(1, None, 2)
    model.fit(data.data[train], data.target[train])
    path = bisvm.report(
        model, data.data[train], data.target[train], tmp_path / "wine.html",
        X_test=data.data[test], y_test=data.target[test],
    )  # fmt: skip
    page.show(width=390)
    page.open(path)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide = "[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > "
    labels = f"{wide} e.clientWidth + 1).map(e => e.ariaLabel)"
    assert page.evaluate(labels) == []
    # Long names are broken, so that there is room for bars.
    bar = "document.querySelector('table.sortable .bar').getBoundingClientRect().width"
    assert page.evaluate(bar) > 50
    page.show()
    page.open(reported / "out.html")


def contrast(page, text, ground):
    """(L1 + 0.05) / (L2 + 0.05) of the Web Content Accessibility Guidelines."""
    colours = [
        page.evaluate(
            f'getComputedStyle(document.querySelector("{selector}"))["{name}"]'
            ".match(/\\d+/g).slice(0, 3).map(Number)"
        )
        for selector, name in ((text, "color"), (ground, "backgroundColor"))
    ]
    light, dark = sorted((luminance(c) for c in colours), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (value / 255 for value in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
