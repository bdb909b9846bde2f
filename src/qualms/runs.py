"""The folder of a run: the only module that knows which files it holds.

    OUT/<benchmark>/.features/  of a frozen backbone, while heads are trained on them
    OUT/<benchmark>/.judged/    what judging made of runs: cells, and digests of files
    OUT/<benchmark>/<hash>/
        spec.json           what the run is
        environment.json    what it runs on: versions, device, command
        lock                held by the process that works on the run
        owner.txt           the name of that process, to notice locks without effect
        log.txt             all output of this process
        log.jsonl           one line for each epoch
        items.json          the training items that a rule chose
        checkpoint.pt       the last checkpoint, and checkpoint.previous.pt before it
        predictions/        the predictions of each split
        losses.json         how often its process, or its machine, was lost
        failed.json         why the last attempt failed
        pruned.json         why a search stopped it before its end
        done.json           written last: the run is finished, and what it cost

Two runs of one spec on one machine write predictions that are equal to the last bit.
What differs between them, such as the time that they took, is in the other files.

Files are written whole or not at all.
"""

import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import qualms
from qualms.atomic import LEFTOVER, remove, replacing, temporary_path
from qualms.processes import LockError, locked
from qualms.spec import CORRUPTIONS, RunSpec, parse_split

SPARE = 8 * 2**20
"""Bytes that must be free in the output folder before any run starts."""
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
# Training writes the first kind; users may replace such a file by one of the others.
_ENDINGS = (".safetensors", ".npz", ".parquet", ".csv")


class RunFolderError(ValueError):
    """A run folder with unexpected contents; the message describes them."""


class RunCosts(NamedTuple):
    """Seconds that a run took; None where they are unknown."""

    training: float | None = None
    """Seconds of all epochs and of fitting the method after them."""
    per_item: float | None = None
    """Seconds to predict an item, as a mean over splits."""
    per_crop: float | None = None
    """Seconds to predict the crop of an item, if crops are predicted."""


class RunLosses(NamedTuple):
    """Lost processes of a run that is not done."""

    lost: int = 0
    """How often its process or its machine was lost."""
    killed: int = 0
    """How often its process was lost, and its machine was not."""
    error: str = ""
    """Why it is not tried again; '' if it is."""


REQUEST = "requested.json"
"""File in the folder of a benchmark that lists the runs that were asked for last."""


class RunState(NamedTuple):
    """What a listing of thousands of runs reads of each."""

    spec: dict[str, Any]
    """The fields of its spec, unchecked."""
    done: bool
    error: str
    """Why the last attempt failed; '' if it did not."""
    seconds: float | None
    """Seconds of its training, where it is done."""
    finished: str | None
    """When it was done, in UTC."""


class RunProgress(NamedTuple):
    """How far a run is, by the files in its folder."""

    spec: RunSpec
    done: bool
    error: str
    """Why the last attempt failed; '' if it did not."""
    epochs: tuple[Mapping[str, Any], ...]
    """What each epoch wrote: its number, loss, seconds and images per second."""
    sign: float
    """When it last wrote anything, in seconds since 1970."""


def run_folder(out: Path, spec: RunSpec) -> Path:
    """Return the folder of the run of `spec` below `out`."""
    return out / spec.benchmark / spec.hash


def sibling(folder: Path, run: str) -> Path:
    """Return the folder of the run with hash `run`, which lies beside `folder`."""
    return folder.parent / run


def lock_path(folder: Path) -> Path:
    """Return the lock file of the process that works on the run."""
    return folder / "lock"


def owner_path(folder: Path) -> Path:
    """Return the file with the name of the process that has locked the run."""
    return folder / "owner.txt"


def sign(folder: Path) -> None:
    """Write the name of this process to a run folder that it has locked."""
    _write(owner_path(folder), _process_name())


def check_signed(folder: Path) -> None:
    """Raise if another process has taken a run folder that this one has locked.

    Some network file systems have locks that reach no further than one machine.

    Raises:
        LockError: It says which process has the folder now.
    """
    try:
        owner = owner_path(folder).read_text(encoding="utf-8")
    except FileNotFoundError:  # the folder was removed, or an older version has it
        return
    if owner != _process_name():
        raise LockError(
            f"{folder} was locked by this process, and {owner} works there as well:"
            " locks of this file system reach no further than one machine; mount it"
            " with locks, or choose a folder on another disk"
        )


def _process_name() -> str:
    return f"process {os.getpid()} on {platform.node() or 'this machine'}"


def log_path(folder: Path) -> Path:
    """Return the file with all output of the run's process."""
    return folder / "log.txt"


def done_path(folder: Path) -> Path:
    """Return the file that marks the run as finished; it is written last."""
    return folder / "done.json"


def epochs_path(folder: Path) -> Path:
    """Return the file with one JSON object for each epoch."""
    return folder / "log.jsonl"


def items_path(folder: Path) -> Path:
    """Return the file that lists the training items chosen by a rule."""
    return folder / "items.json"


def shared_features(benchmark: Path) -> Path:
    """Return the folder for features of frozen backbones beside the runs' folders."""
    return benchmark / ".features"


def judged_cells(benchmark: Path) -> Path:
    """Return the folder for judged cells beside the runs' folders."""
    return benchmark / ".judged"


class JudgedFile(NamedTuple):
    """A file of a run that judging reads."""

    name: str
    """Its path in the folder of the run."""
    path: str
    status: os.stat_result


def judged_files(folder: Path) -> list[JudgedFile]:
    """Return the files of a run that judging reads."""
    files = []
    done = str(done_path(folder))
    with suppress(FileNotFoundError, NotADirectoryError):
        # As texts, since thousands of folders are looked at.
        files.append(JudgedFile("done.json", done, os.stat(done)))  # noqa: PTH116
    below = _files_below(f"{folder}{os.sep}predictions", "predictions")
    return [*files, *below]


def _files_below(folder: str, name: str) -> Iterator[JudgedFile]:
    try:
        with os.scandir(folder) as files:
            entries = list(files)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _files_below(entry.path, path)
        else:
            yield JudgedFile(path, entry.path, os.stat(entry.path))  # noqa: PTH116


def checkpoint_paths(folder: Path) -> tuple[Path, Path]:
    """Return the paths of the last checkpoint and of the checkpoint before it."""
    return folder / "checkpoint.pt", folder / "checkpoint.previous.pt"


def predictions_folder(folder: Path) -> Path:
    """Return the folder with the predictions of all splits."""
    return folder / "predictions"


def split_stem(folder: Path, split: str) -> Path:
    """Return the path of the predictions of `split`, without an ending.

    >>> split_stem(Path("run"), "birds:test/shifted").as_posix()
    'run/predictions/birds@test~shifted'
    """
    return predictions_folder(folder) / split.replace("/", "~").replace(":", "@")


def stored(folder: Path, split: str) -> Path | None:
    """Return the file or folder with the predictions of `split`; None if missing."""
    stem = split_stem(folder, split)
    if stem.is_dir():
        return stem
    files = (stem.with_name(stem.name + ending) for ending in _ENDINGS)
    return next((file for file in files if file.is_file()), None)


def is_stored(folder: Path, split: str, spec: RunSpec) -> bool:
    """Return whether `folder` holds readable predictions of `spec` on `split`.

    Only files of the kind that training writes are opened; of others the name counts.
    """
    path = stored(folder, split)
    if path is None:
        return False
    header = _read_header(path)
    return header is not None and not mismatch(spec, split, header)


def mismatch(spec: RunSpec, split: str, header: Mapping[str, Any]) -> str:
    """Describe how predictions differ from those of `spec` on `split`; '' if equal.

    Args:
        spec: the expected run.
        split: the expected split.
        header: the header of the predictions, as a mapping. Fields that it leaves out
            are not compared.
    """
    dataset, name_of_split = parse_split(split)
    options = header.get("options") or {}
    actual = {**header, "run": options.get("run")}
    corruption = _object(options.get("corruption"))
    code = spec.sources.get(f"{CORRUPTIONS}/{corruption.get('name')}", "")
    if corruption.get("code", "") != code:
        return (
            f"the predictions of split {split!r} are of another version of corruption"
            f" {corruption['name']!r}: its code has changed since"
        )
    expected = {
        "benchmark": spec.benchmark,
        "run": spec.hash,
        "method": spec.method.name,
        "seed": spec.seed,
        "dataset": spec.parts[dataset].name,
        "split": name_of_split,
    }
    for name, value in expected.items():
        if actual.get(name) not in (None, value):
            return (
                f"the predictions of split {split!r} are of {name} {actual[name]!r},"
                f" and not of {value!r}: they were put in the place of others"
            )
    return ""


def is_done(folder: Path, spec: RunSpec) -> bool:
    """Return whether `folder` holds the finished run of `spec` with all predictions."""
    record = _read(done_path(folder))
    return record.get("hash") == spec.hash and all(
        is_stored(folder, split, spec) for split in spec.splits
    )


def was_finished(folder: Path) -> bool:
    """Return whether the run that `folder` is named after was finished there."""
    return _read(done_path(folder)).get("hash") == folder.name


def read_costs(folder: Path, header: Mapping[str, Any] | None = None) -> RunCosts:
    """Return what the finished run in `folder` cost.

    Args:
        folder: the folder of the run, whose name is its hash.
        header: the header of its predictions, as a mapping. Foreign files and those of
            former versions state the times there; `done.json` has precedence.
    """
    record = _read(done_path(folder)) if was_finished(folder) else {}
    header = header or {}
    about = _object(header.get("about"))
    paces = [_object(pace) for pace in _object(record.get("pace")).values()] or [about]
    return RunCosts(
        record.get("seconds", header.get("seconds")),
        *(_mean([pace[name] for pace in paces if name in pace]) for name in PACE),
    )


def _mean(seconds: Sequence[float]) -> float | None:
    return math.fsum(seconds) / len(seconds) if seconds else None


def why_failed(folder: Path) -> str:
    """Return the error of the last attempt if it failed, else ''."""
    return str(_read(folder / "failed.json").get("error", ""))


def why_pruned(folder: Path, search: str) -> str:
    """Return why the search of this name stopped the run, '' if it did not."""
    record = _read(folder / "pruned.json")
    return str(record.get("reason", "")) if record.get("search") == search else ""


def read_progress(folder: Path) -> RunProgress | None:
    """Return how far the run in `folder` is; None if it holds no run.

    Nothing is locked, so a process that works on the run is not disturbed.
    """
    try:
        spec = RunSpec.from_json((folder / "spec.json").read_text(encoding="utf-8"))
        lines = epochs_path(folder).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError as error:
        if error.filename == str(folder / "spec.json"):
            return None
        lines = []
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return RunProgress(
        spec,
        done=was_finished(folder),
        error=why_failed(folder),
        epochs=tuple(filter(None, map(_line_object, lines))),
        sign=last_change(folder),
    )


def note_request(out: Path, specs: Iterable[RunSpec]) -> None:
    """Note below `out` which runs were asked for last, for those who watch them."""
    hashes: dict[str, list[str]] = {}
    for spec in specs:
        hashes.setdefault(spec.benchmark, []).append(spec.hash)
    for benchmark, runs in hashes.items():
        folder = out / benchmark
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / REQUEST, json.dumps({"runs": runs}))


def requested_runs(folder: Path) -> tuple[str, ...]:
    """Return the hashes of the runs that were asked for last of a benchmark."""
    runs = _read(folder / REQUEST).get("runs")
    return tuple(map(str, runs)) if isinstance(runs, list) else ()


def read_state(folder: Path) -> RunState | None:
    """Return what a listing shows of a run; None if its files cannot be read."""
    try:
        spec, record = (_read(folder / f"{name}.json") for name in ("spec", "done"))
        error = why_failed(folder)
    except OSError:
        return None
    if not spec:
        return None
    done = record.get("hash") == folder.name
    finished = None
    if done:
        changed = datetime.fromtimestamp(_changed(folder / "done.json"), UTC)
        finished = changed.strftime("%Y-%m-%d %H:%M")
    seconds = record.get("seconds") if done else None
    return RunState(spec, done, error, seconds, finished)


def last_change(folder: Path) -> float:
    """Return when a file of a run last changed, in seconds since 1970."""
    return max((_changed(path) for path in folder.glob("*")), default=0.0)


def log_end(folder: Path, size: int) -> str:
    """Return the last so many bytes of the output of a run, from a whole line on."""
    try:
        with log_path(folder).open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - size))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return text if length <= size else text.partition("\n")[2]


def _line_object(line: str) -> dict[str, Any]:
    """Return the object of a line; {} for one that is being written."""
    try:
        return _object(json.loads(line))
    except ValueError:
        return {}


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def describe(folder: Path, spec: RunSpec, facts: Mapping[str, Any]) -> None:
    """Make the folder of a run, and write its spec and its environment there.

    Args:
        folder: the folder of the run.
        spec: the spec of the run.
        facts: facts about the environment beside those of `environment`, as JSON
            values. Facts of former attempts stay unless they are stated again.

    Raises:
        RunFolderError: If the folder holds another run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _check_same(folder, spec)
    _write(folder / "spec.json", spec.to_json())
    record = {**_read(folder / "environment.json"), **environment(), **facts}
    _write(folder / "environment.json", json.dumps(record, indent=1))
    for ending in ("failed.json", "pruned.json"):
        (folder / ending).unlink(missing_ok=True)


def mend_spec(folder: Path, spec: RunSpec) -> str:
    """Restore the spec file of a finished run if it was changed since.

    Returns:
        A sentence for the user; '' if the file is as it was.
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


def remade(folder: Path, spec: RunSpec) -> Iterator[str]:
    """Yield a sentence for each file for which a finished run is made again.

    These are predictions that cannot be read, or that somebody put in the place of
    those of `spec`.
    """
    if not was_finished(folder):
        return
    for split in spec.splits:
        path = stored(folder, split)
        if path is None:
            continue
        header = _read_header(path)
        why = "it cannot be read" if header is None else mismatch(spec, split, header)
        if why:
            yield f"{path} is made again: {why}"


def tidy(folder: Path) -> None:
    """Remove temporary files of killed processes; call it while holding the lock."""
    for stale in list(folder.rglob(LEFTOVER)):
        remove(stale)


def mark_done(folder: Path, spec: RunSpec, facts: Mapping[str, Any]) -> None:
    """Record that the run is finished, with `facts` about it as JSON values."""
    checkpoint_paths(folder)[1].unlink(missing_ok=True)
    (folder / "losses.json").unlink(missing_ok=True)
    record = {"hash": spec.hash, **facts}
    _write(done_path(folder), json.dumps(record, indent=1))


def mark_failed(folder: Path, spec: RunSpec, error: str) -> None:
    """Record why the run failed, in one sentence."""
    record = {"hash": spec.hash, "error": error, "when": _now()}
    _write(folder / "failed.json", json.dumps(record, indent=1))


def mark_pruned(folder: Path, spec: RunSpec, reason: str, *, search: str) -> None:
    """Record why a search stopped the run before its end, in one sentence."""
    record = {"hash": spec.hash, "search": search, "reason": reason, "when": _now()}
    _write(folder / "pruned.json", json.dumps(record, indent=1))


def read_losses(folder: Path, *, since: float) -> RunLosses:
    """Return how often the process of a run was lost.

    What was counted for a run that was given up is forgotten by launchers that start
    later: their users ask for another attempt.

    Args:
        folder: the folder of the run.
        since: when the launcher started, in seconds since 1970.
    """
    record = _read(folder / "losses.json")
    losses = RunLosses(*(record.get(name, 0) for name in ("lost", "killed")))
    if "error" not in record:
        return losses
    earlier = record.get("when", 0.0) < since
    return RunLosses() if earlier else losses._replace(error=str(record["error"]))


def count_loss(folder: Path, losses: RunLosses) -> None:
    """Record that the process of a run was lost, or why the run is given up."""
    folder.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {"lost": losses.lost, "killed": losses.killed}
    if losses.error:
        record |= {"error": losses.error, "when": time.time()}
    _write(folder / "losses.json", json.dumps(record, indent=1))


def environment() -> dict[str, Any]:
    """Return versions, machine and threads of this process, as JSON values."""
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
    """Return the commit of the source tree of this package; None without a tree.

    It ends in " with changes" if files of that tree differ from the commit.
    """
    source = Path(qualms.__file__).parent
    git = ["git", "-C", str(source)]
    try:
        # The package may be installed inside the repository of another project.
        _output([*git, "ls-files", "--error-unmatch", "__init__.py"])
        head = _output([*git, "rev-parse", "HEAD"])
        # Without locks, so that a commit at the same time is not disturbed.
        quick = ["--no-optional-locks", "status", "--porcelain", "-uno"]
        return f"{head} with changes" if _output([*git, *quick]) else head
    except (OSError, subprocess.SubprocessError):
        return None


def check_place(out: Path) -> None:
    """Raise unless `out` is a folder, or can be made one; nothing is written."""
    place = next((path for path in (out, *out.parents) if path.exists()), Path())
    reason = "" if place.is_dir() else f"{place} is not a folder"
    if not reason and not os.access(place, os.W_OK | os.X_OK):
        reason = f"{place} cannot be written to"
    if reason:
        raise OSError(
            f"cannot write runs to {out}: {reason}; choose another folder with --out"
        )


def check_writable(out: Path) -> None:
    """Raise unless files of `SPARE` bytes can be written and locked below `out`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = temporary_path(out / "probe")
        try:
            with probe.open("xb") as file:
                # Without a name, so that a kill leaves nothing. Windows keeps the name.
                with suppress(PermissionError):
                    probe.unlink()
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


def _read_header(path: Path) -> dict[str, Any] | None:
    """Return the header of predictions; None if the file is damaged.

    It is {} for kinds of files that are not opened.
    """
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
    stored_hash = _stored_hash(path)
    if stored_hash == spec.hash:
        return
    if not stored_hash:
        raise RunFolderError(
            f"{path} is not the spec of a run; choose another folder, or delete this"
            " one to start anew"
        )
    if folder.name == spec.hash:
        raise RunFolderError(
            f"{path} was changed: its hash must be the name of its folder, and is"
            f" {stored_hash}; delete that file and run again"
        )
    raise RunFolderError(
        f"{folder} holds another run ({stored_hash}); choose another folder"
    )


def _stored_hash(path: Path) -> str:
    """Return the hash of the spec in `path`; '' if it holds none."""
    try:
        return RunSpec.from_json(path.read_text(encoding="utf-8")).hash
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""


@cache
def _packages() -> dict[str, str]:
    """Return the versions of the installed packages among `PACKAGES`."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _output(command: list[str]) -> str:
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=5, check=True
    )
    return process.stdout.strip()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`; {} if there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return _object(value)


def is_run_name(name: str) -> bool:
    """Return whether a folder of this name may hold a run: the name is a hash.

    >>> is_run_name("0123456789abcdef"), is_run_name("small")
    (True, False)
    """
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
