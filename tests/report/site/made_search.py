"""Searches as pages show them, without any training."""

from qualms.report.search_report import (
    ImportanceFacts,
    ObjectiveFacts,
    SearchReport,
    TrialFacts,
)

FIRST = ObjectiveFacts("val_auroc", "AUROC of validation items", "higher")
SECOND = ObjectiveFacts("ece", "ECE", "lower")


def trials(count, objectives=1, *, word="sgd"):
    """Trials 3, 10, 17, ... failed, 5, 12, ... were pruned; trial 7 is the best."""
    made = []
    for n in range(count):
        state = {3: "failed", 5: "pruned"}.get(n % 7, "done")
        values = (0.9 - abs(n - 7) / 50, 0.1 + abs(n - 2) / 40)[:objectives]
        made.append(
            TrialFacts(
                number=n,
                state=state,
                values=values if state == "done" else (),
                options={"lr": 0.001 * (n + 1), "epochs": n, "optimiser": word},
                run=f"{n:016x}",
                error="" if state == "done" else f"it was {state} <b>early</b>",
            )
        )
    return tuple(made)


def search(count=20, objectives=1, *, word="sgd", **more):
    """A search whose best trial is the seventh."""
    made = trials(count, objectives, word=word)
    valued = [trial for trial in made if trial.values]
    best = max(valued, key=lambda trial: trial.values[0], default=None)
    names = (FIRST, SECOND)[:objectives]
    shares = (("lr", 0.75), ("1 - momentum", 0.2), (word, 0.05))
    few = len(valued) < 10
    facts = {
        "title": f"mine/home, mc_dropout, preset demo {word}",
        "benchmark": "mine",
        "variant": "home",
        "method": "mc_dropout",
        "preset": "demo",
        "selection": "in_domain",
        "items": "in-domain validation items",
        "sampler": "tpe",
        "objectives": names,
        "trials": made,
        "best": None if best is None else best.number,
        "front": front(valued),
        "importance": ()
        if few
        else tuple(
            ImportanceFacts(each.name, *share) for each in names for share in shares
        ),
        "no_importance": "Importance needs more trials." if few else "",
        "command": "qualms run mine/home --config best.toml",
        "simulated": True,
        "versions": {"qualms": "0.1.0"},
        "config": 'name = "mine"\n',
    }
    return SearchReport(**{**facts, **more})


def front(valued):
    """The trials that no other beats in both objectives."""

    def beaten(trial, other):
        pairs = list(zip(trial.values, other.values, strict=True))
        better = [b > a if place == 0 else b < a for place, (a, b) in enumerate(pairs)]
        worse = [b < a if place == 0 else b > a for place, (a, b) in enumerate(pairs)]
        return any(better) and not any(worse)

    return tuple(
        trial.number for trial in valued if not any(beaten(trial, o) for o in valued)
    )
