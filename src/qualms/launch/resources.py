"""Where runs are, and what makes and judges them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from qualms.launch._store import is_address
from qualms.launch._store_runs import RunStore, run_store
from qualms.launch.data import data_root
from qualms.launch.engine import Engine
from qualms.study import RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Folders, processes and device of runs."""

    out: Path
    data: Path
    workers: int | None = None
    device: str = "auto"
    together: int | None = None
    engine: Engine = field(default_factory=Engine)
    store: RunStore | None = None
    """Where runs and tables are stored; `out` is then their mirror."""

    @property
    def place(self) -> str:
        """Where runs are, in words."""
        return self.store.store.address if self.store else str(self.out)

    def refresh(self, plans: "Iterable[RunPlan]") -> None:
        """Mirror the finished runs of plans if they are stored elsewhere."""
        if self.store is not None:
            self.store.refresh(spec for plan in plans for spec in plan.runs)


def resources_for(
    out: str | PathLike[str],
    data: str | PathLike[str] | None,
    *,
    workers: int | None = None,
    device: str = "auto",
    together: int | None = None,
    engine: Engine | None = None,
) -> Resources:
    """Return resources for runs in a folder, or in a store such as s3://bucket."""
    store = run_store(str(out)) if is_address(out) else None
    return Resources(
        out=store.mirror if store else Path(out),
        data=data_root(None if data is None else Path(data)),
        workers=workers,
        device=device,
        together=together,
        engine=engine or Engine(),
        store=store,
    )
