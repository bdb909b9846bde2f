"""Training items of a run, and the list of them in its folder.

A run without a rule trains on all of the split `train`. A rule (`RunSpec.items`)
chooses items once, before training, and they are written to `items.json` in the run's
folder. A run that goes on reads this list, so the runs whose predictions it came from
are not needed again, and a user can look at it.

Every rule takes the option `keep`: names of splits that are trained on completely,
besides the items that the rule chooses. Active learning has `split="pool"` and
`keep=["train"]`: the run trains on `train` and on the items chosen from the pool.
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
from qualms.regular import UNREADABLE, read_file
from qualms.runs import items_path, sibling, stored
from qualms.spec import ItemRule, RunSpec, Task, digest, parse_split
from qualms.training._error import TrainingError, writing
from qualms.training._item_rules import UNSEEDED, Candidates, choose
from qualms.training._splits import LoadedSplit, Splits

ItemList = Mapping[str, list[str] | Literal["all"]]
"""Names of the chosen items of each split, or "all" of them."""


class TrainingItems(NamedTuple):
    """Items that a run trains on."""

    items: LoadedSplit
    """A split, or several splits as one."""
    rows: Tensor
    """Rows of `items` that are trained on, in order."""


def training_items(
    spec: RunSpec,
    folder: Path,
    splits: Splits,
    *,
    lists: dict[str, ItemList],
    write: bool,
) -> TrainingItems:
    """Return the items that `spec` trains on.

    Args:
        spec: the run.
        folder: folder of the run, for the list of its items.
        splits: of the datasets that the run reads.
        lists: lists of runs that read the same data, by `_list_key`; a new list is
            added. Runs of a pool train on the same items, which are chosen once.
        write: whether to write the list; of several processes only one does.
    """
    if spec.items is None:
        items = splits["train"]
        return TrainingItems(items, torch.arange(len(items)))
    path = items_path(folder)
    if path.exists():
        items_of = _read(path, spec)
    else:
        key = _list_key(spec, spec.items, folder)
        if key not in lists:
            lists[key] = _chosen(spec, spec.items, folder, splits)
        items_of = lists[key]
        if write:
            _write(path, spec, items_of)
    return _load(items_of, path, splits)


def trained_task(spec: RunSpec, splits: Splits) -> Task:
    """Return the task of the dataset whose items `spec` trains on.

    A rule may choose items of a further dataset; the network then learns its classes.
    """
    main = splits.dataset.task
    if spec.items is None:
        return main
    keep = spec.items.options.get("keep", ())
    names = (spec.items.split, *(() if isinstance(keep, str) else keep))
    tasks = {name: splits.dataset_of(name).task for name in names}
    task = tasks[spec.items.split]
    for name, other in tasks.items():
        if other != task:
            raise TrainingError(
                f"items of {spec.items.split!r} and {name!r} cannot be trained on"
                " together: their datasets have other tasks or classes; keep splits of"
                " the same dataset"
            )
    if task.name != main.name:
        raise TrainingError(
            f"the run is for {main.name}, and {spec.items.split!r} is for {task.name};"
            " choose items of another dataset"
        )
    return task


def _list_key(spec: RunSpec, rule: ItemRule, folder: Path) -> str:
    """Return everything that the choice of `rule` depends on, except the data."""
    seed = None if rule.name in UNSEEDED else spec.seed
    return json.dumps([asdict(rule), str(folder.parent), seed], sort_keys=True)


def _chosen(spec: RunSpec, rule: ItemRule, folder: Path, splits: Splits) -> ItemList:
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
    """Read the predictions of each of the rule's runs for `split`."""
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
        predictions = read(path)
    except PredictionsError as error:
        raise TrainingError(
            f"this run chooses its items by the predictions of run {run}, which cannot"
            f" be read: {error}"
        ) from error
    header = predictions.header
    actual = (header.options or {}).get("run"), header.split
    expected = run, parse_split(split)[1]
    if any(a not in (None, e) for a, e in zip(actual, expected, strict=True)):
        raise TrainingError(
            f"{path} must be what run {run} predicts for {split!r}, and says that it is"
            f" of run {actual[0]} and split {actual[1]!r}; put the right file there"
        )
    return predictions


def _write(path: Path, spec: RunSpec, items_of: ItemList) -> None:
    assert spec.items is not None
    content = {"run": spec.hash, "rule": asdict(spec.items), "items": dict(items_of)}
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            text = json.dumps({**content, "digest": _digest(content)}, indent=1)
            temporary.write_text(text, encoding="utf-8")


def _read(path: Path, spec: RunSpec) -> ItemList:
    try:
        content = json.loads(read_file(path))
        checksum = content.pop("digest")
        valid = checksum == _digest(content) and content["run"] == spec.hash
        items_of: ItemList = content["items"]
    except UNREADABLE:
        valid = False
    if not valid:
        raise TrainingError(
            f"{path} must hold the items that run {spec.hash} trains on, and it is"
            " damaged or belongs to another run; delete it to have the items chosen"
            " again"
        )
    return items_of


def _digest(content: Mapping[str, Any]) -> str:
    return digest(json.dumps(content, sort_keys=True))


def _load(items_of: ItemList, path: Path, splits: Splits) -> TrainingItems:
    names = tuple(items_of)
    items, start = splits.joined(names), 0
    rows = []
    for name in names:
        item_names = np.asarray(splits.stored(name).item)
        rows.append(start + _rows(items_of[name], item_names, name, path))
        start += len(item_names)
    return TrainingItems(items, torch.from_numpy(np.concatenate(rows)))


def _rows(names: Sequence[str], item_names: Any, split: str, path: Path) -> Any:
    """Return the rows of the items `names` in a split, or all rows."""
    if names == "all":
        return np.arange(len(item_names))
    rows = np.flatnonzero(np.isin(item_names, names))
    if len(rows) != len(names):
        raise TrainingError(
            f"{path} names {len(names)} items of the split {split!r}, which has"
            f" {len(rows)} of them; the list belongs to other data"
        )
    return rows
