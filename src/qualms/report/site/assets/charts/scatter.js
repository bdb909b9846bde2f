// Points with intervals and labels, and the line of those that no other point beats.
qualms.charts.scatter = (box, spec, figure) => {
  const readout = figure.querySelector(".readout");
  /* Of many points only those of the line have names beside them. */
  const shown = spec.named ? spec.points.filter((point) => spec.named.includes(point.name)) : spec.points;
  let focus = null;
  let sized = 0;
  const draw = (width) => {
    sized = width;
    const height = width < 470 ? 280 : 320;
    const named = width >= 470 ? shown : [];
    const right = named.length ? Math.min(190, 30 + Math.max(...named.map((point) => qualms.textWidth(point.name)))) : 14;
    const frame = qualms.frame(spec, width, height, right);
    const svg = qualms.svg("svg", { class: "q", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spec.title }, frame.group);
    const front = spec.front.map((name) => spec.points.find((point) => point.name === name));
    if (front.length > 1) svg.append(qualms.svg("path", { class: "rule dotted", d: qualms.path(front.map((point) => frame.x(point.x)), front.map((point) => frame.y(point.y))) }));
    const places = qualms.spread(named.map((point) => frame.y(point.y)), 14, frame.top, height - frame.bottom);
    for (const point of spec.points) svg.append(...qualms.marks.point(point, frame, focus));
    named.forEach((point, i) => {
      const x = frame.x(point.x);
      const edge = width - right + 12;
      svg.append(
        qualms.svg("path", { class: qualms.look(point, "leader", focus), d: `M${(x + 6).toFixed(1)},${frame.y(point.y).toFixed(1)}L${edge - 4},${places[i].toFixed(1)}` }),
        qualms.label(point.name, right - 16, { class: qualms.look(point, "end", focus), x: edge, y: places[i].toFixed(1), dy: ".34em" }),
      );
    });
    box.replaceChildren(svg);
    readout.replaceChildren(...shown.map((point) => {
      const swatch = qualms.svg("svg", { class: "swatch", viewBox: "0 0 14 10", "aria-hidden": "true" }, qualms.svg("path", { class: `curve ${point.c}`, d: "M0,5H14" }));
      const button = qualms.html("button", { type: "button", "aria-pressed": String(point.name === focus) }, swatch, qualms.html("bdi", {}, point.name), qualms.html("b", {}, qualms.number(point.y)), qualms.html("small", { class: "detail" }, point.detail));
      button.addEventListener("click", () => { focus = point.name === focus ? null : point.name; draw(sized); });
      return qualms.html("li", {}, button);
    }));
  };
  spec.panels = [{ title: "", marks: spec.points.map((point) => ({ ...point, kind: "point" })) }];
  return draw;
};
