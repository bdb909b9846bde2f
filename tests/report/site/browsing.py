"""What tests in a browser share: waiting, and the findings of axe."""

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPEN_ALL = "document.querySelectorAll('details').forEach(d => { d.open = true; });"
DRAW_ALL = "dispatchEvent(new Event('beforeprint'))"


def wait(page, condition):
    """Wait for a condition; the policy forbids what Playwright does itself."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never true: {condition}")


def settle(page):
    """Wait until all data are there."""
    wait(page, "[...qualms.waiting.keys()].length === 0")


def axe_findings(page):
    """Return the serious findings of axe on a page."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="needs axe: pip install axe-playwright-python",
    ).Axe()
    # It would read the style sheet once more, which the policy forbids.
    found = axe.run(page, options={"preload": False}).response["violations"]
    return [
        (each["id"], each["nodes"][0]["html"][:200])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
