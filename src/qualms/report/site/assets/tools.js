// Tools below a figure: its numbers as a table and as CSV, and the picture as SVG.
qualms.tools = {};
const MOST_LINES = 200;

/* Every number of a figure: panel, series, x, value and interval. */
qualms.tools.lines = (spec) => spec.lines || spec.panels.flatMap((panel) => panel.marks.flatMap((mark) => {
  const line = (x, y, low, high) => [panel.title, mark.name, x, y, low, high];
  if (mark.kind === "curve" || mark.kind === "cloud") return mark.x.map((x, i) => line(x, mark.y[i], mark.low ? mark.low[i] : null, mark.high ? mark.high[i] : null));
  if (mark.kind === "point") return [line(mark.x, mark.y, mark.low, mark.high)];
  if (mark.kind === "bar") return [line(mark.x, mark.height, mark.low, mark.high)];
  if (mark.kind === "histogram") return mark.heights.map((height, i) => line((mark.edges[i] + mark.edges[i + 1]) / 2, height, null, null));
  return [];
}));
qualms.tools.head = ["panel", "series", "x", "value", "low", "high"];

/* A cell of CSV; quotes stand before what a spreadsheet would run as a formula, which may begin after a semicolon. */
qualms.tools.cell = (value) => {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = value.replace(/(^\s*|[;\t\r\n][\s"]*)('*[=+@\uff1d\uff0b\uff0d\uff20-])/g, "$1'$2");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
qualms.tools.csv = (spec) => [spec.head || qualms.tools.head, ...qualms.tools.lines(spec)].map((line) => line.map(qualms.tools.cell).join(",")).join("\r\n");

qualms.tools.save = (name, text, kind) => {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const anchor = qualms.html("a", { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};

/* Shows the files of the source that the reader has chosen. */
qualms.tools.of = (figure, key) => { for (const each of figure.querySelectorAll(".tools [data-key]")) each.hidden = each.dataset.key !== key; };

/* Lets the reader choose one of `spec.sources`, and passes its data to `show`. */
qualms.chooseSource = (spec, figure, show) => {
  let current = "";
  const open = (key) => { current = key; qualms.tools.of(figure, key); qualms.load(key, (value) => { if (key === current) show(value, key); }); };
  const groups = [...new Set(spec.sources.map((each) => each.group))];
  const option = (each) => qualms.html("option", { value: each.data }, each.label);
  const select = qualms.html("select", {}, ...groups.map((group) => qualms.html("optgroup", { label: group }, ...spec.sources.filter((each) => each.group === group).map(option))));
  select.addEventListener("change", () => open(select.value));
  open(select.value);
  return qualms.html("label", { class: "source" }, spec.choice || "Predictions", select);
};

/* One SVG of what is drawn, with the colours that are on the screen. */
qualms.tools.picture = (figure) => {
  const properties = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-size", "font-weight", "font-family", "text-anchor", "paint-order"];
  const root = figure.querySelector(".picture") || figure.querySelector(".plot");
  const box = root.getBoundingClientRect();
  const whole = qualms.svg("svg", { xmlns: "http://www.w3.org/2000/svg", width: box.width, height: box.height, viewBox: `0 0 ${box.width} ${box.height}` });
  whole.append(qualms.svg("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.documentElement).getPropertyValue("--raised").trim() }));
  for (const node of root.querySelectorAll("svg, canvas, i.key, .panel-title, .keys bdi, .keys span:not(:has(*))")) {
    if (node.parentNode.closest("svg")) continue;
    const { left, top, width, height } = node.getBoundingClientRect();
    const [x, y] = [left - box.left, top - box.top];
    const look = getComputedStyle(node);
    if (node.tagName === "CANVAS") { whole.append(qualms.svg("image", { href: node.toDataURL(), x, y, width, height })); continue; }
    if (node.tagName === "I") { whole.append(qualms.svg("rect", { x, y, width, height, fill: look.backgroundColor })); continue; }
    if (node.tagName !== "svg") { whole.append(qualms.svg("text", { x, y: y + 13, "font-size": 13, "font-family": "sans-serif", fill: look.color }, node.textContent)); continue; }
    const copy = node.cloneNode(true);
    const shown = [node, ...node.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((each, i) => {
      const style = getComputedStyle(shown[i]);
      for (const property of properties) each.setAttribute(property, style.getPropertyValue(property));
      each.removeAttribute("class");
    });
    for (const [name, value] of Object.entries({ x, y, width, height })) copy.setAttribute(name, value);
    whole.append(copy);
  }
  return new XMLSerializer().serializeToString(whole);
};

qualms.tools.table = (spec) => {
  const lines = qualms.tools.lines(spec);
  const shown = lines.slice(0, MOST_LINES).map((line) => qualms.html("tr", {}, ...line.map((value) => qualms.html("td", { class: typeof value === "number" ? "n" : null }, typeof value === "number" ? qualms.number(value, 4) : value || ""))));
  const head = qualms.html("tr", {}, ...(spec.head || qualms.tools.head).map((word) => qualms.html("th", { scope: "col" }, word)));
  const table = qualms.html("table", {}, qualms.html("thead", {}, head), qualms.html("tbody", {}, ...shown));
  const more = lines.length > MOST_LINES ? [qualms.html("p", {}, `${lines.length - MOST_LINES} more lines in the CSV`)] : [];
  return qualms.html("div", { class: "numbers", tabindex: 0, role: "region", "aria-label": "numbers of the figure" }, table, ...more);
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-tool]");
  if (!button) return;
  const figure = button.closest("figure");
  qualms.load(figure.dataset.spec, (spec) => {
    if (button.dataset.tool === "csv") qualms.tools.save(`${spec.file || figure.dataset.spec}.csv`, qualms.tools.csv(spec), "text/csv");
    if (button.dataset.tool === "svg") qualms.tools.save(`${spec.file || figure.dataset.spec}.svg`, qualms.tools.picture(figure), "image/svg+xml");
    if (button.dataset.tool === "table") {
      const numbers = figure.querySelector(".numbers");
      if (numbers) numbers.remove(); else figure.append(qualms.tools.table(spec));
      button.setAttribute("aria-expanded", String(!numbers));
    }
  });
});
