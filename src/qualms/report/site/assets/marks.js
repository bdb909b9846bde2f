// What stands in a panel: a function for each kind of mark draws it into its frame.
qualms.marks = {};

/* Classes of a mark: its colour, and whether another series is in focus. */
qualms.look = (mark, kind, focus) => `${kind} ${mark.c}${mark.line === "--" ? " dashed" : mark.line === ":" ? " dotted" : ""}${focus && mark.name && mark.name !== focus ? " faded" : ""}`;
qualms.path = (xs, ys) => {
  let path = "";
  let pen = "M";
  xs.forEach((x, i) => {
    if (ys[i] === null || !Number.isFinite(ys[i])) { pen = "M"; return; }
    path += `${pen}${x.toFixed(1)},${ys[i].toFixed(1)}`;
    pen = "L";
  });
  return path;
};
const place = (scale, values) => values.map((value) => (value === null ? null : scale(value)));

qualms.marks.curve = (mark, frame, focus) => {
  const xs = place(frame.x, mark.x);
  const nodes = [];
  if (mark.low && (focus ? focus === mark.name : frame.bands)) {
    const inner = xs.map((_, i) => i).filter((i) => mark.low[i] !== null && mark.high[i] !== null);
    const there = inner.map((i) => `${xs[i].toFixed(1)},${frame.y(mark.high[i]).toFixed(1)}`);
    const back = inner.reverse().map((i) => `${xs[i].toFixed(1)},${frame.y(mark.low[i]).toFixed(1)}`);
    if (there.length > 1) nodes.push(qualms.svg("path", { class: `band ${mark.c}`, d: `M${there.join("L")}L${back.join("L")}Z` }));
  }
  nodes.push(qualms.svg("path", { class: qualms.look(mark, "curve", focus), d: qualms.path(xs, place(frame.y, mark.y)) }));
  if (mark.dots) mark.x.forEach((x, i) => { if (mark.y[i] !== null) nodes.push(qualms.svg("circle", { class: qualms.look(mark, "dot", focus), cx: xs[i].toFixed(1), cy: frame.y(mark.y[i]).toFixed(1), r: 3 })); });
  return nodes;
};

qualms.marks.point = (mark, frame, focus) => {
  if (mark.x === null || mark.y === null) return [];
  const [x, y] = [frame.x(mark.x).toFixed(1), frame.y(mark.y).toFixed(1)];
  const ends = (scale) => [mark.low, mark.high].map((end) => scale(end).toFixed(1));
  const nodes = [];
  if (mark.low !== null && mark.high !== null) nodes.push(qualms.svg("path", { class: qualms.look(mark, "whisker", focus), d: mark.across ? `M${ends(frame.x).join(`,${y}H`)}` : `M${x},${ends(frame.y).join("V")}` }));
  const look = qualms.look(mark, mark.hollow ? "dot hollow" : "dot", focus);
  nodes.push(qualms.svg("circle", { class: look, cx: x, cy: y, r: 4.5 }, qualms.svg("title", {}, `${mark.name} ${qualms.number(mark.x)}, ${qualms.number(mark.y)} ${qualms.range(mark.low, mark.high)}`)));
  return nodes;
};

qualms.marks.cloud = (mark, frame, focus) => {
  let path = "";
  mark.x.forEach((x, i) => { if (x !== null && mark.y[i] !== null) path += `M${frame.x(x).toFixed(1)},${frame.y(mark.y[i]).toFixed(1)}h0`; });
  return [qualms.svg("path", { class: qualms.look(mark, "cloud", focus), d: path })];
};

qualms.marks.bar = (mark, frame, focus) => {
  if (mark.height === null) return [];
  const [left, right] = [frame.x(mark.x - mark.width / 2), frame.x(mark.x + mark.width / 2)];
  const base = frame.y(Math.max(0, frame.base));
  const end = frame.y(mark.height);
  const nodes = [qualms.svg("rect", { class: qualms.look(mark, "bar", focus), x: left.toFixed(1), y: Math.min(base, end).toFixed(1), width: Math.max(1, right - left).toFixed(1), height: Math.abs(base - end).toFixed(1) }, qualms.svg("title", {}, `${mark.name} ${qualms.number(mark.height)} ${qualms.range(mark.low, mark.high)}`))];
  if (mark.low !== null && mark.high !== null) {
    const middle = ((left + right) / 2).toFixed(1);
    nodes.push(qualms.svg("path", { class: "error", d: `M${middle},${frame.y(mark.low).toFixed(1)}V${frame.y(mark.high).toFixed(1)}` }));
  }
  return nodes;
};

qualms.marks.histogram = (mark, frame, focus) => {
  let path = `M${frame.x(mark.edges[0]).toFixed(1)},${frame.y(mark.base).toFixed(1)}`;
  mark.heights.forEach((height, i) => { path += `V${frame.y(mark.base + (height || 0)).toFixed(1)}H${frame.x(mark.edges[i + 1]).toFixed(1)}`; });
  return [qualms.svg("path", { class: qualms.look(mark, "histogram", focus), d: `${path}V${frame.y(mark.base).toFixed(1)}Z` })];
};

qualms.marks.rule = (mark, frame) => {
  const [a, b] = [mark.start, mark.end];
  if ([...a, ...b].some((value) => value === null)) return [];
  const nodes = [qualms.svg("path", { class: qualms.look(mark, "rule"), d: `M${frame.x(a[0]).toFixed(1)},${frame.y(a[1]).toFixed(1)}L${frame.x(b[0]).toFixed(1)},${frame.y(b[1]).toFixed(1)}` })];
  if (mark.name) nodes.push(qualms.label(mark.name, frame.width / 2, { x: frame.x(b[0]).toFixed(1) - 4, y: (frame.y(b[1]) - 5).toFixed(1), "text-anchor": "end" }));
  return nodes;
};

qualms.marks.word = (mark, frame) => {
  const anchor = { left: "start", right: "end" }[mark.across] || "middle";
  const shift = { bottom: "-.3em", top: ".9em" }[mark.up] || ".34em";
  return [qualms.label(mark.text, frame.width, { x: frame.x(mark.x).toFixed(1), y: frame.y(mark.y).toFixed(1), dy: shift, "text-anchor": anchor, class: "word" })];
};

/* Pictures come as addresses that hold the pixels; outlines as paths in their pixels. */
qualms.marks.picture = (mark, frame) => [qualms.svg("image", { href: mark.address, x: frame.left, y: frame.top, width: frame.width - frame.left - frame.right, height: frame.height - frame.top - frame.bottom, preserveAspectRatio: "none" })];
qualms.marks.outline = (mark, frame) => {
  const across = (frame.width - frame.left - frame.right) / mark.shape[1];
  const down = (frame.height - frame.top - frame.bottom) / mark.shape[0];
  return [qualms.svg("path", { class: qualms.look(mark, "outline"), d: mark.path, transform: `translate(${frame.left},${frame.top}) scale(${across},${down})` })];
};
