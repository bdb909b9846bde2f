"""The folder of a run: the one place that knows what lies in it, and where.

    OUT/<benchmark>/<hash>/
        spec.json           what the run is
        environment.json    what it runs on: versions, device, command
        lock                held by the process that works on the run
        log.txt             all that this process prints
        log.jsonl           one line for each epoch
        items.json          the items that a rule chose for training
        features/           cached features, while a head is trained on them
        checkpoint.pt       the last checkpoint, and checkpoint.previous.pt before it
        predictions/        the predictions of each split
        failed.json         why the last attempt failed
        done.json           written last: the run is finished, and what it cost

Of two runs of one spec on one machine, the predictions are equal to the last bit; what
differs, such as the time that a run took, stands in the other files.

Files are written whole or not at all.
"""

import json
import math
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import qualms
from qualms.atomic import LEFTOVER, replacing
from qualms.processes import LockError, locked
from qualms.spec import RunSpec, parse_split

RunState = Literal["new", "running", "failed", "done"]

SPARE = 8 * 2**20
"""Bytes that must fit into the output folder before anything starts."""
PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "safetensors",
    "torch",
    "torchvision",
    "timm",
)
PACE = ("seconds_per_item", "seconds_per_crop")
"""Names of the times that are measured while a split is predicted."""
# What training writes, then what people may put in its place.
_ENDINGS = (".safetensors", ".npz", ".parquet", ".csv")


class RunFolderError(ValueError):
    """A run folder holds something else than it should; the message says what."""


class RunCosts(NamedTuple):
    """Seconds that a run took; None where they are not known."""

    training: float | None = None
    """Of all epochs, and of what the method fits after them."""
    per_item: float | None = None
    """To predict an item, the mean over splits."""
    per_crop: float | None = None
    """To predict the crop of an item, where crops are predicted."""


def run_folder(out: Path, spec: RunSpec) -> Path:
    """Where below `out` the run of `spec` lies."""
    return out / spec.benchmark / spec.hash


def sibling(folder: Path, run: str) -> Path:
    """The folder of the run with hash `run`, which lies beside `folder`."""
    return folder.parent / run


def lock_path(folder: Path) -> Path:
    """The file that is locked by whoever works on the run."""
    return folder / "lock"


def log_path(folder: Path) -> Path:
    """The file that keeps all that the process of the run prints."""
    return folder / "log.txt"


def epochs_path(folder: Path) -> Path:
    """The file with one JSON object for each epoch."""
    return folder / "log.jsonl"


def items_path(folder: Path) -> Path:
    """The list of the items that a rule chose for the run to train on."""
    return folder / "items.json"


def features_folder(folder: Path) -> Path:
    """The folder with the features of a frozen backbone, while its head is trained."""
    return folder / "features"


def checkpoint_paths(folder: Path) -> tuple[Path, Path]:
    """The last checkpoint, and the one before it."""
    return folder / "checkpoint.pt", folder / "checkpoint.previous.pt"


def predictions_folder(folder: Path) -> Path:
    """The folder with the predictions of all splits."""
    return folder / "predictions"


def split_stem(folder: Path, split: str) -> Path:
    """The path of the predictions of `split`, without an ending.

    >>> split_stem(Path("run"), "birds:test/shifted").as_posix()
    'run/predictions/birds@test~shifted'
    """
    return predictions_folder(folder) / split.replace("/", "~").replace(":", "@")


def stored(folder: Path, split: str) -> Path | None:
    """The predictions of `split`: a file, or a folder of maps; None without any."""
    stem = split_stem(folder, split)
    if stem.is_dir():
        return stem
    files = (stem.with_name(stem.name + ending) for ending in _ENDINGS)
    return next((file for file in files if file.is_file()), None)


def is_stored(folder: Path, split: str, spec: RunSpec) -> bool:
    """Whether the predictions of `split` are there, whole, and those of `spec`.

    Files of other kinds than training writes are only looked for, not into.
    """
    path = stored(folder, split)
    if path is None:
        return False
    stated = _stated(path)
    return stated is not None and not mismatch(spec, split, stated)


def mismatch(spec: RunSpec, split: str, stated: Mapping[str, Any]) -> str:
    """How predictions differ from those of `spec` on `split`; '' where they do not.

    Args:
        spec: the run that they should be of.
        split: the split that they should be of.
        stated: what their header says, as a mapping; what it leaves out is not
            compared.
    """
    dataset, own = parse_split(split)
    options = stated.get("options") or {}
    found = {**stated, "run": options.get("run")}
    wanted = {
        "benchmark": spec.benchmark,
        "run": spec.hash,
        "method": spec.method.name,
        "seed": spec.seed,
        "dataset": spec.parts[dataset].name,
        "split": own,
    }
    for name, value in wanted.items():
        if found.get(name) not in (None, value):
            return (
                f"the predictions of split {split!r} are of {name} {found[name]!r}, and"
                f" not of {value!r}: they were put in the place of others"
            )
    return ""


def is_done(folder: Path, spec: RunSpec) -> bool:
    """Whether the run of `spec` was finished in `folder`, and all of it is there."""
    stated = _read(folder / "done.json")
    return stated.get("hash") == spec.hash and all(
        is_stored(folder, split, spec) for split in spec.splits
    )


def was_finished(folder: Path) -> bool:
    """Whether the run that `folder` is named after was finished there."""
    return _read(folder / "done.json").get("hash") == folder.name


def read_costs(folder: Path, header: Mapping[str, Any] | None = None) -> RunCosts:
    """Return what the finished run in `folder` cost.

    Args:
        folder: the folder of the run, whose name is its hash.
        header: what the header of its predictions states. Files from elsewhere, and
            those that former versions wrote, have times there, which are taken where
            the folder states none.
    """
    record = _read(folder / "done.json") if was_finished(folder) else {}
    header = header or {}
    about = _object(header.get("about"))
    paces = [_object(pace) for pace in _object(record.get("pace")).values()] or [about]
    return RunCosts(
        record.get("seconds", header.get("seconds")),
        *(_mean([pace[name] for pace in paces if name in pace]) for name in PACE),
    )


def _mean(seconds: Sequence[float]) -> float | None:
    return math.fsum(seconds) / len(seconds) if seconds else None


def state_of(folder: Path, spec: RunSpec) -> RunState:
    """How far the run of `spec` in `folder` is."""
    if is_done(folder, spec):
        return "done"
    if lock_path(folder).exists():
        with locked(lock_path(folder)) as free:
            if not free:
                return "running"
    return "failed" if _read(folder / "failed.json") else "new"


def why_failed(folder: Path) -> str:
    """The sentence of the last attempt that failed; '' where none did."""
    return str(_read(folder / "failed.json").get("error", ""))


def describe(folder: Path, spec: RunSpec, facts: Mapping[str, Any]) -> None:
    """Make the folder, and write in it what the run is and what it runs on.

    Args:
        folder: the folder of the run.
        spec: what the run is.
        facts: what to say of the environment beside `environment`, as JSON values;
            what was said before and is not said again stays.

    Raises:
        RunFolderError: If the folder holds another run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _check_same(folder, spec)
    _write(folder / "spec.json", spec.to_json())
    told = {**_read(folder / "environment.json"), **environment(), **facts}
    _write(folder / "environment.json", json.dumps(told, indent=1))
    (folder / "failed.json").unlink(missing_ok=True)


def mend_spec(folder: Path, spec: RunSpec) -> str:
    """Write the spec of a finished run again where it was changed since.

    Returns:
        A sentence for the user; '' where nothing was changed.
    """
    path = folder / "spec.json"
    try:
        if not path.exists() or _stored_hash(path) == spec.hash:
            return ""
        _write(path, spec.to_json())
    except OSError as error:
        return f"{path} cannot be read or mended: {error.strerror or error}"
    return (
        f"{path} was changed after the run was made, so its hash was not {spec.hash};"
        " it was written again as it had been"
    )


def tidy(folder: Path) -> None:
    """Remove what a killed process left half written; for the holder of the lock."""
    for stale in list(folder.rglob(LEFTOVER)):
        if stale.is_dir() and not stale.is_symlink():
            shutil.rmtree(stale)  # maps of a split, half written
        else:
            stale.unlink(missing_ok=True)


def mark_done(folder: Path, spec: RunSpec, facts: Mapping[str, Any]) -> None:
    """Write down that the run is finished, and `facts` about it as JSON values."""
    checkpoint_paths(folder)[1].unlink(missing_ok=True)
    told = {"hash": spec.hash, **facts}
    _write(folder / "done.json", json.dumps(told, indent=1))


def mark_failed(folder: Path, spec: RunSpec, error: str) -> None:
    """Write down why the run failed, in one sentence."""
    told = {"hash": spec.hash, "error": error, "when": _now()}
    _write(folder / "failed.json", json.dumps(told, indent=1))


def environment() -> dict[str, Any]:
    """What this process runs on: versions, machine and threads, as JSON values."""
    return {
        "qualms": qualms.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": dict(_packages()),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "started": _now(),
    }


@cache
def commit() -> str | None:
    """The commit of the source tree this package is imported from, if it is one.

    It ends in " with changes" where files of that tree are not as committed.
    """
    source = Path(qualms.__file__).parent
    git = ["git", "-C", str(source)]
    try:
        # A package installed below somebody else's repository has no commit of ours.
        _said([*git, "ls-files", "--error-unmatch", "__init__.py"])
        head = _said([*git, "rev-parse", "HEAD"])
        # Without locks, so that nobody who commits meanwhile is disturbed.
        quick = ["--no-optional-locks", "status", "--porcelain", "-uno"]
        return f"{head} with changes" if _said([*git, *quick]) else head
    except (OSError, subprocess.SubprocessError):
        return None


def check_writable(out: Path) -> None:
    """Raise unless files of some size can be written, and locked, below `out`."""
    probe = out / f".qualms-{os.getpid()}.probe"
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            with probe.open("wb") as file:
                file.write(bytes(SPARE))
                file.flush()
                os.fsync(file.fileno())
            with locked(probe):
                pass
        finally:
            probe.unlink(missing_ok=True)
    except LockError:
        raise
    except OSError as error:
        raise OSError(
            f"cannot write runs to {out}: {error.strerror or error}; free space there"
            " or choose another folder with --out"
        ) from error


def _stated(path: Path) -> dict[str, Any] | None:
    """What the header of predictions says; None where a file of ours is damaged."""
    if path.is_dir():
        return _object(_read(path / "index.json").get("header"))
    if path.suffix != ".safetensors":
        return {}
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as opened:
            metadata = opened.metadata() or {}
        return _object(json.loads(metadata.get("header", "{}")))
    except (SafetensorError, OSError, ValueError):
        return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _check_same(folder: Path, spec: RunSpec) -> None:
    path = folder / "spec.json"
    if not path.exists():
        return
    found = _stored_hash(path)
    if found == spec.hash:
        return
    if not found:
        raise RunFolderError(
            f"{path} is not the spec of a run; choose another folder, or delete this"
            " one to start anew"
        )
    if folder.name == spec.hash:
        raise RunFolderError(
            f"{path} was changed: its hash must be the name of its folder, and is"
            f" {found}; delete that file and run again"
        )
    raise RunFolderError(f"{folder} holds another run ({found}); choose another folder")


def _stored_hash(path: Path) -> str:
    """The hash of the spec in `path`; '' if it holds none."""
    try:
        return RunSpec.from_json(path.read_text(encoding="utf-8")).hash
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""


@cache
def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _said(command: list[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=5, check=True
    )
    return done.stdout.strip()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(path: Path) -> dict[str, Any]:
    """The JSON object in `path`; empty where there is none."""
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return _object(stated)


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
