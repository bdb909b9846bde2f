"""A real browser, in which pages must say nothing and stay on this machine."""

import shutil

import pytest

from report.site.browsing import FLAGS

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs a browser: pip install playwright"
    )
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser):
    """Open an address; complaints, dialogs and requests beyond it fail the test."""
    contexts, troubles = [], []

    def opened(address, *, width=1280, dark=False):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        inside = ("data:", "blob:", address.partition("?")[0].rpartition("/")[0])

        def note(request):
            if not request.url.startswith(inside):
                troubles.append(request.url)

        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("requestfailed", lambda request: troubles.append(request.url))
        page.on("request", note)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []
