// The planner: looks up what Python computed for every budget and target. There are no
// statistics here: shares are divisions of counts, and all else is read from tables.
qualms.planner = {
  /* Packed texts as the numbers that they hold. */
  open(value) {
    if (Array.isArray(value)) return value.map(qualms.planner.open);
    if (value === null || typeof value !== "object") return value;
    const text = value.f64 ?? value.i32;
    if (typeof text !== "string") return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, qualms.planner.open(each)]));
    const { buffer } = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return "f64" in value ? new Float64Array(buffer) : new Int32Array(buffer);
  },
  /* The place of the threshold that answers a request; `row` numbers the budget or
     target, `sure` the confidence (-1: a budget for the given items). */
  answer(plan, asked, row, sure) {
    if (asked === "budget") return { found: true, place: (sure < 0 ? plan.budget.observed : plan.budget.promised[sure])[row] };
    const score = plan.scores.find((each) => each.name === asked);
    const place = score.promised[sure][row];
    return { found: place >= 0, place: place >= 0 ? place : score.most[sure], observed: score.observed[row], needed: score.needed[sure][row], bound: score.bounds[sure] };
  },
  referred: (set, place) => [(set.n - set.kept[place]) / set.n, set.referred.low[place], set.referred.high[place]],
  /* A score of the kept items, with the ends of its interval. */
  kept: (each, place) => [each.value ? each.value[place] : (each.counted[place] - each.wrong[place]) / each.counted[place], each.low[place], each.high[place]],
  withExpert: (each, place) => (each.expert ? each.expert[place] : 1 - each.wrong[place] / each.counted.at(-1)),
  /* Of 1,000 items: kept ones that are wrong, missed positives, false alarms. */
  errors(set, place) {
    const wrong = (name) => { const each = set.measures.find((one) => one.name === name && one.wrong); return each ? (1000 / set.n) * each.wrong[place] : NaN; };
    return { wrong: wrong("accuracy"), missed: wrong("sensitivity"), alarms: wrong("specificity") };
  },
  verdict: (set, asked, row, sure) => (set.verdicts[asked] ? set.verdicts[asked][asked === "budget" ? sure + 1 : sure][row] : ""),
};

qualms.charts.planner = (box, spec, figure) => {
  const { html, svg, planner } = qualms;
  const kinds = { accuracy: ["Accuracy", "At least this share of the kept items right"], sensitivity: ["Sensitivity", "At least this share of the kept positives found"], specificity: ["Specificity", "At least this share of the kept negatives cleared"], budget: ["A budget", "Refer at most this share"] };
  const ofQueries = ["R@1", "At least this share of the kept queries with a right neighbour"];
  const askedWords = (name) => (plan.queries && name === "accuracy" ? ofQueries : kinds[name]);
  const verdicts = { "+": ["✓ met", "good"], "-": ["✗ missed", "bad"], "?": ["too few items to tell", "warn"] };
  const percent = (share, unit = "\u00a0%") => (Number.isFinite(share) ? `${(100 * share).toFixed(1)}${unit}` : "–");
  const exact = (share) => `${Number((100 * share).toFixed(1))}\u00a0%`;
  const count = (number, word) => `${number.toLocaleString("en")} ${word}`;
  const colour = (number) => `c${number % 6}`;
  const speaker = figure.querySelector(".unseen");
  let entry, plan, asked, sure, slider, said;
  let curves = {};
  const rows = {};

  const part = (title, body) => html("div", { class: "part" }, html("h2", {}, title), body);
  const [side, words, cards, plot, counts, notes] = ["side", "say", "sets", "picture", "counts", "small"].map((name) => html("div", { class: name }));
  const output = html("output", { for: "planner-slider" });
  const command = html("code");
  box.classList.add("planner");
  box.append(side, html("div", { class: "answer-of-plan" }, words, cards, part("One threshold, every set", plot), part("Of 1,000 such items", counts), part("The same in a terminal", html("pre", {}, command)), notes));

  const grid = () => (asked === "budget" ? plan.budgets : plan.targets);
  const wanted = () => grid()[rows[asked]];
  const answer = (row = rows[asked]) => planner.answer(plan, asked, row, sure);

  /* Controls. */
  const radios = (legend, name, choices, chosen, pick) => html("fieldset", {}, html("legend", {}, legend), ...choices.map(([value, text]) => {
    const input = html("input", { type: "radio", name, value, checked: value === chosen });
    input.addEventListener("change", () => pick(value));
    return html("label", {}, input, html("span", {}, text));
  }));
  const chooser = () => {
    const groups = [...new Set(spec.plans.map((each) => each.group))];
    const select = html("select", {}, ...groups.map((group) => html("optgroup", { label: group }, ...spec.plans.filter((each) => each.group === group).map((each) => html("option", { value: each.data, selected: each === entry }, each.label)))));
    select.addEventListener("change", () => open(spec.plans.find((each) => each.data === select.value)));
    return html("label", { class: "choice" }, "Predictions", select);
  };
  const controls = () => {
    const budget = asked === "budget";
    if (!budget) sure = sure < 0 ? 1 : sure;
    const confidences = plan.confidences.map((each, i) => [i, exact(each)]);
    slider = html("input", { type: "range", id: "planner-slider", min: 0, max: grid().length - 1, step: 1, value: rows[asked] });
    slider.addEventListener("input", () => { rows[asked] = Number(slider.value); show(); });
    side.replaceChildren(
      chooser(),
      radios("I want", "planner-asked", [...plan.scores.map((each) => each.name), "budget"].map((each) => [each, askedWords(each)[0]]), asked, (each) => { asked = each; sure = each === "budget" ? -1 : sure; controls(); show(); side.querySelector(`[value=${each}]`).focus(); }),
      radios("With confidence", "planner-sure", budget ? [[-1, "none"], ...confidences] : confidences, sure, (each) => { sure = each; show(); }),
      html("div", { class: "dial" }, html("label", { for: "planner-slider" }, askedWords(asked)[1]), output, slider),
    );
  };

  /* Words. */
  const sentence = ({ found, place }) => {
    if (!found) return `No threshold can promise ${asked} of ${exact(wanted())}.`;
    const goal = asked === "budget" ? "To refer at most" : `For ${plan.queries ? askedWords(asked)[0] : asked} of at least`;
    const value = plan.rounded[place];
    const rule = Number.isFinite(value) ? `refer where the ${plan.uncertainty} is ${value} or more` : "refer no item";
    return `${goal} ${exact(wanted())}: ${rule}. That sends ${percent(planner.referred(plan.sets[0], place)[0])} to an expert.`;
  };
  const promise = ({ found, observed, needed, bound }) => {
    if (sure < 0) return "It holds for these items; nothing is promised for new ones.";
    const confidence = `with ${exact(plan.confidences[sure])} confidence`;
    const texts = found
      ? [`Promised ${confidence} for new items like these${plan.clustered ? ", of one random item per cluster" : ""}. It rests on ${count(plan.items, "independent items")}.`]
      : [`The most that can be promised ${confidence} is ${bound}, shown below.`];
    if (needed) texts.push(`About ${count(needed, "items")} like these would be enough.`);
    if (observed >= 0) texts.push(`Without the promise, referring ${percent(planner.referred(plan.sets[0], observed)[0])} reaches it on these items.`);
    else if (observed < 0) texts.push("Even on these items themselves no threshold reaches it.");
    return texts.join(" ");
  };
  const card = (set, number, place) => {
    const [text, kind] = verdicts[planner.verdict(set, asked, rows[asked], sure)] || ["planned here", ""];
    const line = (label, [value, low, high], say, more) => [html("dt", {}, label), html("dd", {}, say(value)), html("dd", { class: "ends" }, Number.isNaN(low) ? "" : `${say(low)}–${say(high)}`), html("dd", { class: "more" }, more)];
    const lines = set.measures.flatMap((each) => {
      const say = each.name === "mae" ? (value) => (value === Infinity ? "∞" : qualms.number(value)) : (value) => percent(value, "");
      return line(each.label, planner.kept(each, place), say, `before ${say(each.before[0])}, with expert ${say(planner.withExpert(each, place))}`);
    });
    const items = `${count(set.n, "items")}${set.clusters ? ` of ${count(set.clusters, "clusters")}` : ""}`;
    return html("div", { class: "set" }, html("h2", {}, html("i", { class: `key ${colour(number)}` }), html("bdi", {}, set.label), html("span", { class: `chip ${kind}` }, text)), html("p", { class: "small" }, `${items}; of those kept${plan.scores.length ? ", in %" : ""}:`), html("dl", {}, ...line(plan.scores.length ? "referred" : "referred, %", planner.referred(set, place), (value) => percent(value, ""), ""), ...lines));
  };
  const thousand = (set, place) => {
    const { wrong, missed } = planner.errors(set, place);
    const [expert, errors, lost] = [1000 * planner.referred(set, place)[0], wrong || 0, missed || 0].map(Math.round);
    const right = [1000 - expert - errors, Number.isNaN(wrong) ? "decided by the network" : "right", "c0"];
    const bad = Number.isNaN(wrong) ? [] : Number.isNaN(missed) ? [[errors, "wrong", "c1"]] : [[lost, "missed", "c1"], [errors - lost, "false alarms", "c5"]];
    const parts = [right, ...bad, [expert, "to an expert", "c6"]];
    let x = 0;
    const bars = parts.map(([width, , look]) => { x += width; return svg("rect", { class: `bar ${look}`, x: x - width, width, height: 20 }); });
    return html("div", {}, html("p", { class: "panel-title" }, html("bdi", {}, set.label)), svg("svg", { class: "of-thousand", viewBox: "0 0 1000 20", preserveAspectRatio: "none", "aria-hidden": "true" }, ...bars), html("ul", { class: "keys" }, ...parts.map(([number, text, look]) => html("li", {}, html("i", { class: `key ${look}` }), `${number} ${text}`))));
  };

  /* The curve of each set, and the plan on it. */
  const curvesOf = (at, scale) => plan.sets.map((set, number) => {
    const places = [...set.kept.keys()].reverse().filter((place) => Number.isFinite(planner.kept(set.measures[at], place)[0]));
    const points = places.map((place) => planner.kept(set.measures[at], place).map((value) => (Number.isFinite(value) ? scale * value : null)));
    const [y, low, high] = [0, 1, 2].map((which) => points.map((point) => point[which]));
    return { name: set.label, c: colour(number), x: places.map((place) => 100 * planner.referred(set, place)[0]), y, low, high };
  });
  const draw = ({ place }) => {
    const at = Math.max(0, plan.sets[0].measures.findIndex((each) => each.name === asked));
    const { name, label } = plan.sets[0].measures[at];
    const scale = name === "mae" ? 1 : 100;
    curves[at] = curves[at] || curvesOf(at, scale);
    const dots = plan.sets.map((set, number) => {
      const [y, low, high] = planner.kept(set.measures[at], place).map((value) => (Number.isFinite(value) ? scale * value : null));
      return { name: set.label, c: colour(number), x: 100 * planner.referred(set, place)[0], y, low, high };
    });
    const budget = asked === "budget";
    const seen = [...curves[at].flatMap((mark) => mark.y.filter((_, i) => mark.x[i] <= 90)), ...dots.flatMap((dot) => [dot.low, dot.high]), budget ? null : scale * wanted()].filter((value) => value !== null);
    const [least, most] = [Math.min(...seen), Math.max(...seen)];
    const room = (most - least || 1) * 0.05;
    const [low, high] = [Math.max(0, least - room), scale === 1 ? most + room : Math.min(100, most + room)];
    const width = plot.clientWidth;
    const height = Math.round(Math.min(340, Math.max(220, width * 0.45)));
    const frame = qualms.frame({ x: { range: [0, 100], label: "% referred" }, y: { range: [low, high], label: `${label} of the kept items${scale === 1 ? "" : ", %"}` } }, width, height);
    const [start, end] = budget ? [[100 * wanted(), low], [100 * wanted(), high]] : [[0, scale * wanted()], [100, scale * wanted()]];
    const view = { x: 0, y: frame.top, width, height: height - frame.top - frame.bottom };
    const inside = svg("svg", { ...view, viewBox: Object.values(view).join(" "), class: "clip" }, ...curves[at].flatMap((mark) => qualms.marks.curve(mark, frame, mark.name)));
    const shown = svg("svg", { class: "q drag", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label} of the kept items by share referred, for each set; the numbers stand above` }, frame.group, inside, ...qualms.marks.rule({ start, end, name: budget ? "" : "asked for", c: "ink", line: ":" }, frame), ...dots.flatMap((dot) => qualms.marks.point(dot, frame)));
    const move = (event) => {
      const x = (event.clientX - shown.getBoundingClientRect().left - frame.left) / (width - frame.left - frame.right);
      const away = grid().map((_, row) => { const each = answer(row); return each.found ? Math.abs(planner.referred(plan.sets[0], each.place)[0] - x) : Infinity; });
      rows[asked] = away.indexOf(Math.min(...away));
      slider.value = rows[asked];
      show();
    };
    plot.onpointerdown = move;
    plot.onpointermove = (event) => { if (event.buttons) move(event); };
    const legend = plan.sets.map((set, number) => html("li", {}, html("i", { class: `key ${colour(number)}` }), html("bdi", {}, set.label)));
    plot.replaceChildren(shown, html("ul", { class: "keys" }, ...legend));
    spec.panels = [{ title: label, marks: curves[at].map((mark) => ({ ...mark, kind: "curve" })) }];
  };

  const show = () => {
    const now = answer();
    box.dataset.plan = entry.data;
    output.textContent = exact(wanted());
    slider.setAttribute("aria-valuetext", output.textContent);
    words.replaceChildren(html("p", { class: "verdict" }, sentence(now)), html("p", { class: "small" }, promise(now)));
    cards.replaceChildren(...plan.sets.map((set, number) => card(set, number, now.place)));
    counts.replaceChildren(...plan.sets.map((set) => thousand(set, now.place)));
    command.textContent = `${plan.command[0]} \\\n  --${asked} ${wanted()}${sure < 0 ? "" : ` --confidence ${plan.confidences[sure]}`}${plan.command[1]}`;
    if (plot.clientWidth) draw(now);
    clearTimeout(said);
    said = setTimeout(() => { speaker.textContent = sentence(now); }, 400);
    /* The address holds the request, so that a plan can be passed on. */
    if (single) return;
    const request = { plan: entry.data, for: asked, at: wanted(), confidence: sure < 0 ? "none" : plan.confidences[sure] };
    history.replaceState(null, "", `#${new URLSearchParams(request)}`);
  };
  const single = document.querySelector("article.page") !== null;
  const address = new URLSearchParams(single ? "" : location.hash.slice(1));
  const begin = () => {
    const names = [...plan.scores.map((each) => each.name), "budget"];
    const known = (name, value) => (name === "budget" ? plan.budgets : plan.targets).indexOf(value);
    for (const [name, value] of [["accuracy", 0.9], ["sensitivity", 0.85], ["specificity", 0.85], ["budget", 0.2]]) rows[name] ??= known(name, value);
    if (asked === undefined && names.includes(address.get("for"))) {
      asked = address.get("for");
      sure = plan.confidences.indexOf(Number(address.get("confidence")));
      const row = known(asked, Number(address.get("at")));
      if (row >= 0) rows[asked] = row;
    }
    if (!names.includes(asked)) {
      [asked, sure] = [names[0], names[0] === "budget" ? -1 : 1];
      /* At first what can be promised is shown, if anything can. */
      const row = rows[asked];
      while (rows[asked] > 0 && !answer().found) rows[asked] -= 1;
      if (!answer().found) rows[asked] = row;
    }
  };
  const open = (chosen) => {
    entry = chosen;
    qualms.tools.of(figure, entry.data);
    qualms.load(entry.data, (packed) => {
      if (entry !== chosen) return;
      plan = planner.open(packed);
      curves = {};
      begin();
      notes.replaceChildren(html("ul", {}, ...plan.notes.map((note) => html("li", {}, note))));
      controls();
      show();
    });
  };
  open(spec.plans.find((each) => each.data === address.get("plan")) || spec.plans[0]);
  return () => { if (plan) show(); };
};
