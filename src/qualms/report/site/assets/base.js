// What all charts share: the theme, data, and when to draw. No library, no markup made
// of texts: names from files become text nodes, and nothing else.
"use strict";
const qualms = { charts: {}, store: new Map(), waiting: new Map() };

/* The theme is set before anything is drawn, since this script stands in the head. */
qualms.theme = {
  choices: ["auto", "light", "dark"],
  current: "auto",
  stored() {
    try { return localStorage.getItem("qualms-theme"); } catch { return null; }
  },
  apply(choice) {
    qualms.theme.current = qualms.theme.choices.includes(choice) ? choice : "auto";
    try { localStorage.setItem("qualms-theme", qualms.theme.current); } catch { /* a private window */ }
    if (qualms.theme.current === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = qualms.theme.current;
    for (const button of document.querySelectorAll("button.theme")) button.textContent = `Theme: ${qualms.theme.current}`;
  },
};
qualms.theme.apply(qualms.theme.stored());

/* Data: scripts beside the page put them here; in a site of one file they are elements. */
qualms.put = (name, value) => {
  qualms.store.set(name, value);
  for (const then of qualms.waiting.get(name) || []) then(value);
  qualms.waiting.delete(name);
};
qualms.get = (name) => {
  if (!qualms.store.has(name)) {
    const block = [...document.querySelectorAll("script[data-name]")].find((each) => each.dataset.name === name);
    if (block) qualms.store.set(name, JSON.parse(block.textContent));
  }
  return qualms.store.get(name);
};
/* Calls `then` with data that may have to be loaded first. */
qualms.load = (name, then) => {
  const value = qualms.get(name);
  if (value !== undefined) { then(value); return; }
  if (qualms.waiting.has(name)) { qualms.waiting.get(name).push(then); return; }
  qualms.waiting.set(name, [then]);
  const script = document.createElement("script");
  script.src = `data/${name}.js`;
  document.head.append(script);
};

/* Elements. */
qualms.html = (tag, attributes = {}, ...children) => qualms.filled(document.createElement(tag), attributes, children);
qualms.svg = (tag, attributes = {}, ...children) => qualms.filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
qualms.filled = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

/* Charts: `<figure data-chart="curves" data-spec="NAME">` is drawn by the function of
   that name when it comes into view, again when its width changes, and for print. */
qualms.figures = new Map();
qualms.start = (figure) => {
  if (qualms.figures.has(figure)) return;
  qualms.figures.set(figure, () => {});
  qualms.load(figure.dataset.spec, (spec) => {
    const box = figure.querySelector(".plot");
    const draw = qualms.charts[figure.dataset.chart](box, spec, figure);
    let width = 0;
    const redraw = () => {
      if (box.clientWidth === width || box.clientWidth === 0) return;
      width = box.clientWidth;
      draw(width);
    };
    qualms.figures.set(figure, redraw);
    redraw();
    new ResizeObserver(() => requestAnimationFrame(redraw)).observe(box);
  });
};

document.addEventListener("DOMContentLoaded", () => {
  qualms.theme.apply(qualms.theme.current);
  for (const button of document.querySelectorAll("button.theme")) {
    button.addEventListener("click", () => {
      const choices = qualms.theme.choices;
      qualms.theme.apply(choices[(choices.indexOf(qualms.theme.current) + 1) % choices.length]);
    });
  }
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); qualms.start(entry.target); }
  }, { rootMargin: "400px" });
  for (const figure of figures) seen.observe(figure);
  addEventListener("beforeprint", () => { for (const figure of figures) { qualms.start(figure); qualms.figures.get(figure)(); } });
});
