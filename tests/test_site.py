"""The site as mkdocs builds it, in Chromium: narrow and wide, its code and its search."""

from __future__ import annotations

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

ROOT = Path(__file__).parents[1]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
MKDOCS = shutil.which("mkdocs", path=str(Path(sys.executable).parent))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium and chromedriver on the path"),
    pytest.mark.skipif(MKDOCS is None, reason="pip install '.[docs]'"),
]
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
PAGES = [
    *(path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in sorted(ROOT.glob("docs/*.md"))),
    "api/index.html",
    "rules/split/axis-sizes-sum.html",
    "rules/graph/fused-wrongly.html",
    "rules/binding/array-count.html",
    "rules/operator/window-size.html",
]
LOOK = """
  const width = document.documentElement.clientWidth;
  const cut = [...document.querySelectorAll("pre, table")].filter((element) =>
    element.scrollWidth > element.clientWidth + 1
    && !["auto", "scroll"].includes(getComputedStyle(element).overflowX)
    && !["auto", "scroll"].includes(getComputedStyle(element.parentElement).overflowX));
  const narrow = [...document.querySelectorAll("th")].filter((cell) => {
    const style = getComputedStyle(cell);
    const shown = cell.offsetParent && cell.textContent.trim().length > 2;
    return shown && cell.clientWidth < 2 * Number.parseFloat(style.fontSize);
  });
  return [document.documentElement.scrollWidth - width, cut.length, narrow.length];
"""
COLOURS = "return new Set([...document.querySelectorAll('pre span')].map((e) => getComputedStyle(e).color)).size"
SOUGHT = {
    "find_package": "howto-c.html",
    "split/axis-sizes-sum": "rules/split/axis-sizes-sum.html",
    "context-unknown": "rules/onnxruntime/context-unknown.html",
    "887A0006": "logs.html#device-hung",
    "conformance": "conformance.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(120)
    yield driver
    driver.quit()


@pytest.mark.parametrize("width", [400, 1280])
def test_no_page_is_wider_than_the_window_and_no_code_is_cut_off(browser, site, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    looks = {}
    for page in PAGES:
        browser.get(site + page)
        looks[page] = browser.execute_script(LOOK)
    assert {page: look for page, look in looks.items() if look != [0, 0, 0]} == {}


@pytest.mark.parametrize("page", ["rules/split/axis-sizes-sum.html", "howto-c.html", "howto-onnxruntime.html"])
def test_code_is_coloured_without_the_network(browser, site, page):
    browser.get(site + page)
    assert browser.execute_script(COLOURS) >= 4


def test_links_to_the_former_page_of_rules_show_the_rule(browser, site):
    browser.get(f"{site}rules.html#onnxruntimecontext-unknown")
    script = "return document.querySelector(':target').parentElement.querySelector('a[href]').getAttribute('href')"
    assert browser.execute_script(script) == "rules/onnxruntime/context-unknown.html"


@pytest.mark.parametrize("query", SOUGHT)
def test_search(browser, site, query):
    browser.get(site + "index.html")
    script = """
      const field = document.getElementById("mkdocs-search-query");
      field.value = arguments[0];
      const links = [...document.querySelectorAll("#mkdocs-search-results a")].map((link) => link.href);
      field.dispatchEvent(new KeyboardEvent("keyup"));
      return links;
    """

    def found(driver):
        links = driver.execute_script(script, query)  # none yet at first; the index may not be loaded either
        return [link.removeprefix(site) for link in links]

    assert SOUGHT[query] in WebDriverWait(browser, 60, 1).until(found)[:10]
