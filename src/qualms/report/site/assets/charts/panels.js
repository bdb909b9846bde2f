// A figure of panels that hold marks. Panels are read with the pointer or with the arrow
// keys; the read-out below shows every value at one place, so it prints as well.
const MOST_BANDS = 4;
qualms.charts.panels = (box, spec, figure) => {
  const readout = figure.querySelector(".readout");
  const speaker = figure.querySelector(".unseen");
  let focus = spec.focus || null;
  let active = 0;
  let share = spec.at;
  let frames = [];
  let sized = 0;
  let clips = 0;

  const named = (panel, kinds) => panel.marks.filter((mark) => mark.name && kinds.includes(mark.kind));
  const series = () => [...new Set(spec.panels.flatMap((panel) => named(panel, ["curve", "point", "bar", "histogram", "cloud"]).map((mark) => mark.name)))];
  const curves = (panel) => named(panel, ["curve"]);
  const nearest = (mark, x) => mark.x.reduce((best, value, i) => (value !== null && mark.y[i] !== null && (best < 0 || Math.abs(value - x) < Math.abs(mark.x[best] - x)) ? i : best), -1);
  const steps = ({ x }) => x.steps && x.ticks.map(([value]) => value);
  const xAt = (panel) => {
    const [low, high] = panel.x.range;
    const at = panel.x.log ? low * (high / low) ** share : low + share * (high - low);
    return panel.x.steps ? steps(panel).reduce((best, value) => (Math.abs(value - at) < Math.abs(best - at) ? value : best)) : at;
  };
  /* Goes along the axis: by a hundredth, with Shift by a tenth, and by steps where it has some. */
  const go = (panel, sign, far) => {
    if (!panel.x.steps) { share = Math.min(1, Math.max(0, share + sign * (far ? 0.1 : 0.01))); return; }
    const [low, high] = panel.x.range;
    const next = steps(panel)[steps(panel).indexOf(xAt(panel)) + sign];
    if (next !== undefined) share = (next - low) / (high - low);
  };

  /* Bands lie below all curves, and words above them. */
  const layer = (node) => (node.tagName === "text") - node.classList.contains("band");
  const drawPanel = (panel, number, width) => {
    const height = panel.picture ? width * panel.picture : Math.round(Math.min(320, Math.max(150, width * spec.aspect)));
    const labelled = width >= 430 && curves(panel).length > 1 && curves(panel).length <= 8;
    const right = panel.bare ? 2 : labelled ? Math.min(150, 22 + Math.max(...curves(panel).map((mark) => qualms.textWidth(mark.name)))) : 10;
    const frame = qualms.frame(panel, width, height, right);
    frame.base = panel.y.range[0];
    frame.bands = spec.bands && curves(panel).length <= MOST_BANDS;
    const svg = qualms.svg("svg", { class: "q", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${spec.title}. ${panel.title}${panel.empty ? `. ${panel.empty}` : ""}`, tabindex: curves(panel).length ? 0 : null }, frame.group);
    if (panel.empty) svg.append(qualms.label(panel.empty, width - 8, { x: width / 2, y: height / 2, "text-anchor": "middle" }));
    svg.append(clipped(panel, frame, panel.marks.flatMap((mark) => qualms.marks[mark.kind](mark, frame, focus)).sort((a, b) => layer(a) - layer(b))));
    if (labelled) svg.append(endLabels(panel, frame));
    frame.hover = qualms.svg("g", { class: "hover" });
    svg.append(frame.hover);
    frames[number] = frame;
    if (curves(panel).length) listen(svg, panel, number, frame);
    const titles = panel.title ? [qualms.html("p", { class: "panel-title" }, qualms.html("bdi", {}, panel.title))] : [];
    return qualms.html("div", { class: "panel" }, ...titles, svg);
  };

  /* Marks within the axes: an interval may reach beyond a stated range. */
  const clipped = (panel, frame, nodes) => {
    if (panel.bare) return qualms.svg("g", {}, ...nodes);
    clips += 1;
    const id = `${figure.id}-clip-${clips}`;
    const window = qualms.svg("rect", { x: frame.left - 6, y: frame.top - 7, width: frame.width - frame.left - frame.right + 12, height: frame.height - frame.top - frame.bottom + 8 });
    return qualms.svg("g", {}, qualms.svg("clipPath", { id }, window), qualms.svg("g", { "clip-path": `url(#${id})` }, ...nodes));
  };

  const endLabels = (panel, frame) => {
    const marks = curves(panel);
    const ends = marks.map((mark) => { let i = mark.y.length - 1; while (i > 0 && mark.y[i] === null) i -= 1; return frame.y(mark.y[i] === null ? panel.y.range[0] : mark.y[i]); });
    const places = qualms.spread(ends, 15, frame.top, frame.height - frame.bottom);
    const edge = frame.width - frame.right;
    return qualms.svg("g", {}, ...marks.flatMap((mark, i) => [
      qualms.svg("path", { class: qualms.look(mark, "leader", focus), d: `M${edge + 1},${ends[i].toFixed(1)}L${edge + 10},${places[i].toFixed(1)}` }),
      qualms.label(mark.name, frame.right - 16, { class: qualms.look(mark, "end", focus), x: edge + 13, y: places[i].toFixed(1), dy: ".34em" }),
    ]));
  };

  const listen = (svg, panel, number, frame) => {
    const move = (event) => {
      const bounds = svg.getBoundingClientRect();
      const x = (event.clientX - bounds.left - frame.left) / (frame.width - frame.left - frame.right);
      if (x < -0.05 || x > 1.05) return;
      share = Math.min(1, Math.max(0, x));
      active = number;
      hover();
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerdown", move);
    svg.addEventListener("focus", () => { active = number; hover(); });
    svg.addEventListener("keydown", (event) => {
      const names = series();
      const i = names.indexOf(focus);
      if (event.key === "ArrowRight") go(panel, 1, event.shiftKey);
      else if (event.key === "ArrowLeft") go(panel, -1, event.shiftKey);
      else if (event.key === "ArrowDown") choose(names[(i + 1) % names.length], number);
      else if (event.key === "ArrowUp") choose(names[(i - 1 + names.length) % names.length], number);
      else if (event.key === "Escape") choose(null, number);
      else return;
      event.preventDefault();
      hover();
      speaker.textContent = readout.innerText;
    });
  };

  const choose = (name, number) => {
    if (name === focus) return;
    focus = name;
    spec.focus = name;
    draw(sized);
    if (number !== undefined) box.querySelectorAll("svg")[number].focus();
  };

  const hover = () => {
    spec.at = share;
    spec.panels.forEach((panel, number) => {
      if (!curves(panel).length) return;
      const frame = frames[number];
      const marks = curves(panel);
      frame.hover.replaceChildren(qualms.svg("path", { class: "hair", d: `M${frame.x(xAt(panel)).toFixed(1)},${frame.top}V${frame.height - frame.bottom}` }));
      marks.forEach((mark, i) => {
        const at = nearest(mark, xAt(panel));
        if (at < 0) return;
        const aside = mark.low ? (i - (marks.length - 1) / 2) * 3 : 0;
        const x = frame.x(mark.x[at]) + aside;
        if (mark.low && mark.low[at] !== null) frame.hover.append(qualms.svg("path", { class: qualms.look(mark, "whisker", focus), d: `M${x.toFixed(1)},${frame.y(mark.low[at]).toFixed(1)}V${frame.y(mark.high[at]).toFixed(1)}` }));
        frame.hover.append(qualms.svg("circle", { class: qualms.look(mark, "dot", focus), cx: x.toFixed(1), cy: frame.y(mark.y[at]).toFixed(1), r: 4 }));
      });
    });
    read();
  };

  /* The values of the active panel. */
  const read = () => {
    const panel = spec.panels[active];
    const at = xAt(panel);
    const many = spec.panels.length > 1 && panel.title;
    const values = [
      ...curves(panel).map((mark) => { const i = nearest(mark, at); return [mark, i < 0 ? null : mark.y[i], i >= 0 && mark.low ? mark.low[i] : null, i >= 0 && mark.high ? mark.high[i] : null]; }),
      ...named(panel, ["bar"]).map((mark) => [mark, mark.height, mark.low, mark.high]),
      ...named(panel, ["point"]).map((mark) => [mark, mark.y, mark.low, mark.high]),
    ];
    const head = [many ? panel.title : "", curves(panel).length ? `${panel.x.label || "x"} ${qualms.number(at)}` : ""].filter(Boolean).join(": ");
    readout.replaceChildren(
      ...(head ? [qualms.html("li", { class: "head" }, qualms.html("bdi", {}, head))] : []),
      ...values.map(([mark, value, low, high]) => entry(mark, qualms.number(value), qualms.range(low, high), group(panel, mark, values))),
      ...(values.length ? [] : series().map((name) => entry(spec.panels.flatMap((each) => each.marks).find((mark) => mark.name === name), "", ""))),
    );
    readout.hidden = !readout.children.length;
  };
  /* Which of several groups on the x axis a bar or point is of, where names repeat. */
  const group = (panel, mark, values) => {
    const same = values.filter(([other]) => other.name === mark.name).length > 1;
    if (!same || typeof mark.x !== "number" || !panel.x.ticks) return "";
    const [, text] = panel.x.ticks.reduce((best, tick) => (Math.abs(tick[0] - mark.x) < Math.abs(best[0] - mark.x) ? tick : best));
    return text ? `${text.replace(/\s+/g, " ")}: ` : "";
  };
  const entry = (mark, value, range, before = "") => {
    const swatch = qualms.svg("svg", { class: "swatch", viewBox: "0 0 14 10", "aria-hidden": "true" }, qualms.svg("path", { class: qualms.look(mark, "curve"), d: "M0,5H14" }));
    const button = qualms.html("button", { type: "button", "aria-pressed": String(mark.name === focus) }, swatch, qualms.html("bdi", {}, before + mark.name), qualms.html("b", {}, value), qualms.html("small", {}, range));
    button.addEventListener("click", () => choose(mark.name === focus ? null : mark.name));
    return qualms.html("li", {}, button);
  };

  const draw = (width) => {
    sized = width;
    const least = spec.panels.every((panel) => panel.picture) ? 84 : 250;
    const columns = Math.max(1, Math.min(spec.columns, Math.floor((width + 20) / (least + 20))));
    const wide = Math.floor((width - 20 * (columns - 1)) / columns);
    box.dataset.columns = columns;
    const children = spec.panels.map((panel, number) => drawPanel(panel, number, Math.min(wide, panel.picture ? 260 : 760)));
    box.replaceChildren(qualms.html("div", { class: `panels columns-${columns}` }, ...children));
    hover();
  };
  return draw;
};
