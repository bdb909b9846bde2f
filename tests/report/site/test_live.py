"""The served site: for one person on one machine, and fresh during runs."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qualms.cli import app
from qualms.report.site import write_contents
from qualms.report.site.live import LiveRuns, LiveServer, LiveSite
from qualms.runs import describe, mark_done, mark_failed, note_request
from qualms.spec import Part, RunSpec
from report.site.browsing import DRAW_ALL, OPEN_ALL, axe_findings, settle, wait
from report.site.made_site import HOSTILE, contents


def spec(seed=0, method="map", epochs=4):
    return RunSpec(
        benchmark="mine",
        dataset=Part(name="cells", options={"variant": "plain"}),
        network=Part(name="resnet_small"),
        method=Part(name=method),
        seed=seed,
        training={"epochs": epochs},
        splits=("val",),
        version=1,
    )


def made_run(out, seed=0, losses=(), **more):
    """The folder of a run with some epochs."""
    run = spec(seed, **more)
    folder = out / "mine" / run.hash
    describe(folder, run, {})
    lines = [
        json.dumps(
            {"epoch": n, "loss": loss, "seconds": 30.0, "images_per_second": 1234.5}
        )
        for n, loss in enumerate(losses)
    ]
    (folder / "log.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder, run


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"

    def write():
        folder.mkdir(exist_ok=True)
        page = (
            '<html><head><meta http-equiv="Content-Security-Policy"'
            ' content="default-src &#x27;none&#x27;; script-src &#x27;self&#x27;">'
            '</head><body><ul class="nav"></ul>results</body></html>'
        )
        (folder / "index.html").write_text(page)
        return folder / "index.html"

    (tmp_path / "secret.txt").write_text("secret")
    return LiveSite(folder, [tmp_path / "runs"], write)


@pytest.fixture
def server(site, tmp_path):
    site.update()
    made = LiveServer(site, LiveRuns([tmp_path / "runs"]), command="qualms report runs")
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


def ask(server, path, *, host=None, method="GET", token=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    token = server.token if token is None else token
    connection.putrequest(method, f"/{token}/{path}", skip_host=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def state(server):
    return json.loads(ask(server, "live.json")[1])


def test_a_page_is_served_with_a_strict_policy_and_a_link_to_the_live_page(server):
    answer, body = ask(server, "")
    assert answer.status == 200
    text = body.decode()
    assert '<a href="live.html">Live</a>' in text
    assert "results" in text
    for policy in (answer.headers["Content-Security-Policy"], text):
        assert "default-src" in policy
        assert "connect-src" in policy
        assert "unsafe" not in policy
        assert "http:" not in policy
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Python" not in answer.headers["Server"]


def test_it_is_bound_to_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    assert len(server.token) >= 32


@pytest.mark.parametrize("token", ["", "wrong", "x" * 32, "%00", "%ff%fe", "%C3%A9"])
@pytest.mark.parametrize("path", ["", "live.json", "index.html"])
def test_without_the_token_nothing_is_there(server, token, path):
    answer, body = ask(server, path, token=token)
    assert answer.status == 404
    assert body == b"nothing is here\n"


def test_a_part_of_the_token_and_no_slash_are_not_enough(server):
    assert ask(server, "", token=server.token[:-1])[0].status == 404
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.request("GET", f"/{server.token}")
    assert connection.getresponse().status == 404
    connection.close()


@pytest.mark.parametrize(
    "host", ["", "example.org", "example.org:{port}", "127.0.0.1", "127.0.0.1:1"]
)
def test_another_name_of_the_host_is_refused(server, host):
    host = host.format(port=server.server_port)
    assert ask(server, "live.json", host=host)[0].status in (400, 421)


def test_localhost_is_a_name_of_this_machine(server):
    assert ask(server, "", host=f"localhost:{server.server_port}")[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "/etc/passwd"),
        *("a/../../secret.txt", "link.txt", "none.html", "%00", "assets"),
    ],
)
def test_nothing_outside_the_site_is_served(server, site, path):
    (site.folder / "link.txt").symlink_to(site.folder.parent / "secret.txt")
    answer, body = ask(server, path)
    assert answer.status == 404
    assert b"secret" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server, method):
    assert ask(server, "live.json", method=method)[0].status == 501


def test_a_head_has_no_body(server):
    answer, body = ask(server, "live.json", method="HEAD")
    assert answer.status == 200
    assert body == b""


def test_the_live_page_and_its_assets_are_served(server):
    page = ask(server, "live.html")[1].decode()
    assert 'id="live-runs"' in page
    assert 'aria-current="page"' in page
    for name, kind in (("live.js", "javascript"), ("live.css", "css")):
        answer, body = ask(server, name)
        assert kind in answer.headers["Content-Type"]
        assert len(body) > 300
    assert b"innerHTML" not in ask(server, "live.js")[1]


def test_every_run_has_its_state(server, tmp_path):
    runs = tmp_path / "runs"
    assert state(server)["runs"] == []
    made_run(runs, 0, [2.0, 1.0])
    folder, run = made_run(runs, 1, [2.0])
    mark_failed(folder, run, "the loss must be finite, got nan")
    folder, run = made_run(runs, 2, [3.0, 2.0, 1.0, 0.5])
    mark_done(folder, run, {})
    folder, _ = made_run(runs, 3)
    long_ago = time.time() - 7200
    for path in folder.iterdir():
        os.utime(path, (long_ago, long_ago))
    shown = state(server)
    assert shown["counts"] == {"failed": 1, "quiet": 1, "under way": 1, "done": 1}
    failed, quiet, running, done = shown["runs"]
    assert failed["error"] == "the loss must be finite, got nan"
    assert 7100 < quiet["ago"] < 7300
    assert (quiet["epoch"], quiet["epochs"], quiet["losses"]) == (0, 4, [])
    assert running["name"] == "cells plain, map, seed 0"
    assert (running["epoch"], running["epochs"]) == (2, 4)
    assert running["losses"] == [2.0, 1.0]
    assert (running["left"], running["speed"]) == (60.0, 1234.5)
    assert done["left"] is None


def test_losses_are_live(server, tmp_path):
    folder, _ = made_run(tmp_path / "runs", 0, [2.0])
    assert state(server)["runs"][0]["losses"] == [2.0]
    with (folder / "log.jsonl").open("a") as file:
        # A loss that is not finite, and a line that is being written.
        file.write('{"epoch": 1, "loss": NaN, "seconds": 1}\n{"epoch": 2, "lo')
    (run,) = state(server)["runs"]
    assert run["losses"] == [2.0, None]
    assert run["loss"] is None


def test_a_long_curve_keeps_its_ends(server, tmp_path):
    made_run(tmp_path / "runs", 0, [float(n) for n in range(1000)], epochs=1000)
    losses = state(server)["runs"][0]["losses"]
    assert len(losses) == 80
    assert (losses[0], losses[-1]) == (0.0, 999.0)


def test_the_end_of_a_log_is_shown_and_of_known_runs_alone(server, tmp_path):
    folder, _ = made_run(tmp_path / "runs")
    key = state(server)["runs"][0]["key"]
    assert json.loads(ask(server, f"log.json?run={key}")[1]) == {"log": ""}
    lines = [f"line {n}" for n in range(9000)]
    (folder / "log.txt").write_text("\n".join(lines) + "\n\x1b[31mred")
    log = json.loads(ask(server, f"log.json?run={key}")[1])["log"]
    assert log.splitlines()[-2] == "line 8999"
    assert log.splitlines()[0] in lines
    assert len(log) <= 20_000
    assert "\x1b" not in log
    for wrong in ("", "?run=", "?run=../../secret", "?run=mine/x", "?other=1"):
        assert ask(server, f"log.json{wrong}")[0].status == 404


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"a": 1}', "\x00"])
def test_a_folder_that_holds_no_run_is_left_out(server, tmp_path, damage):
    made_run(tmp_path / "runs")
    broken = tmp_path / "runs" / "mine" / "broken"
    broken.mkdir()
    (broken / "spec.json").write_text(damage)
    assert len(state(server)["runs"]) == 1


def test_hostile_names_stay_texts(server, tmp_path):
    words = " ".join(HOSTILE[:9]).replace("\x00", "")
    folder, run = made_run(tmp_path / "runs")
    mark_failed(folder, run, f"{words}\x1b[31m")
    answer, body = ask(server, "live.json")
    assert answer.headers["Content-Type"] == "application/json"
    error = json.loads(body)["runs"][0]["error"]
    assert "\x1b" not in error
    assert len(error) <= 300


def test_the_site_is_written_again_when_results_change(site, tmp_path):
    site.update()
    site.update()
    assert site.version == 1
    results = tmp_path / "runs" / "mine" / "demo" / "results.csv"
    results.parent.mkdir(parents=True)
    results.write_text("score,value\n")
    site.update()
    assert site.version == 2


def test_before_any_result_the_live_page_stands_for_the_site(tmp_path):
    def write():
        raise ValueError("runs hold nothing yet")

    site = LiveSite(tmp_path / "site", [tmp_path], write)
    with pytest.raises(ValueError, match="nothing yet"):
        site.update(strict=True)
    other = LiveSite(tmp_path / "site", [tmp_path], write)
    other.update()
    assert (other.version, other.problem) == (0, "runs hold nothing yet")


def test_a_taken_port_gets_a_sentence(site):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} is taken.*--port"):
            LiveServer(site, LiveRuns([]), port=port)


def test_the_command_serves_during_runs_and_an_interrupt_ends_it(tmp_path):
    made_run(tmp_path / "runs", 0, [1.0])
    source = Path(__file__).parents[3] / "src"
    words = ("report", tmp_path / "runs", "--out", tmp_path / "new", "--serve")
    process = subprocess.Popen(
        [sys.executable, "-m", "qualms", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONUNBUFFERED": "1"},
    )
    line = process.stdout.readline()
    if not line.startswith("serving http://127.0.0.1:"):
        process.kill()
        pytest.fail(line + process.stderr.read())
    port, token, _ = line.split()[1].removeprefix("http://127.0.0.1:").split("/")
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=5)
    connection.request("GET", f"/{token}/")
    assert b'id="live-runs"' in connection.getresponse().read()
    connection.close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert (out, err) == ("ended\n", "")


@pytest.mark.parametrize(
    ("more", "said"), [(["--single"], "leave out --single"), ([], "holds neither")]
)
def test_mistakes_with_serve_get_a_sentence(tmp_path, more, said):
    (tmp_path / "runs").mkdir()
    words = ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "new")]
    result = CliRunner().invoke(app, [*words, "--serve", *more])
    assert isinstance(result.exception, ValueError)
    assert said in str(result.exception)
    assert not (tmp_path / "new").exists()


def test_totals_are_over_all_runs_that_were_asked_for(server, tmp_path):
    runs = tmp_path / "runs"
    folder, done = made_run(runs, seed=0, losses=(2.0, 1.0, 0.5, 0.4))
    mark_done(folder, done, {})
    under_way = made_run(runs, seed=1, losses=(2.0,))[1]
    note_request(runs, [done, under_way, spec(seed=2), spec(seed=3)])
    shown = state(server)
    assert shown["all"] == 4
    assert shown["counts"] == {"done": 1, "under way": 1, "waiting": 2}
    # Epochs take 30 s: 3 are left of the run, and 2 runs of 4 wait, one at a time.
    assert shown["left"] == 3 * 30 + 2 * 4 * 30
    made_run(runs, seed=2, losses=(2.0, 1.0))
    shown = state(server)
    assert shown["counts"] == {"done": 1, "under way": 2, "waiting": 1}
    assert shown["left"] == (3 * 30 + 2 * 30 + 4 * 30) / 2


def test_nothing_is_said_of_the_time_left_where_no_epoch_has_ended(server, tmp_path):
    runs = tmp_path / "runs"
    made_run(runs)
    note_request(runs, [spec(), spec(seed=1)])
    shown = state(server)
    assert shown["counts"] == {"under way": 1, "waiting": 1}
    assert shown["left"] is None
    (runs / "mine" / "requested.json").write_text("damaged")
    assert state(server)["counts"] == {"under way": 1}


def test_the_live_page_has_its_style_and_script_before_there_is_a_site(tmp_path):
    site = LiveSite(tmp_path / "none", [tmp_path / "runs"], lambda: tmp_path)
    made_run(tmp_path / "runs", losses=(1.0,))
    server = LiveServer(site, LiveRuns([tmp_path / "runs"]))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    page = ask(server, "")[1].decode()
    for path, kind in (
        ("assets/site.js", "text/javascript"),
        ("assets/site.css", "text/css"),
        ("live.js", "text/javascript"),
        ("live.css", "text/css"),
    ):
        assert path in page
        answer, body = ask(server, path)
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(kind)
        assert len(body) > 500
    server.shutdown()
    server.server_close()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_served_pages_have_no_serious_finding(open_page, tmp_path, width, dark):
    runs, site = tmp_path / "runs", tmp_path / "site"
    folder, failed = made_run(runs, 0, [2.0, 1.0])
    mark_failed(folder, failed, f"the loss must be finite, got {HOSTILE[1]}")
    (folder / "log.txt").write_text("line\n" * 40)
    folder, done = made_run(runs, 1, [3.0, 2.0, 1.0, 0.5])
    mark_done(folder, done, {})
    made_run(runs, 2, [2.0, 1.5])
    note_request(runs, [spec(seed) for seed in range(4)])
    live = LiveSite(site, [runs], lambda: write_contents(contents(names=()), site))
    live.update()
    with serving(live, runs) as address:
        page = open_page(f"{address}live.html", width=width, dark=dark)
        wait(page, "document.querySelectorAll('#live-runs tbody tr').length === 3")
        page.evaluate(OPEN_ALL)
        wait(page, "document.querySelector('#live-runs pre').innerText.includes('ne')")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_findings(page) == []
        lines = "e => getComputedStyle(e).borderBottomStyle"
        cells = page.locator("#live-runs tbody tr:first-child td").all()
        assert {cell.evaluate(lines) for cell in cells} == {"solid"}
        page = open_page(f"{address}mine.html", width=width, dark=dark)
        page.evaluate(OPEN_ALL + DRAW_ALL)
        settle(page)
        assert page.locator(".nav a", has_text="Live").count() == 1
        assert axe_findings(page) == []


@contextmanager
def serving(live, runs):
    server = LiveServer(live, LiveRuns([runs]), command="qualms report runs --serve")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server.address
    server.shutdown()
    server.server_close()
