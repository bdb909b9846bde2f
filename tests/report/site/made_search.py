"""Searches as pages show them, and studies of them, without any training."""

import optuna

from qualms.report.search_report import ObjectiveFacts, SearchReport, TrialFacts

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
    facts = {
        "title": f"mine/home, mc_dropout, preset demo {word}",
        "benchmark": "mine",
        "variant": "home",
        "method": "mc_dropout",
        "preset": "demo",
        "selection": "in_domain",
        "items": "in-domain validation items",
        "objectives": (FIRST, SECOND)[:objectives],
        "trials": trials(count, objectives, word=word),
        "simulated": True,
        "versions": {"qualms": "0.1.0"},
    }
    return SearchReport(**{**facts, **more})


def write_study(report, folder):
    """Write the study of a search, as `qualms tune` leaves it."""
    study = optuna.create_study(
        storage=f"sqlite:///{folder}/study.db",
        directions=["maximize", "minimize"][: len(report.objectives)],
    )
    names = ("title", "benchmark", "variant", "method", "preset", "selection", "items")
    facts = {name: getattr(report, name) for name in names}
    facts |= {"objectives": report.objectives, "versions": dict(report.versions)}
    study.set_user_attr("search", {**facts, "simulated": report.simulated})
    states = {"done": "COMPLETE", "pruned": "PRUNED", "failed": "RUNNING"}
    for trial in report.trials:
        notes = {"options": dict(trial.options), "run": trial.run}
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState[states[trial.state]],
                values=list(trial.values) or None,
                user_attrs={**notes, "error": trial.error},
            )
        )
