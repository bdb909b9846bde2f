// Segmentations: panels of one case side by side, and a slider through its slices.
// Pictures hold a number per pixel, slice by slice; colours are given here.
qualms.charts.viewer = (box, spec, figure) => {
  const { html, svg } = qualms;
  const colours = ["#5f78ea", "#d9561a", "#1fa674", "#f28dbd", "#55d6f5", "#e2ca2c"];
  const speaker = figure.querySelector(".unseen");
  let source, shown, scan, axis, at;
  const shelf = html("div", { class: "shelf" });
  const facts = html("p", { class: "about" });
  const controls = html("div", { class: "dials" });
  const panels = html("div", { class: "scans" });
  const classes = html("ul", { class: "keys", "aria-label": "Classes" });
  const output = html("p", { class: "small value", "aria-live": "off" });
  box.classList.add("viewer");

  /* The numbers of a panel in the order z, y, x; of colours there are three. */
  const numbers = (panel, [depth, height, width], across, done) => {
    const image = new Image();
    image.onload = () => {
      const canvas = html("canvas", { width: image.width, height: image.height });
      const pen = canvas.getContext("2d", { willReadFrequently: true });
      pen.drawImage(image, 0, 0);
      const { data } = pen.getImageData(0, 0, image.width, image.height);
      const each = panel.kind === "colour" ? 3 : 1;
      const out = new Uint8Array(depth * height * width * each);
      let i = 0;
      for (let z = 0; z < depth; z += 1) for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {
        const from = 4 * ((Math.floor(z / across) * height + y) * image.width + (z % across) * width + x);
        for (let c = 0; c < each; c += 1) { out[i] = data[from + c]; i += 1; }
      }
      done(out);
    };
    image.src = panel.png;
  };

  const sides = () => scan.shape.filter((_, i) => i !== axis);
  /* Heads are above feet: z grows upwards, where it is a row of the picture. */
  const place = (row, column) => { if (scan.upright && axis) row = scan.shape[0] - 1 - row; const zyx = [row, column]; zyx.splice(axis, 0, at); return (zyx[0] * scan.shape[1] + zyx[1]) * scan.shape[2] + zyx[2]; };
  const colour = (panel, i) => {
    const value = panel.numbers[i];
    if (panel.kind === "colour") return panel.numbers.subarray(3 * i, 3 * i + 3);
    if (panel.kind === "grey") return [value, value, value];
    if (panel.kind === "regions") return scan.panels[0].ground ? colour(scan.panels[0], i) : [28, 34, 42];
    if (panel.kind === "labels") return spec.labels[value];
    return value === 255 ? [128, 128, 128] : spec.heat[Math.round((value * panel.largest) / panel.most)];
  };
  const paint = (panel) => {
    const [height, width] = sides();
    const [down, right] = scan.spacing.filter((_, i) => i !== axis);
    /* A canvas has whole pixels for each of the slice; its style has their shape in mm. */
    const scale = 384 / Math.max(height * down, width * right);
    const [rows, columns] = [down, right].map((side) => Math.max(1, Math.round(scale * side)));
    const small = new ImageData(width, height);
    for (let row = 0; row < height; row += 1) for (let column = 0; column < width; column += 1) small.data.set([...colour(panel, place(row, column)), 255], 4 * (row * width + column));
    const plain = html("canvas", { width, height });
    plain.getContext("2d").putImageData(small, 0, 0);
    Object.assign(panel.canvas, { width: width * columns, height: height * rows });
    panel.canvas.style.aspectRatio = `${width * right} / ${height * down}`;
    const pen = panel.canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(plain, 0, 0, width * columns, height * rows);
    if (panel.kind === "regions") panel.names.forEach((_, bit) => outline(panel, pen, bit, rows, columns));
  };
  /* Outlines lie inside their pixels; later ones are thinner, so that equal ones show. */
  const outline = (panel, pen, bit, rows, columns) => {
    const [height, width] = sides();
    const inside = (row, column) => row >= 0 && column >= 0 && row < height && column < width && (panel.numbers[place(row, column)] >> bit) & 1;
    const thick = Math.max(1, Math.min(rows, columns) / (3 + 2 * bit));
    pen.fillStyle = colours[bit];
    for (let row = 0; row < height; row += 1) for (let column = 0; column < width; column += 1) {
      if (!inside(row, column)) continue;
      const [x, y] = [column * columns, row * rows];
      if (!inside(row - 1, column)) pen.fillRect(x, y, columns, thick);
      if (!inside(row + 1, column)) pen.fillRect(x, y + rows - thick, columns, thick);
      if (!inside(row, column - 1)) pen.fillRect(x, y, thick, rows);
      if (!inside(row, column + 1)) pen.fillRect(x + columns - thick, y, thick, rows);
    }
  };

  const className = (value) => { const one = scan.classes.find(([number]) => number === value); return one ? one[1] : `class ${value}`; };
  const said = (panel, i) => {
    const value = panel.numbers[i];
    if (panel.kind === "heat") return value === 255 ? "–" : qualms.number((value / 254) * panel.largest, 2);
    if (panel.kind === "regions") return panel.names.filter((_, bit) => (value >> bit) & 1).join(", ") || "none";
    return panel.kind === "labels" ? className(value) : "";
  };
  const point = (event) => {
    const bounds = event.currentTarget.getBoundingClientRect();
    const [height, width] = sides();
    const row = Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - bounds.top) / bounds.height) * height)));
    const column = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - bounds.left) / bounds.width) * width)));
    const texts = scan.panels.map((panel) => [panel.title, said(panel, place(row, column))]).filter(([, text]) => text);
    output.replaceChildren(`row ${row}, column ${column}: `, html("bdi", {}, texts.map((each) => each.join(" ")).join("; ")));
  };
  const legend = (panel) => {
    if (panel.kind === "heat") return [html("span", {}, "0"), svg("svg", { class: "bar-of-heat", viewBox: "0 0 64 1", preserveAspectRatio: "none", "aria-hidden": "true" }, ...Array.from({ length: 64 }, (_, i) => svg("rect", { x: i, width: 1.1, height: 1, fill: `rgb(${spec.heat[i * 4]})` }))), html("span", {}, `${qualms.number(panel.most)} ${panel.unit}`)];
    return (panel.names || []).map((each, i) => html("span", {}, svg("svg", { class: "key", viewBox: "0 0 9 9", "aria-hidden": "true" }, svg("rect", { width: 9, height: 9, fill: colours[i] })), html("bdi", {}, each)));
  };

  const show = () => {
    const count = scan.shape[axis];
    const [left, top] = scan.upright ? scan.upright[axis] : [];
    controls.querySelector("output").textContent = `${at + 1}/${count}${left ? `, left ${left}, top ${top}` : ""}`;
    scan.panels.forEach(paint);
  };
  const dials = () => {
    const slider = html("input", { type: "range", id: "viewer-slice", min: 0, max: scan.shape[axis] - 1, step: 1, value: at });
    slider.addEventListener("input", () => { at = Number(slider.value); show(); });
    const choices = scan.cuts.map((each, i) => {
      const button = html("button", { type: "button", "aria-pressed": String(i === axis) }, each);
      button.addEventListener("click", () => { axis = i; at = scan.shape[i] >> 1; dials(); show(); controls.querySelectorAll("button")[i].focus(); });
      return button;
    });
    controls.replaceChildren(html("label", { for: "viewer-slice" }, "Slice"), slider, html("output", { for: "viewer-slice" }), html("span", { class: "axes", role: "group", "aria-label": "Axis of slices" }, ...choices));
    controls.hidden = scan.shape.includes(1);
  };
  const draw = (value) => {
    scan = value;
    axis = Math.max(0, scan.shape.indexOf(1));
    at = scan.shape[axis] >> 1;
    facts.replaceChildren(html("b", {}, html("bdi", {}, scan.name)), ` ${scan.about}`);
    let left = scan.panels.length;
    const parts = scan.panels.map((panel) => {
      panel.canvas = html("canvas", { role: "img", "aria-label": `${panel.title} of ${scan.name}` });
      panel.canvas.addEventListener("pointermove", point);
      numbers(panel, scan.shape, scan.across, (out) => { panel.numbers = out; left -= 1; if (!left && scan === value) show(); });
      return html("div", { class: "scan" }, html("p", { class: "panel-title" }, panel.title), panel.canvas, html("p", { class: "small keys" }, ...legend(panel)));
    });
    output.textContent = "Point at a pixel to read its values.";
    dials();
    panels.replaceChildren(...parts);
    const key = (value) => svg("svg", { class: "key", viewBox: "0 0 9 9", "aria-hidden": "true" }, svg("rect", { width: 9, height: 9, fill: `rgb(${spec.labels[value]})` }));
    classes.replaceChildren(...scan.classes.map(([value, each]) => html("li", {}, key(value), html("bdi", {}, each))));
    speaker.textContent = `${scan.name}. ${scan.about}`;
  };
  const open = (number) => {
    shown = (number + source.cases.length) % source.cases.length;
    const entry = source.cases[shown];
    shelf.querySelector("select").value = entry.data;
    qualms.load(entry.data, (value) => { if (entry === source.cases[shown]) draw(value); });
  };
  const choose = (value) => {
    source = value;
    const select = html("select", {}, ...source.cases.map((each) => html("option", { value: each.data }, each.label)));
    select.addEventListener("change", () => open(select.selectedIndex));
    const step = (sign, label, by) => { const button = html("button", { type: "button", "aria-label": label }, sign); button.addEventListener("click", () => open(shown + by)); return button; };
    shelf.replaceChildren(html("label", { class: "source" }, "Case", select), step("‹", "previous case", -1), step("›", "next case", 1), html("p", { class: "small" }, source.about));
    open(0);
  };
  box.append(qualms.chooseSource(spec, figure, choose), shelf, facts, controls, html("div", { class: "picture" }, panels, classes), output);
  return () => {};
};
