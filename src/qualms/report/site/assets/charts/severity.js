// Scores against severity: the reader chooses a score, and one corruption, each of them
// or their mean. What is drawn is a figure of panels.
qualms.charts.severity = (box, spec, figure) => {
  const speaker = figure.querySelector(".unseen");
  const place = qualms.html("div", { class: "picture" });
  const note = qualms.html("p", { class: "small" });
  const every = spec.views.length;
  let [view, sized, score, shown, panels] = [0, 0, null, null, null];

  const draw = (width) => {
    sized = width;
    if (panels && width) panels(width);
  };
  const show = () => {
    const names = score.panels.flatMap((panel) => panel.marks.map((mark) => mark.name));
    const focus = shown && names.includes(shown.focus) ? shown.focus : null;
    const drawn = view === every ? score.panels : [score.panels[view]];
    shown = { ...score, focus, at: shown ? shown.at : score.at, columns: Math.min(score.columns, drawn.length), panels: drawn };
    panels = qualms.charts.panels(place, shown, figure);
    note.textContent = score.note;
    note.hidden = !score.note;
    draw(sized);
    const numbers = figure.querySelector(".numbers");
    if (numbers) numbers.replaceWith(qualms.tools.table(spec));
  };
  const open = (value, key) => {
    const first = score === null;
    score = value;
    Object.assign(spec, { panels: value.panels, file: key });
    show();
    if (!first) speaker.textContent = value.title;
  };
  const option = (words, i) => qualms.html("option", { value: i }, words);
  const views = qualms.html("select", {}, ...spec.views.map(option), every > 1 ? option("side by side", every) : null);
  views.addEventListener("change", () => { view = Number(views.value); show(); speaker.textContent = views.selectedOptions[0].textContent; });
  const bar = qualms.html("div", { class: "bar" }, qualms.html("label", { class: "source" }, "Corruption", views));
  box.replaceChildren(bar, place, note);
  bar.prepend(qualms.chooseSource(spec, figure, open));
  return draw;
};
