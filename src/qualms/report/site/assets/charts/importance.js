// Bars from left to right: the share that each option explains, the largest first.
qualms.charts.importance = (box, spec) => {
  const { svg } = qualms;
  return (width) => {
    const left = Math.min(width * 0.45, 16 + Math.max(...spec.bars.map(([name]) => qualms.textWidth(name))));
    const height = 26 * spec.bars.length + 8;
    const most = width - left - 56;
    const words = spec.bars.map(([name, share]) => `${name} ${Math.round(100 * share)} %`).join(", ");
    const rows = spec.bars.flatMap(([name, share], i) => {
      const y = 26 * i + 6;
      return [
        qualms.label(name, left - 10, { class: "word", x: left - 8, y: y + 9, dy: ".34em", "text-anchor": "end" }),
        svg("rect", { class: "bar c0", x: left, y, width: Math.max(1, share * most).toFixed(1), height: 18 }),
        qualms.label(`${(100 * share).toFixed(0)} %`, 50, { x: (left + share * most + 6).toFixed(1), y: y + 9, dy: ".34em" }),
      ];
    });
    box.replaceChildren(svg("svg", { class: "q", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${spec.title}: ${words}` }, ...rows));
  };
};
