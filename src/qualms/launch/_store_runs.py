"""Runs whose folders are stored in an object store.

Nothing but transfers knows about stores: a run is trained, judged and shown in a folder
on this machine, the mirror. A run is claimed by a lock there, against processes on this
machine, and by a lease in the store, against other machines.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath

from qualms.launch._store import ObjectStore, StoredObject, StoreError, checked_address
from qualms.launch._store_lease import SECONDS, Lease, check_lease, leased, place_name
from qualms.launch._store_mirror import (
    THREADS,
    complete,
    pull,
    push,
    push_files,
    read_record,
)
from qualms.launch._worker import ClaimLostError, Staging, claim_in_place
from qualms.launch.data import data_root
from qualms.processes import locked
from qualms.runs import (
    checkpoint_paths,
    done_path,
    is_done,
    lock_path,
    run_folder,
    sibling,
)
from qualms.spec import RunSpec, digest

BRIEFLY = 20.0
"""Seconds for which a call is repeated where training, or a user, waits for it."""
_LEASES = ".leases"
_Objects = Mapping[str, StoredObject]


def run_store(out: str | PurePath) -> "RunStore":
    """Return the runs at an address such as s3://bucket/prefix."""
    return RunStore(store=ObjectStore(address=checked_address(out)))


def mirrored_runs(out: str | PurePath) -> Path:
    """Download all runs and results at an address; return their folder here."""
    return run_store(out).pull_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStore:
    """Runs in an object store, and their mirror on this machine."""

    store: ObjectStore
    seconds: float = SECONDS
    """When the lease of a process that ended without a word runs out."""

    @property
    def mirror(self) -> Path:
        """Folder on this machine: in $QUALMS_SCRATCH, or beside prepared datasets."""
        variable = os.environ.get("QUALMS_SCRATCH")
        root = Path(variable) if variable else data_root() / "stores"
        address = self.store.address
        name = re.sub(r"[^\w.-]+", "_", address.partition("://")[2], flags=re.ASCII)
        servers = (os.environ.get(each, "") for each in _SERVERS)
        return root / f"{name[:60]}-{digest(' '.join((address, *servers)))[:8]}"

    @property
    def staging(self) -> Staging:
        """Functions by which workers claim and store runs."""
        return Staging(partial(_claimed, self), partial(_store_epoch, self))

    def check(self) -> None:
        """Raise unless runs can be stored."""
        replace(self.store, patience=BRIEFLY).check()

    def refresh(self, specs: Iterable[RunSpec]) -> None:
        """Mirror the finished runs among `specs`, and those that they need.

        Runs that were finished here but could not be stored are stored.
        """
        wanted: dict[str, dict[str, RunSpec | None]] = {}
        for spec in specs:
            runs = wanted.setdefault(spec.benchmark, {})
            runs.update({parent: runs.get(parent) for parent in spec.parents})
            runs[spec.hash] = spec
        brief = replace(self, store=replace(self.store, patience=BRIEFLY))
        for benchmark, runs in wanted.items():
            objects = by_folder(brief.store.objects(benchmark))
            with ThreadPoolExecutor(THREADS) as threads:
                mirror = partial(brief._mirror, benchmark, objects)
                list(threads.map(mirror, runs, runs.values()))

    def pull_all(self) -> Path:
        """Mirror all runs and results, without checkpoints; return the mirror."""
        work = [
            (f"{benchmark}/{name}", objects)
            for benchmark, below in by_folder(self.store.objects()).items()
            if not benchmark.startswith(".")
            for name, objects in by_folder(below).items()
            if not name.startswith(".")
        ]
        if not work:
            raise ValueError(
                f"there is nothing to show in {self.store.address}; make runs with"
                f" `qualms run --out {self.store.address}` first"
            )
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(lambda args: self._pull(*args), work))
        return self.mirror

    def push_results(self, folder: Path) -> str:
        """Store tables, figures and pages; return their address."""
        name = folder.relative_to(self.mirror).as_posix()
        push_files(self.store, name, folder)
        return f"{self.store.address}/{name}"

    def _mirror(
        self,
        benchmark: str,
        objects: Mapping[str, _Objects],
        run: str,
        spec: RunSpec | None,
    ) -> None:
        stored, folder = objects.get(run, {}), self.mirror / benchmark / run
        if done_path(folder).name in stored:
            self._pull(f"{benchmark}/{run}", stored)
        elif spec is not None and is_done(folder, spec):
            with _claimed(self, spec, folder):
                pass

    def _pull(self, name: str, objects: _Objects) -> None:
        """Mirror a folder unless a process of this machine works in it."""
        folder = self.mirror / name
        last = {path.name for path in checkpoint_paths(folder)}
        folder.mkdir(parents=True, exist_ok=True)
        with locked(lock_path(folder)) as is_locked:
            if is_locked:
                pull(self.store, name, folder, objects=objects, skip=last)


_SERVERS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


def by_folder(objects: _Objects) -> dict[str, dict[str, StoredObject]]:
    """Return objects by the first folder of their names; those in none are left out."""
    folders: dict[str, dict[str, StoredObject]] = {}
    for name, stored in objects.items():
        folder, slash, rest = name.partition("/")
        if slash:
            folders.setdefault(folder, {})[rest] = stored
    return folders


@contextmanager
def _claimed(runs: RunStore, spec: RunSpec, _: Path) -> Iterator[Path | None]:
    """Claim a run; yield its folder on this machine, and store it afterwards."""
    mirror = run_folder(runs.mirror, spec)
    with ExitStack() as claims:
        lease = None
        if claims.enter_context(claim_in_place(spec, mirror)) is not None:
            holder, leases = place_name(runs.mirror), _lease_folder(spec)
            lease = claims.enter_context(
                leased(runs.store, leases, holder, runs.seconds)
            )
        if lease is None:
            yield None
            return
        _fetch(runs, spec, mirror, lease)
        try:
            yield mirror
        except BaseException:
            with suppress(OSError, ClaimLostError):
                _push(runs, spec, mirror, patience=BRIEFLY)
            raise
        _push(runs, spec, mirror, patience=runs.store.patience)


def _store_epoch(runs: RunStore, spec: RunSpec, mirror: Path) -> None:
    """Store a run in training; a failing store does not stop the training."""
    try:
        _push(runs, spec, mirror, patience=BRIEFLY)
    except StoreError as error:
        sys.stdout.write(f"{error}; it is tried again after the next epoch\n")


def _fetch(runs: RunStore, spec: RunSpec, mirror: Path, lease: Lease) -> None:
    """Download the folder of a claimed run, and those of the runs that it needs.

    The store is right, unless this machine was the last to work on the run.
    """
    name = f"{spec.benchmark}/{spec.hash}"
    objects, record = runs.store.objects(name), read_record(mirror)
    was_last = 0 < lease.before == record.claim
    is_ahead = is_done(mirror, spec) and done_path(mirror).name not in objects
    transfer = complete if was_last or is_ahead or not objects else pull
    transfer(runs.store, name, mirror, objects=objects, claim=lease.number)
    for parent in spec.parents:
        folder, name = sibling(mirror, parent), f"{spec.benchmark}/{parent}"
        folder.mkdir(exist_ok=True)
        with locked(lock_path(folder), wait=True):
            objects = runs.store.objects(name)
            if done_path(folder).name in objects:
                pull(runs.store, name, folder, objects=objects)


def _push(runs: RunStore, spec: RunSpec, mirror: Path, *, patience: float) -> None:
    store, claim = replace(runs.store, patience=patience), read_record(mirror).claim
    check = partial(check_lease, store, _lease_folder(spec), claim)
    push(store, f"{spec.benchmark}/{spec.hash}", mirror, claim=claim, check=check)


def _lease_folder(spec: RunSpec) -> str:
    return f"{spec.benchmark}/{_LEASES}/{spec.hash}"
