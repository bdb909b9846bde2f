// Differences with intervals: each row minus a reference that the reader chooses.
qualms.charts.forest = (box, spec, figure) => {
  const readout = figure.querySelector(".readout");
  const said = figure.querySelector(".unseen");
  let [reference, items, sized] = [0, 0, 0];
  const known = (value) => value !== null && Number.isFinite(value);
  /* Pairs are stored once; turned around they change their sign. */
  const gaps = (score) => score.pairs.flatMap(([row, other, value, low, high]) => {
    if (other === reference) return [{ row, value, low, high }];
    return row === reference ? [{ row: other, value: -value, low: known(high) ? -high : null, high: known(low) ? -low : null }] : [];
  }).sort((a, b) => a.row - b.row);
  const verdict = (gap, sign) => (known(gap.low) && known(gap.high) ? gap.low * gap.high > 0 ? (gap.value * sign > 0 ? "better" : "worse") : "undecided" : "not compared");
  const list = (words, names, now, then) => {
    const select = qualms.html("select", {}, ...names.map((each, i) => qualms.html("option", { value: i, selected: i === now }, each)));
    select.addEventListener("change", () => { then(Number(select.value)); draw(sized); });
    return qualms.html("label", {}, `${words} `, select);
  };
  const bar = qualms.html("div", { class: "bar" }, list("Reference", spec.rows, reference, (i) => { reference = i; }), spec.items.length > 1 ? list("Items", spec.items, items, (i) => { items = i; }) : null);
  const place = qualms.html("div");
  box.replaceChildren(bar, place);
  const draw = (width) => {
    sized = width;
    const shown = spec.scores.filter((score) => score.items === items).map((score) => ({ ...score, gaps: gaps(score) })).filter((score) => score.gaps.length);
    spec.panels = shown.map((score) => ({ title: score.label, marks: score.gaps.map((gap) => ({ kind: "point", name: spec.rows[gap.row], x: spec.rows[reference], y: gap.value, low: gap.low, high: gap.high })) }));
    const narrow = width < 560;
    const [left, right] = narrow ? [110, 0] : [200, 200];
    const [from, to] = [left + 8, width - right - 8];
    const zero = (from + to) / 2;
    const svg = qualms.svg("svg", { class: "q", role: "img", "aria-label": `Differences from ${spec.rows[reference]}, ${spec.items[items] || ""}` });
    const end = (x, text, anchor) => svg.append(qualms.label(text, zero - from, { x, y: 11, "text-anchor": anchor }));
    end(zero - 8, "← worse", "end");
    end(zero + 8, "better →", "start");
    let y = 20;
    const counts = spec.rows.map(() => ({ better: 0, worse: 0, undecided: 0, "not compared": 0 }));
    for (const score of shown) {
      y += 22;
      svg.append(qualms.label(score.label, width - 8, { x: 0, y, class: "word" }));
      const most = Math.max(...score.gaps.flatMap((gap) => [gap.value, gap.low, gap.high].filter(known).map(Math.abs))) || 1;
      const x = (value) => (zero + score.sign * (value / most) * (to - zero)).toFixed(1);
      for (const gap of score.gaps) {
        y += 20;
        const word = verdict(gap, score.sign);
        counts[gap.row][word] += 1;
        const colour = gap.row < 6 ? `c${gap.row}` : "c6";
        svg.append(qualms.svg("path", { class: "grid", d: `M${from},${y}H${to}` }), qualms.label(spec.rows[gap.row], left - 12, { x: left - 4, y, dy: ".34em", "text-anchor": "end" }));
        if (word !== "not compared") svg.append(qualms.svg("path", { class: `whisker ${colour}`, d: `M${x(gap.low)},${y}H${x(gap.high)}` }));
        svg.append(qualms.svg("circle", { class: `dot ${colour}${word === "better" || word === "worse" ? "" : " hollow"}`, cx: x(gap.value), cy: y, r: 4.5 }));
        if (narrow) y += 16;
        const range = qualms.range(gap.low, gap.high, 2);
        svg.append(qualms.label(`${qualms.number(gap.value)}${range && ` (${range})`}`, right || width, { x: width - 4, y, dy: ".34em", "text-anchor": "end" }));
      }
      y += 6;
    }
    svg.prepend(qualms.svg("path", { class: "rule", d: `M${zero},16V${y + 6}` }));
    for (const [name, value] of Object.entries({ width, height: y + 12, viewBox: `0 0 ${width} ${y + 12}` })) svg.setAttribute(name, value);
    place.replaceChildren(svg);
    const lines = counts.map((count, row) => [spec.rows[row], Object.entries(count).filter(([, number]) => number).map(([word, number]) => `${number} ${word}`).join(", ")]).filter(([, words], row) => row !== reference && words);
    readout.replaceChildren(qualms.html("li", { class: "head" }, "Against ", qualms.html("bdi", {}, spec.rows[reference])), ...lines.map(([name, words]) => qualms.html("li", {}, qualms.html("bdi", {}, name), `: ${words}`)));
    said.textContent = lines.map((line) => line.join(": ")).join("; ");
  };
  return draw;
};
