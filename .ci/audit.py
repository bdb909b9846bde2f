"""Look for known vulnerabilities in the lock, by pip-audit.

The result is 0 where it has none, 1 where it has some, and 2, with one sentence, where
the service that knows them cannot be reached, which pip-audit tells in several ways.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNREACHABLE = (
    "pip-audit's service cannot be reached from here, so that nothing was audited. "
    "Run make audit where the Python Package Index itself can be reached."
)


def audit() -> subprocess.CompletedProcess[str]:
    """Run pip-audit on the lock."""
    words = ["tool", "run", "-q", "pip-audit", "-r", "requirements.lock", "-f", "json"]
    return subprocess.run(
        [ROOT / ".venv" / "bin" / "uv", *words, "--require-hashes", "--disable-pip"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def answer(output: str) -> tuple[int, str]:
    """Say what pip-audit's JSON means: the result of this program, and a text."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError):
        return 2, UNREACHABLE
    audited = [package for package in packages if "skip_reason" not in package]
    if not audited:
        return 2, UNREACHABLE
    lines = [
        f"{package['name']} {package['version']}: {flaw['id']}, mended in "
        f"{', '.join(flaw['fix_versions']) or 'no version yet'}"
        for package in audited
        for flaw in package["vulns"]
    ]
    total = f"{len(audited)} of {len(packages)} packages audited, {len(lines)} flaws"
    return int(bool(lines)), "\n".join([*lines, total])


if __name__ == "__main__":
    result, text = answer(audit().stdout)
    print(text)
    sys.exit(result)
