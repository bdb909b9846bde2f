"""The items that a run trains on, and the list of them that its folder keeps.

A run without a rule trains on the whole split `train`. With one (`RunSpec.items`) the
items are chosen once, before training, and written to `items.json` in the run's folder.
A run that goes on reads them from there, so the list can be looked at, and the runs
whose predictions it came from are not needed again.

Every rule takes the option `keep`: names of splits that are trained on whole, besides
the items that the rule chooses. Active learning has `split="pool"` and
`keep=["train"]`: the run trains on `train` and on what was chosen from the pool.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from qualms.atomic import replacing
from qualms.predictions import Predictions, PredictionsError, read
from qualms.runs import items_path, sibling, stored
from qualms.spec import ItemRule, RunSpec, Task, digest, parse_split
from qualms.training._error import TrainingError, writing
from qualms.training.data import LoadedSplit, Splits
from qualms.training.item_rules import UNSEEDED, Candidates, choose

Listed = Mapping[str, list[str] | Literal["all"]]
"""Names of the chosen items of each split, or "all" of them."""


class TrainingItems(NamedTuple):
    """What a run trains on."""

    items: LoadedSplit
    rows: Tensor
    """Rows of `items`, in order."""


def training_items(
    spec: RunSpec,
    folder: Path,
    splits: Splits,
    *,
    known: dict[str, Listed],
    write: bool,
) -> TrainingItems:
    """The items of `spec`, which is trained in `folder`.

    Args:
        spec: the run.
        folder: has the list, or gets it.
        splits: of the datasets that the run reads.
        known: lists of other runs that read the same data, by what they follow from.
            Members of a pool train on the same items, which are chosen once.
        write: whether to write the list; of several processes only one does.
    """
    if spec.items is None:
        items = splits["train"]
        return TrainingItems(items, torch.arange(len(items)))
    path = items_path(folder)
    if path.exists():
        listed = _read(path, spec)
    else:
        basis = _basis(spec, spec.items, folder)
        if basis not in known:
            known[basis] = _chosen(spec, spec.items, folder, splits)
        listed = known[basis]
        if write:
            _write(path, spec, listed)
    return _found(listed, path, splits)


def trained_task(spec: RunSpec, splits: Splits) -> Task:
    """The task of the dataset whose items `spec` trains on.

    A rule may choose items of a further dataset, whose classes are then told apart.
    """
    own = splits.dataset.task
    if spec.items is None:
        return own
    keep = spec.items.options.get("keep", ())
    read = (spec.items.split, *(() if isinstance(keep, str) else keep))
    found = {name: splits.dataset_of(name).task for name in read}
    task = found[spec.items.split]
    for name, other in found.items():
        if other != task:
            raise TrainingError(
                f"items of {spec.items.split!r} and {name!r} cannot be trained on"
                " together: their datasets have other tasks or classes; keep splits of"
                " the same dataset"
            )
    if task.name != own.name:
        raise TrainingError(
            f"the run is for {own.name}, and {spec.items.split!r} is for {task.name};"
            " choose items of another dataset"
        )
    return task


def _basis(spec: RunSpec, rule: ItemRule, folder: Path) -> str:
    """All that the choice of `rule` depends on, but for the data."""
    seed = None if rule.name in UNSEEDED else spec.seed
    return json.dumps([asdict(rule), str(folder.parent), seed], sort_keys=True)


def _chosen(spec: RunSpec, rule: ItemRule, folder: Path, splits: Splits) -> Listed:
    options = dict(rule.options)
    keep = options.pop("keep", ())
    if isinstance(keep, str) or rule.split in keep:
        raise TrainingError(
            f"item rule {rule.name!r} chooses items of the split {rule.split!r}; 'keep'"
            f" must be a list of other splits, got {keep!r}"
        )
    split = splits.stored(rule.split)
    target: Any = split.target  # label maps may differ in shape
    candidates = Candidates(
        split=rule.split,
        item=np.asarray(split.item),
        target=target,
        seed=spec.seed,
        predictions=partial(_predictions, rule, folder),
    )
    rows = choose(rule.name, candidates, options)
    chosen = [str(name) for name in candidates.item[np.sort(rows)]]
    return {**dict.fromkeys(keep, "all"), rule.split: chosen}


def _predictions(rule: ItemRule, folder: Path, split: str) -> list[Predictions]:
    """What each of the rule's runs predicts for `split`."""
    if not rule.runs:
        raise TrainingError(
            f"item rule {rule.name!r} reads predictions, and names no runs to read them"
            " from; state their hashes in 'runs'"
        )
    return [_predicted_by(run, sibling(folder, run), split) for run in rule.runs]


def _predicted_by(run: str, folder: Path, split: str) -> Predictions:
    path = stored(folder, split)
    if path is None:
        raise TrainingError(
            f"this run chooses its items by what run {run} predicts for {split!r}, and"
            f" there are no such predictions in {folder}; finish that run first, with"
            f" {split!r} among the splits it predicts"
        )
    try:
        found = read(path)
    except PredictionsError as error:
        raise TrainingError(
            f"this run chooses its items by the predictions of run {run}, which cannot"
            f" be read: {error}"
        ) from error
    stated = (found.header.options or {}).get("run"), found.header.split
    wanted = run, parse_split(split)[1]
    if any(s not in (None, w) for s, w in zip(stated, wanted, strict=True)):
        raise TrainingError(
            f"{path} must be what run {run} predicts for {split!r}, and says that it is"
            f" of run {stated[0]} and split {stated[1]!r}; put the right file there"
        )
    return found


def _write(path: Path, spec: RunSpec, listed: Listed) -> None:
    assert spec.items is not None
    held = {"run": spec.hash, "rule": asdict(spec.items), "items": dict(listed)}
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            text = json.dumps({**held, "digest": _digest(held)}, indent=1)
            temporary.write_text(text, encoding="utf-8")


def _read(path: Path, spec: RunSpec) -> Listed:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        stated = held.pop("digest")
        whole = stated == _digest(held) and held["run"] == spec.hash
        listed: Listed = held["items"]
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise TrainingError(
            f"{path} must hold the items that run {spec.hash} trains on, and it is"
            " damaged or belongs to another run; delete it to have the items chosen"
            " again"
        )
    return listed


def _digest(held: Mapping[str, Any]) -> str:
    return digest(json.dumps(held, sort_keys=True))


def _found(listed: Listed, path: Path, splits: Splits) -> TrainingItems:
    names = tuple(listed)
    items, start = splits.joined(names), 0
    rows = []
    for name in names:
        own = np.asarray(splits.stored(name).item)
        rows.append(start + _rows(listed[name], own, name, path))
        start += len(own)
    return TrainingItems(items, torch.from_numpy(np.concatenate(rows)))


def _rows(wanted: Sequence[str], own: Any, split: str, path: Path) -> Any:
    if wanted == "all":
        return np.arange(len(own))
    rows = np.flatnonzero(np.isin(own, wanted))
    if len(rows) != len(wanted):
        raise TrainingError(
            f"{path} names {len(wanted)} items of the split {split!r}, which has"
            f" {len(rows)} of them; the list belongs to other data"
        )
    return rows
