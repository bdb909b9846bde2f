// The trials of a search: their values, the best so far, and those without a value.
// The pointer and the arrow keys go from trial to trial; the read-out says all of one.
qualms.charts.history = (box, spec, figure) => {
  const { html, svg } = qualms;
  const readout = figure.querySelector(".readout");
  const speaker = figure.querySelector(".unseen");
  const signs = { done: "●", pruned: "▽", failed: "✕", "under way": "○" };
  let at = Math.max(0, spec.trials.findIndex((trial) => trial.n === spec.at));
  let [sized, frame] = [0, null];

  /* Trials without a value stand on a line below the axes. */
  const place = (trial) => [frame.x(trial.n), trial.y === null ? frame.height - frame.bottom - 7 : frame.y(trial.y)];
  const mark = (trial) => {
    const [x, y] = place(trial).map((value) => value.toFixed(1));
    if (trial.state === "done") return svg("circle", { class: `dot ${trial.n === spec.at ? "c1" : "c0"}`, cx: x, cy: y, r: trial.n === spec.at ? 6 : 4 });
    if (trial.state === "failed") return svg("path", { class: "rule c1", d: `M${x - 4},${y - 4}l8,8m0,-8l-8,8` });
    const shape = trial.state === "pruned" ? `M${x - 5},${y - 4}h10l-5,8Z` : `M${x - 4},${y}a4,4 0 1 0 8,0a4,4 0 1 0 -8,0`;
    return svg("path", { class: "curve c6", d: shape });
  };
  const show = () => {
    const trial = spec.trials[at];
    const [x, y] = place(trial).map((value) => value.toFixed(1));
    frame.hover.replaceChildren(svg("circle", { class: "ring", cx: x, cy: y, r: 9 }));
    const options = trial.options.map(([name, value]) => html("li", {}, html("bdi", {}, name), ` ${value}`));
    const words = `trial ${trial.n}, ${trial.state}${trial.y === null ? "" : `: ${qualms.number(trial.y, 4)}`}${trial.n === spec.at ? ", the best" : ""}`;
    readout.replaceChildren(html("li", { class: "head" }, words), ...(trial.error ? [html("li", { class: "head" }, html("bdi", {}, trial.error))] : []), ...options);
    return words;
  };
  const go = (to) => {
    at = Math.min(spec.trials.length - 1, Math.max(0, to));
    speaker.textContent = show();
  };
  const draw = (width) => {
    sized = width;
    const height = width < 470 ? 260 : 300;
    frame = qualms.frame(spec, width, height, 12);
    const best = spec.best.flatMap(([n, y], i) => (i ? [[n, spec.best[i - 1][1]], [n, y]] : [[n, y]]));
    const line = qualms.path(best.map(([n]) => frame.x(n)), best.map(([, y]) => frame.y(y)));
    frame.hover = svg("g", { class: "hover" });
    const shown = svg("svg", { class: "q", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": `${spec.title}. ${spec.alt}` }, frame.group, svg("path", { class: "curve soft", d: line }), ...spec.trials.map(mark), frame.hover);
    const nearest = (event) => {
      const bounds = shown.getBoundingClientRect();
      const away = spec.trials.map((trial) => { const [x, y] = place(trial); return Math.hypot(x - event.clientX + bounds.left, y - event.clientY + bounds.top); });
      at = away.indexOf(Math.min(...away));
      show();
    };
    shown.addEventListener("pointermove", nearest);
    shown.addEventListener("pointerdown", nearest);
    shown.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: spec.trials.length - 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      go(steps[event.key]);
    });
    const states = [...new Set(spec.trials.map((trial) => trial.state))];
    const legend = states.map((state) => html("li", {}, html("span", {}, `${signs[state]} ${spec.trials.filter((trial) => trial.state === state).length} ${state}`)));
    box.replaceChildren(shown, html("ul", { class: "keys" }, ...legend, html("li", {}, html("span", {}, "— best so far"))));
    show();
  };
  return draw;
};
