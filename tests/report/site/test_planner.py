"""The planner in a real browser: its numbers are those of `qualms refer`."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import qualms
from qualms import predictions
from qualms.cli import app
from qualms.referral import ReferralOptions, plan_choices
from qualms.report.benchmark_report import BenchmarkReport, RowFacts, VariantFacts
from qualms.report.site import DataFile, SiteContents, write_site
from qualms.report.site._read import SiteRequest, read_contents
from qualms.report.site.contents import ShownBenchmark
from qualms.report.site.pages.planner import planner
from qualms.report.site.plans import plan_data, plan_sources
from qualms.report.site.shell import data_script
from qualms.spec import Part, RunSpec
from report.site.made_site import undrawn

HOSTILE = "<img src=x onerror=alert(1)> it's"
CLOSE = {"rel": 1e-9, "abs": 1e-12, "nan_ok": True}


def two_classes(n, seed, *, noise=1.0, digits=3):
    """Return both eyes of patients, some of them shifted."""
    rng = np.random.default_rng(seed)
    patient = np.arange(n) // 2
    target = (rng.random(n) < 0.35).astype(int)[patient]
    evidence = 1.6 * (2 * target - 1) + noise * rng.standard_normal(n)
    prob = (1 / (1 + np.exp(-2 * evidence))).round(digits)
    shifted = rng.random(n) < 0.3
    return {"target": target, "prob": prob, "cluster": patient, "shifted": shifted}


def three_classes(n, seed):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 3, n)
    scores = rng.random((n, 3)) + 1.5 * np.eye(3)[target]
    return {"target": target, "probs": scores / scores.sum(1, keepdims=True)}


def values(n, seed):
    rng = np.random.default_rng(seed)
    var = rng.random((1, n)) + 0.1
    target = rng.standard_normal(n) * np.sqrt(var[0])
    return {"target": target, "mean": np.zeros((1, n)), "var": var}


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """Files that plans are made on, with the others: two classes, three, values."""
    folder = tmp_path_factory.mktemp("planner")
    run = folder / "run"
    run.mkdir()
    val = predictions.write(run / "val.npz", two_classes(400, 0))
    test = predictions.write(run / "test.npz", two_classes(300, 1, noise=1.7))
    three = predictions.write(folder / "three.npz", three_classes(200, 2))
    hostile = predictions.write(folder / f"{HOSTILE}.npz", values(120, 3))
    return {"three": (three, ()), HOSTILE: (hostile, ()), "test": (val, (test,))}


@pytest.fixture(scope="module")
def site(plans):
    folder = plans["three"][0].parent
    files = (folder / "run", plans["three"][0], plans[HOSTILE][0])
    with undrawn():
        return write_site(*files, out=folder / "site").parent


@pytest.fixture
def visit(open_page):
    def visited(path, *, address="", **look):
        page = open_page(path.as_uri() + address, **look)
        page.wait_for_selector(".planner .verdict")
        return page

    return visited


LOOK = """([name, requests]) => new Promise((done) => qualms.load(name, (packed) => {
  const { planner } = qualms, plan = planner.open(packed), text = (x) => x.map(String);
  done(requests.map(([asked, row, sure]) => {
    const now = planner.answer(plan, asked, row, sure);
    return {
      found: now.found, needed: now.needed ?? 0, bound: now.bound ?? "",
      threshold: String(plan.thresholds[now.place]),
      rounded: String(plan.rounded[now.place]),
      observed: now.observed >= 0 ? String(plan.thresholds[now.observed]) : "",
      sets: plan.sets.map((set) => ({
        label: set.label, n: set.n, clusters: set.clusters, kept: set.kept[now.place],
        referred: text(planner.referred(set, now.place)),
        errors: text(Object.values(planner.errors(set, now.place))),
        verdict: planner.verdict(set, asked, row, sure),
        measures: set.measures.map((each) => ({
          name: each.name, label: each.label, before: text([...each.before]),
          kept: text(planner.kept(each, now.place)),
          expert: String(planner.withExpert(each, now.place)),
        })),
      })),
    };
  }));
}))"""


def requests_of(choices, times):
    rng = np.random.default_rng(0)
    kinds = ["budget", *choices.scores]
    for _ in range(times):
        asked = kinds[rng.integers(len(kinds))]
        grid = choices.budgets if asked == "budget" else choices.targets
        least = -1 if asked == "budget" else 0
        yield asked, int(rng.integers(len(grid))), int(rng.integers(least, 4))


def refer(files, choices, request):
    asked, row, sure = request
    value = float((choices.budgets if asked == "budget" else choices.targets)[row])
    plain = {asked: value} if asked in {"budget", "accuracy"} else {}
    return qualms.refer(
        files[0],
        **plain,
        confidence=None if sure < 0 else choices.confidences[sure],
        on=files[1],
        options=ReferralOptions(**({} if plain else {asked: value})),
    )


def numbers(texts):
    return [float(text.replace("Infinity", "inf")) for text in texts]


def check(shown, plan, asked):
    assert shown["found"] == plan.found
    cutoff, observed = plan.shown, plan.observed if asked != "budget" else None
    found = numbers([shown["threshold"], shown["rounded"]])
    assert found == [cutoff.threshold, cutoff.rounded]
    assert shown["needed"] == (plan.needed or 0)
    expected = [] if observed is None else [observed.threshold]
    assert numbers(filter(None, [shown["observed"]])) == expected
    for each, outcome in zip(shown["sets"], plan.outcomes, strict=True):
        assert (each["label"], each["n"]) == (outcome.label, outcome.n)
        assert (each["clusters"], each["kept"]) == (outcome.clusters, outcome.kept)
        share = outcome.referred
        expected = [share.value, share.low, share.high]
        assert numbers(each["referred"]) == pytest.approx(expected, **CLOSE)
        counts = outcome.per_thousand
        expected = [counts.wrong, counts.missed, counts.false_alarms]
        assert numbers(each["errors"]) == pytest.approx(expected, **CLOSE)
        signs = {"met": "+", "missed": "-", "undecided": "?"}
        assert each["verdict"] == signs.get(outcome.verdicts.get(asked), "")
        for measure in each["measures"]:
            expected = outcome.measure(measure["name"])
            kept, before = expected.kept, expected.before
            for found, of in ((measure["kept"], kept), (measure["before"], before)):
                ends = [of.value, of.low, of.high]
                assert numbers(found) == pytest.approx(ends, **CLOSE)
            expert = numbers([measure["expert"]])
            assert expert == pytest.approx([expected.with_expert], **CLOSE)


@pytest.mark.browser
def test_every_setting_shows_the_numbers_of_refer(site, plans, visit):
    page = visit(site / "planner.html")
    entries = page.evaluate("qualms.get('planner-plans').plans")
    assert {entry["label"] for entry in entries} == set(plans)
    compared = 0
    for entry in entries:
        files = plans[entry["label"]]
        choices = plan_choices(files[0], on=files[1])
        requests = list(requests_of(choices, 100))
        shown = page.evaluate(LOOK, [entry["data"], requests])
        for each, request in zip(shown, requests, strict=True):
            check(each, refer(files, choices, request), request[0])
            compared += 1
    assert compared == 300


def choose(page, label):
    page.select_option(".choice select", label=label)
    name = page.locator(".choice select option:checked").get_attribute("value")
    page.wait_for_selector(f".planner[data-plan='{name}']")


def printed_plan(page):
    """Run the command of the page, and return what it prints as JSON."""
    words = shlex.split(page.inner_text(".planner pre").replace("\\\n", " "))
    assert words[0] == "qualms"
    result = CliRunner().invoke(app, [*words[1:], "--json"])
    assert result.exit_code in {0, 1}, result.output
    return json.loads(result.output)


def check_words(page):
    """Compare the words of the page with what its command prints."""
    plan = printed_plan(page)
    verdict = page.inner_text(".planner .verdict")
    if plan["found"]:
        rule = f"is {plan['shown']['rounded']} or more" if plan["refers"] else "no item"
        assert rule in verdict
        assert f"sends {100 * plan['shown']['referred']:.1f}\u00a0%" in verdict
    else:
        assert verdict.startswith("No threshold can promise")
    cards = page.locator(".planner .set").all()
    for card, outcome in zip(cards, plan["outcomes"], strict=True):
        share = outcome["referred"]
        shown = card.locator("dd").all_inner_texts()
        assert shown[0] == f"{100 * share['value']:.1f}"
        assert shown[1] == f"{100 * share['low']:.1f}\u2013{100 * share['high']:.1f}"
    return plan


@pytest.mark.browser
def test_a_reader_asks_with_the_keyboard_and_gets_the_command(site, visit):
    page = visit(site / "planner.html")
    choose(page, "test")
    plan = check_words(page)
    assert (plan["request"]["accuracy"], plan["request"]["confidence"]) == (0.9, 0.9)
    slider = page.locator("#planner-slider")
    slider.focus()
    for key in ("ArrowRight", "ArrowRight", "PageDown", "Home"):
        page.keyboard.press(key)
        before, plan = plan["request"]["accuracy"], check_words(page)
        assert plan["request"]["accuracy"] != before
    assert slider.get_attribute("aria-valuetext") == "50\u00a0%"
    page.locator("input[value=accuracy]").focus()
    page.keyboard.press("ArrowRight")
    assert check_words(page)["request"]["sensitivity"] == 0.85
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    plan = check_words(page)
    assert (plan["request"]["budget"], plan["request"]["confidence"]) == (0.2, None)
    assert "nothing is promised" in page.inner_text(".planner .say")
    page.locator("input[name=planner-sure][value='3']").check()
    assert check_words(page)["request"]["confidence"] == 0.99
    page.wait_for_selector("#planner-figure .unseen:not(:empty)", state="attached")


@pytest.mark.browser
def test_a_request_is_dragged_and_its_address_passed_on(site, visit):
    page = visit(site / "planner.html")
    choose(page, "test")
    page.locator("input[value=budget]").check()
    page.locator(".drag").scroll_into_view_if_needed()
    box = page.locator(".drag").bounding_box()
    across, down = box["x"] + 0.5 * box["width"], box["y"] + box["height"] / 2
    page.mouse.move(across, down)
    page.mouse.down()
    page.mouse.move(across + 0.2 * box["width"], down)
    page.mouse.up()
    plan = check_words(page)
    assert plan["shown"]["referred"] == pytest.approx(0.7, abs=0.05)
    page.locator("input[name=planner-sure][value='0']").check()
    plan = check_words(page)
    address = page.evaluate("location.hash")
    again = visit(site / "planner.html", address=address)
    assert check_words(again) == plan
    for nonsense in ("#plan=x&for=__proto__&at=1e9&confidence=<b>", "#%"):
        visit(site / "planner.html", address=nonsense)


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_overflows_or_runs_on_a_phone(site, visit, dark):
    page = visit(site / "planner.html", width=390, dark=dark)
    for label in (HOSTILE, "three", "test"):
        choose(page, label)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide == 390
        assert page.locator(".planner img").count() == 0
    slider = page.locator("#planner-slider").bounding_box()
    assert slider["y"] + slider["height"] <= 900
    choose(page, HOSTILE)
    assert check_words(page)["request"]["budget"] == 0.2


@pytest.mark.browser
def test_a_site_of_one_file_has_the_planner_too(plans, tmp_path, visit):
    with undrawn():
        path = write_site(plans["three"][0], out=tmp_path / "one.html", single=True)
    page = visit(path, address="#page-planner")
    page.locator("input[value=budget]").check()
    assert check_words(page)["request"]["budget"] == 0.2
    assert page.evaluate("location.hash") == "#page-planner"


def test_a_plan_of_many_items_stays_below_a_megabyte():
    files = (two_classes(100_000, seed, digits=12) for seed in (0, 1))
    choices = plan_choices(next(files), on=[*files])
    assert len(choices.sets) == 4
    text = data_script([DataFile(name="plan", value=plan_data(choices, ("", "")))])
    assert len(choices.thresholds) > 1000
    assert len(text) < 1_000_000


def test_what_has_no_plan_is_said_with_the_reason(tmp_path):
    few = predictions.write(tmp_path / "few.npz", three_classes(30, 0))
    contents = read_contents(SiteRequest(sources=[few]))
    few.write_bytes(b"replaced meanwhile")
    (page,) = planner(contents)
    assert "No plan can be made of:" in page.html.text
    assert "few" in page.html.text
    assert page.data == ()
    assert list(planner(SiteContents())) == []


def made_run(folder, method, seed):
    """Write a run with predictions of three splits, as training leaves it."""
    spec = RunSpec(
        benchmark="eyes",
        dataset=Part(name="fundus"),
        network=Part(name="resnet_small"),
        method=Part(name=method),
        seed=seed,
        splits=("val", "val/shifted", "test", "test/shifted"),
    )
    run = folder / spec.hash
    (run / "predictions").mkdir(parents=True)
    (run / "spec.json").write_text(spec.to_json())
    for number, name in enumerate(("val", "val~shifted", "test", "test~shifted")):
        predictions.write(run / f"predictions/{name}.npz", two_classes(60, number))
    return run / "predictions"


def test_a_benchmark_has_a_plan_for_the_first_run_of_each_kind(tmp_path):
    links = tmp_path / "demo" / "predictions" / "country"
    links.mkdir(parents=True)
    for method, seed in (("map", 7), ("map", 5), ("laplace", 5)):
        target = made_run(tmp_path, method, seed)
        (links / f"{method}-seed{seed}").symlink_to(target)
    (links / "gone").symlink_to(tmp_path / "nowhere")
    report = BenchmarkReport(
        name="eyes",
        title="Eyes",
        task="classification",
        variants=(VariantFacts("country", "Country shift", simulated=True),),
        rows=(RowFacts("map", "Plain", "map"), RowFacts("pool", "Pool", "map", 2)),
        folder=tmp_path / "demo",
    )
    shown = ShownBenchmark(slug="eyes", report=report)
    laplace, plain = plan_sources(SiteContents(benchmarks=(shown,)))
    assert plain.label == "Plain (map-seed5)"
    assert laplace.label == "laplace (laplace-seed5)"
    assert plain.group == "Eyes, Country shift"
    assert plain.path == links / "map-seed5" / "val.npz"
    assert [path.name for path in plain.on] == ["test.npz", "test~shifted.npz"]
    before, after = plain.command
    command = f"{before} --accuracy 0.6{after}".replace("\\\n", " ")
    result = CliRunner().invoke(app, [*shlex.split(command)[1:], "--json"])
    outcomes = json.loads(result.output)["outcomes"]
    assert len(outcomes) == len(plain.choices().sets) == 6
    images = replace(report, task="segmentation")
    others = SiteContents(benchmarks=(replace(shown, report=images),))
    assert list(plan_sources(others)) == []
