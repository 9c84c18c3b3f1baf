"""The page in a browser: Chromium without a window, driven over its own protocol. Skipped where there is none."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from dmlsplit.checking.columns import LEVELS, RELEASES
from tests.report.contrast import contrast
from tests.report.html import pages

pytest.importorskip("jinja2")
webdriver = pytest.importorskip("selenium.webdriver")

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium and chromedriver on the path: the page is not driven"
)

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900",
)  # fmt: skip

LEVELS_RISE = ["cut", "rank 3", "wide", "sum"]

# Every text with its colour and the background it stands on.
COLOURS = """
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const found = {};
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const style = getComputedStyle(element);
    if (!own || style.display === "none" || element.closest("svg, script, style")) continue;
    let back = element, colour = [0, 0, 0, 0];
    while (back && (colour.length < 3 || colour[3] === 0)) {
      colour = parse(getComputedStyle(back).backgroundColor);
      back = back.parentElement;
    }
    found[style.color + " on " + colour.join()] ??= [parse(style.color), colour, element.outerHTML.slice(0, 90)];
  }
  return Object.values(found);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(120)
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(pages.page(pages.small()), "utf-8")
    return path


@pytest.fixture
def small(browser, path):
    """The small page, freshly loaded and light."""
    show(browser, path)
    return browser


def show(browser, path, *, dark=False, media="screen", width=1280):
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get("about:blank")
    browser.get(path.as_uri())


def names(browser, table=".operators"):
    """The operators that the first table shows, from the top."""
    script = (
        "return [...document.querySelector(arguments[0]).tBodies[0].rows].filter((r) => !r.hidden)"
        ".map((r) => r.querySelector('a').textContent)"
    )
    return browser.execute_script(script, table)


def heading(browser, name):
    return next(b for b in browser.find_elements("css selector", ".operators th button") if b.text == name)


def test_runs_its_own_script_only(small):
    assert small.title == "dmlsplit: 11 operators, 8 ok"
    assert [entry for entry in small.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    small.execute_script(
        "const s = document.createElement('script'); s.textContent = 'document.title=1'; document.body.append(s)"
    )
    assert small.title == "dmlsplit: 11 operators, 8 ok"


def test_asks_the_network_for_nothing(small):
    resources = small.execute_script("return performance.getEntriesByType('resource').map((r) => r.name)")
    assert resources == []


def test_sorting(small):
    before = names(small)
    for column, check in (
        ("Operator", lambda shown: shown.index("item 9") < shown.index("item 10") < shown.index("sum")),
        ("From level", lambda shown: [n for n in shown if n in LEVELS_RISE] == LEVELS_RISE),
        ("Findings", lambda shown: shown[-1] == "sum"),
        ("#", lambda shown: shown == before),
    ):  # fmt: skip
        heading(small, column).click()
        up = names(small)
        assert check(up), column
        heading(small, column).click()
        assert sorted(names(small)) == sorted(up)
        assert names(small) != up, column
        ordered = small.find_elements("css selector", ".operators th[aria-sort]")
        assert [(h.text, h.get_attribute("aria-sort")) for h in ordered] == [(column, "descending")]


def test_sorting_by_keyboard(small):
    button = heading(small, "Findings")
    small.execute_script("arguments[0].focus()", button)
    ActionChains(small).send_keys(Keys.ENTER, Keys.ENTER).perform()
    assert names(small)[0] == "sum"


def test_filtering(small):
    field, count = small.find_element("id", "filter"), small.find_element("id", "count")
    assert count.text == "11 operators"
    field.send_keys("INT64 4_1")
    assert names(small) == names(small, ".levels") == ["wide"]
    assert count.text == "1 of 11 operators"
    articles = [a for a in small.find_elements("css selector", "article.operator") if a.is_displayed()]
    assert [a.find_element("tag name", "h3").text for a in articles] == ["wide ✓ ok"]
    files = small.find_elements("css selector", ".file, .files li")
    assert [f.is_displayed() for f in files] == [True, False] * 2  # a file without a match is out of the way
    field.clear()
    field.send_keys("split/axis-sizes-sum")  # a rule, which the operator's findings name
    assert names(small) == ["sum"]
    field.clear()
    field.send_keys("no such thing")
    assert names(small) == []
    assert small.find_element("id", "none").is_displayed()
    field.clear()
    field.send_keys(Keys.SPACE, Keys.BACKSPACE)
    assert len(names(small)) == 8
    assert all(f.is_displayed() for f in files)
    small.find_element("css selector", "#verdict option:nth-child(3)").click()
    assert names(small) == ["sum"]


def test_reason_on_hover(small):
    tip = small.find_element("id", "tip")
    cell = small.find_element("css selector", ".levels td.w")
    assert not tip.is_displayed()
    ActionChains(small).move_to_element(cell).perform()
    assert tip.is_displayed()
    assert "runs rewritten" in tip.text
    assert "INT64 is copied as UINT32" in tip.text
    ActionChains(small).move_to_element(tip).pause(0.4).perform()
    assert tip.is_displayed()  # it stays while it is read
    ActionChains(small).send_keys(Keys.ESCAPE).perform()
    assert not tip.is_displayed()
    ActionChains(small).move_to_element(cell).move_to_element(small.find_element("tag name", "h1")).pause(0.4).perform()
    assert not tip.is_displayed()


def active(browser):
    return browser.execute_script(
        "const c = document.activeElement; return [c.parentElement.rowIndex, c.cellIndex, c.getAttribute('aria-label')]"
    )


def test_matrix_by_keyboard(small):
    grid = small.find_element("css selector", ".levels")
    assert grid.get_attribute("role") == "grid"
    assert len(grid.find_elements("css selector", "td[tabindex]")) == 1  # one stop of the Tab key
    small.execute_script("arguments[0].querySelector('td[tabindex]').focus()", grid)
    assert active(small) == [2, 1, "runs"]
    ActionChains(small).send_keys(Keys.ARROW_DOWN).perform()
    assert active(small) == [3, 1, "refused"]
    tip = small.find_element("id", "tip")
    assert tip.is_displayed()
    assert "add up to 3" in tip.text
    focused = small.switch_to.active_element
    assert focused.get_attribute("aria-describedby") == "tip"
    assert len(grid.find_elements("css selector", "td[tabindex]")) == 1
    ActionChains(small).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN).perform()
    assert active(small) == [4, 2, "runs rewritten"]
    ActionChains(small).send_keys(Keys.END).perform()
    assert active(small)[1:] == [len(LEVELS.columns) + len(RELEASES.columns), "runs"]
    ActionChains(small).send_keys(Keys.HOME, Keys.ARROW_LEFT).perform()
    assert active(small)[1] == 1
    ActionChains(small).send_keys(Keys.ENTER).perform()
    time.sleep(0.2)
    assert small.current_url.endswith("#op-2")
    assert small.switch_to.active_element.text == "wide ✓ ok"  # reading goes on there


def test_matrix_keeps_a_stop_when_filtered(small):
    small.find_element("id", "filter").send_keys("INT64")
    (stop,) = small.find_elements("css selector", ".levels td[tabindex='0']")[:1]
    assert stop.is_displayed()


def test_everything_is_reached_by_tab(small):
    seen = set()
    for _ in range(60):
        ActionChains(small).send_keys(Keys.TAB).perform()
        element = small.switch_to.active_element
        seen.add(element.get_attribute("id") or element.get_attribute("class") or element.tag_name)
    assert {"skip", "filter", "verdict", "button", "a", "scroll"} <= seen


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast(browser, path, dark):
    """WCAG 2.1 AA: 4.5 for every text as it is drawn."""
    show(browser, path, dark=dark)
    found = browser.execute_script(COLOURS)
    assert len(found) > 8

    def as_hex(channels):
        return "#" + "".join(f"{round(c):02x}" for c in channels[:3])

    low = [(example, as_hex(a), as_hex(b)) for a, b, example in found if contrast(as_hex(a), as_hex(b)) < 4.5]
    assert low == []


def test_narrow(browser, path):
    show(browser, path, width=360)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


def test_print_shows_everything(browser, path):
    show(browser, path, media="print", dark=True)
    style = "return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])"
    assert browser.execute_script(style, ".tools", "display") == "none"
    assert browser.execute_script(style, "body", "color") == "rgb(27, 35, 48)"  # dark ink, whatever the screen has
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]) > 50_000


def test_pictures(small):
    figure = small.find_element("css selector", ".picture svg")
    assert figure.get_attribute("role") == "img"
    assert figure.get_attribute("aria-label").startswith("Split of FLOAT32 [1, 1, 6, 2] along axis 2 into 3 outputs.")
    filled = small.execute_script("return getComputedStyle(document.querySelector('.picture .p1')).fill")
    assert filled == "rgb(240, 184, 61)"


def test_without_script(browser, path):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(browser, path)
        assert browser.find_element("css selector", ".operators tbody").is_displayed()
        assert not browser.find_element("id", "tools").is_displayed()
        assert "INT64 is copied as UINT32" in browser.find_element("css selector", "#op-2 .reasons").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.slow
def test_thousands_of_operators(browser, tmp_path):
    """Every control does as it does with few."""
    path = tmp_path / "many.html"
    path.write_text(pages.page(pages.many(2000, distinct=400)), "utf-8")
    assert os.path.getsize(path) < 12_000_000
    show(browser, path)
    script = "const f = document.getElementById('filter'); f.value = '{}'; f.dispatchEvent(new Event('input'))"

    def count():
        return browser.find_element("id", "count").text

    browser.execute_script("document.querySelector('.operators th button').click()")
    browser.execute_script(script.format("layers.1999/"))
    assert count() == "1 of 2,000 operators"
    browser.execute_script(script.format(""))
    assert count() == "2,000 of 2,000 operators"
    browser.execute_script("document.querySelector('.matrix').open = true")
    assert browser.find_element("css selector", ".matrix").is_displayed()


NARROW = """
  const width = document.documentElement.clientWidth;
  const beyond = (selector) =>
    [...document.querySelectorAll(selector)].filter((element) => element.getBoundingClientRect().right > width).length;
  return {
    page: document.documentElement.scrollWidth - width,
    badges: beyond(".operators .badge"),
    tables: beyond(".members, .common, .operators"),
  };
"""


@pytest.mark.parametrize("judges", [1, 2])
def test_at_400_pixels_only_the_grid_of_levels_scrolls(browser, tmp_path, judges):
    path = tmp_path / "narrow.html"
    path.write_text(pages.page(pages.small()) if judges == 1 else pages.page(pages.twice(), judges=2), "utf-8")
    show(browser, path, width=400)
    assert browser.execute_script(NARROW) == {"page": 0, "badges": 0, "tables": 0}
    script = "return getComputedStyle(document.querySelector('.operators td[data-judge]'), '::before').content"
    if judges == 2:
        assert browser.execute_script(script).startswith('"feature level ')
    heading(browser, "Operator").click()
    assert "item 9" in names(browser)
