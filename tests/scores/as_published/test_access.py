"""The released variants are reached from the package itself."""

import subprocess
import sys

import pytest

from qualms.scores import as_published


def test_the_papers_are_there_after_importing_the_package():
    code = "import qualms; print(qualms.scores.as_published.retina.nll([0.5], [1]))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert float(out.stdout) == pytest.approx(0.6931, abs=1e-4)


def test_an_unknown_paper_is_refused_with_the_known_ones():
    with pytest.raises(AttributeError, match="the papers are regression, retina"):
        as_published.cifar  # noqa: B018
