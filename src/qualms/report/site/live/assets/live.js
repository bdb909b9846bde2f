// Shows how far runs are, and says on other pages that results are new. Texts of runs
// become text nodes, and nothing else.
"use strict";
qualms.live = { every: 2000, rows: new Map(), version: null };

qualms.live.duration = (seconds) => {
  if (seconds === null) return "";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
};

/* A curve of losses; what is not finite is left out. */
qualms.live.curve = (losses) => {
  const known = losses.filter((loss) => loss !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const x = (number) => (120 * number) / Math.max(losses.length - 1, 1);
  const y = (loss) => (high > low ? 26 - (24 * (loss - low)) / (high - low) : 14);
  const points = losses.map((loss, number) => (loss === null ? null : `${x(number).toFixed(1)},${y(loss).toFixed(1)}`));
  const path = qualms.svg("path", { d: `M${points.filter((point) => point !== null).join("L")}` });
  const label = `loss from ${known[0]} to ${known[known.length - 1]}`;
  return qualms.svg("svg", { class: "losses", viewBox: "0 0 120 28", role: "img", "aria-label": label }, known.length > 1 ? path : null);
};

/* The end of a log, loaded when it is opened. */
qualms.live.log = (run) => {
  const text = qualms.html("pre", { tabindex: 0 }, "…");
  const fold = qualms.html("details", {}, qualms.html("summary", {}, "log"), text);
  fold.addEventListener("toggle", async () => {
    if (!fold.open) return;
    try {
      const answer = await fetch(`log.json?run=${encodeURIComponent(run.key)}`);
      text.textContent = answer.ok ? (await answer.json()).log || "The log is empty." : "There is no log.";
    } catch { text.textContent = "The server has ended."; }
  });
  return fold;
};

qualms.live.row = (run) => {
  const cells = Array.from({ length: 6 }, () => qualms.html("td"));
  const state = qualms.html("span");
  const error = qualms.html("p", { class: "small" });
  cells[0].append(qualms.html("bdi", {}, run.name), qualms.html("p", { class: "small" }, run.benchmark));
  cells[1].append(state, error, qualms.live.log(run));
  const node = qualms.html("tr", { "data-run": run.key }, ...cells);
  const update = (now) => {
    node.dataset.state = now.state;
    state.textContent = now.state === "quiet" ? `quiet for ${qualms.live.duration(now.ago)}` : now.state;
    state.className = now.state.replace(" ", "-");
    error.textContent = now.error;
    const bar = qualms.html("progress", { max: Math.max(now.epochs, 1), value: now.state === "done" ? Math.max(now.epochs, 1) : now.epoch, "aria-label": "epochs" });
    cells[2].replaceChildren(bar, qualms.html("p", { class: "small" }, `${now.epoch} of ${now.epochs}`));
    cells[3].replaceChildren(...(now.losses.some((loss) => loss !== null) ? [qualms.live.curve(now.losses), now.loss === null ? "not finite" : String(Number(now.loss.toPrecision(4)))] : []));
    cells[4].textContent = now.speed === null ? "" : Math.round(now.speed).toLocaleString("en");
    cells[5].textContent = qualms.live.duration(now.left);
  };
  return { node, update };
};

qualms.live.show = (state) => {
  const body = document.querySelector("#live-runs tbody");
  const words = Object.entries(state.counts).map(([name, count]) => `${count} ${name}`);
  const text = words.length ? `${state.all} runs: ${words.join(", ")}${state.left === null ? "" : `; about ${qualms.live.duration(state.left)} left`}` : "No run has begun.";
  const bar = document.querySelector("#live-total");
  Object.assign(bar, { max: Math.max(state.all, 1), value: state.counts.done || 0, hidden: !words.length });
  const summary = document.querySelector("#live-summary");
  if (summary.textContent !== text) summary.textContent = text;
  const problem = document.querySelector("#live-problem");
  problem.hidden = !state.problem;
  problem.textContent = state.problem ? `There are no pages of results yet: ${state.problem}` : "";
  const keys = new Set(state.runs.map((run) => run.key));
  for (const [key, row] of qualms.live.rows) if (!keys.has(key)) { row.node.remove(); qualms.live.rows.delete(key); }
  state.runs.forEach((run, place) => {
    if (!qualms.live.rows.has(run.key)) qualms.live.rows.set(run.key, qualms.live.row(run));
    const row = qualms.live.rows.get(run.key);
    row.update(run);
    if (body.children[place] !== row.node) body.insertBefore(row.node, body.children[place] || null);
  });
};

/* On pages of results: a button that shows the new ones. */
qualms.live.news = () => {
  if (document.querySelector(".live-news")) return;
  const button = qualms.html("button", { type: "button" }, "Show the new results");
  button.addEventListener("click", () => location.reload());
  document.body.append(qualms.html("div", { class: "live-news", role: "status" }, button));
};

qualms.live.look = async () => {
  const page = document.querySelector("#live-runs");
  try {
    const state = await (await fetch("live.json")).json();
    if (page) qualms.live.show(state);
    else if (qualms.live.version !== null && state.version !== qualms.live.version) qualms.live.news();
    qualms.live.version = state.version;
  } catch {
    if (page) document.querySelector("#live-summary").textContent = "The server has ended.";
  }
  setTimeout(qualms.live.look, qualms.live.every);
};
qualms.live.look();
