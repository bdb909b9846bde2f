"""Where the pages of the documentation are."""

from pathlib import Path


def documentation() -> dict[str, Path]:
    """Map each page's name to its file, which a wheel carries within the package."""
    package = Path(__file__).parent
    for folder in (package / "docs", package.parents[1] / "docs"):
        pages = sorted(folder.glob("*.md"))
        if pages:
            return {page.stem: page for page in pages}
    return {}
