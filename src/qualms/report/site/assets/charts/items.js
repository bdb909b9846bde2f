// Items as tiles: a picture, a name and a few values; in a gallery with their neighbours.

qualms.tile = (tile, pictures) => {
  const { html } = qualms;
  const sign = tile.right ? "✓ right" : "✗ wrong";
  const lines = tile.lines.flatMap(([term, value]) => [html("dt", {}, html("bdi", {}, term)), html("dd", {}, html("bdi", {}, value))]);
  const some = pictures.some(Boolean);
  const picture = pictures[tile.picture] ? html("img", { src: pictures[tile.picture], alt: "" }) : some ? html("div", { class: "no-picture" }, "no picture") : null;
  return html("li", { class: `tile ${tile.right ? "right" : "wrong"}${some ? "" : " bare"}` }, picture, html("div", {}, html("p", { class: "tile-name", title: tile.name }, html("bdi", {}, tile.name)), html("p", { class: `tile-sign ${tile.right ? "good" : "bad"}` }, sign), html("dl", {}, ...lines)));
};

qualms.charts.items = (box, spec, figure) => {
  const { html, tile } = qualms;
  const body = html("div");
  const speaker = figure.querySelector(".unseen");
  const query = (each, pictures) => html("li", { class: "query" }, html("ul", {}, tile(each, pictures)), html("ul", { class: "neighbours", "aria-label": `Neighbours of ${each.name}`, tabindex: 0 }, ...each.neighbours.map((other) => tile(other, pictures))));
  const show = (value) => {
    body.replaceChildren(html("p", { class: "about" }, value.pictures.some(Boolean) ? value.about : `${value.about} No pictures of these items are known.`), ...value.groups.map((group) => html("section", {}, html("h2", {}, group.title), group.tiles.length
      ? html("ul", { class: group.tiles[0].neighbours ? "queries" : "tiles" }, ...group.tiles.map((each) => (each.neighbours ? query : tile)(each, value.pictures)))
      : html("p", {}, group.empty))));
    speaker.textContent = value.about;
  };
  box.classList.add("items");
  box.append(qualms.chooseSource(spec, figure, show), body);
  return () => {};
};
