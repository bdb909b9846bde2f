// Scales, ticks, axes and texts of charts.

/* Round numbers from `low` to `high`, about `count` of them. */
qualms.ticks = (low, high, count) => {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const error = rough / power;
  const step = (error >= 7.07 ? 10 : error >= 3.16 ? 5 : error >= 1.41 ? 2 : 1) * power;
  const ticks = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) ticks.push(Number(value.toPrecision(12)));
  return ticks;
};
qualms.logTicks = (low, high) => {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const digit of [1, 2, 5]) { const value = digit * 10 ** power; if (value >= low * 0.999 && value <= high * 1.001) ticks.push(Number(value.toPrecision(12))); }
  }
  return ticks;
};

/* A number as charts print it, with a true minus. */
qualms.number = (value, digits = 3) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = size >= 1e6 || (size > 0 && size < 1e-4) ? value.toExponential(2) : size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
};
qualms.range = (low, high, digits = 3) => (low === null || low === undefined || high === null || high === undefined ? "" : `${qualms.number(low, digits)}${low < 0 ? " to " : "–"}${qualms.number(high, digits)}`);

/* A scale from values to pixels; `axis` has `range` and `log`. */
qualms.scale = (axis, from, to) => {
  const change = axis.log ? Math.log10 : (value) => value;
  const [low, high] = axis.range.map(change);
  return (value) => from + ((change(value) - low) / (high - low || 1)) * (to - from);
};

/* Widths of texts, measured once. */
qualms.textWidth = (() => {
  const known = new Map();
  let pen = null;
  return (text) => {
    if (!pen) { pen = document.createElement("canvas").getContext("2d"); pen.font = `12px ${getComputedStyle(document.body).fontFamily}`; }
    if (!known.has(text)) known.set(text, pen.measureText(text).width);
    return known.get(text);
  };
})();
/* A text element that is never wider than `most` pixels; its title has all of it. */
qualms.label = (text, most, attributes) => {
  let shown = text;
  if (qualms.textWidth(text) > most) {
    let few = 0;
    let many = text.length;
    while (many - few > 1) { const middle = (few + many) >> 1; if (qualms.textWidth(`${text.slice(0, middle)}…`) <= most) few = middle; else many = middle; }
    shown = `${text.slice(0, few)}…`;
  }
  const node = qualms.svg("text", attributes, shown);
  if (shown !== text) node.append(qualms.svg("title", {}, text));
  return node;
};
/* Places pushed apart so that labels of height `gap` do not overlap. */
qualms.spread = (places, gap, low, high) => {
  const order = places.map((place, index) => ({ place, index })).sort((a, b) => a.place - b.place);
  let last = -Infinity;
  for (const each of order) { each.place = Math.max(each.place, last + gap, low); last = each.place; }
  last = Infinity;
  for (const each of order.reverse()) { each.place = Math.min(each.place, Math.min(last - gap, high)); last = each.place; }
  const spread = [];
  for (const each of order) spread[each.index] = each.place;
  return spread;
};

/* The frame of a panel: scales, and a group with grid, ticks and labels of axes. */
qualms.frame = (panel, width, height, right = 8) => {
  const ticksOf = (axis, pixels, apart) => {
    if (axis.ticks) return axis.ticks;
    const values = axis.log ? qualms.logTicks(...axis.range) : qualms.ticks(...axis.range, pixels / apart);
    return values.map((value) => [value, qualms.number(value)]);
  };
  const bottom = panel.bare ? 2 : panel.x.label ? 38 : 22;
  const top = panel.y.label && !panel.bare ? 20 : 8;
  const tall = height - top - bottom;
  const rows = panel.bare ? [] : ticksOf(panel.y, tall, 44);
  const left = panel.bare ? 2 : Math.min(width * 0.42, 10 + Math.max(12, ...rows.map(([, text]) => qualms.textWidth(text))));
  const x = qualms.scale(panel.x, left, width - right);
  const y = qualms.scale(panel.y, height - bottom, top);
  const group = qualms.svg("g", { class: "axes" });
  const px = (value) => value.toFixed(1);
  if (!panel.bare) {
    for (const [value, text] of rows) {
      group.append(qualms.svg("path", { class: "grid", d: `M${px(left)},${px(y(value))}H${px(width - right)}` }));
      if (text) group.append(qualms.label(text, left - 8, { x: left - 6, y: px(y(value)), dy: ".34em", "text-anchor": "end" }));
    }
    const columns = ticksOf(panel.x, width - left - right, 64);
    const room = columns.length > 1 ? Math.abs(x(columns[1][0]) - x(columns[0][0])) : width;
    for (const [value, text] of columns) {
      group.append(qualms.svg("path", { class: "base", d: `M${px(x(value))},${height - bottom}v4` }));
      if (text) group.append(qualms.label(text, room * 0.96, { x: px(x(value)), y: height - bottom + 16, "text-anchor": "middle" }));
    }
    group.append(qualms.svg("path", { class: "base", d: `M${px(left)},${height - bottom}H${px(width - right)}` }));
    if (panel.y.label) group.append(qualms.label(panel.y.label, width - 4, { x: 0, y: 11 }));
    if (panel.x.label) group.append(qualms.label(panel.x.label, width - 4, { x: width - right, y: height - 3, "text-anchor": "end" }));
  }
  return { x, y, left, right, top, bottom, width, height, group };
};
