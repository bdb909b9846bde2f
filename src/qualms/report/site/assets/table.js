// Tables: sorted by a column, chosen by labels, one group of columns at a time on phones.
qualms.tables = {};

qualms.tables.key = (row, column) => {
  const cell = row.cells[column];
  if (!cell) return NaN;
  if (cell.dataset.v === undefined) return cell.textContent.trim().toLowerCase();
  return cell.dataset.v === "" ? NaN : Number(cell.dataset.v);
};
/* Undefined values are last in both directions; equal ones keep their order. */
qualms.tables.compare = (a, b, sign) => {
  const [none, other] = [Number.isNaN(a), Number.isNaN(b)];
  if (none || other) return Number(none) - Number(other);
  return a < b ? -sign : a > b ? sign : 0;
};
qualms.tables.sort = (head) => {
  const table = head.closest("table");
  const column = [...head.parentNode.children].indexOf(head);
  const now = head.getAttribute("aria-sort");
  const next = now ? (now === "ascending" ? "descending" : "ascending") : head.querySelector("button").dataset.first;
  for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", next);
  const sign = next === "ascending" ? 1 : -1;
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => !row.classList.contains("section"));
    const keyed = rows.map((row, i) => [qualms.tables.key(row, column), i, row]);
    keyed.sort((a, b) => qualms.tables.compare(a[0], b[0], sign) || a[1] - b[1]);
    body.append(...keyed.map(([, , row]) => row));
  }
};
qualms.tables.filter = (box) => {
  const field = box.querySelector(".bar input[type=search]");
  const words = field ? field.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
  const chosen = [...box.querySelectorAll(".bar select")].filter((list) => list.value);
  for (const body of box.querySelectorAll("tbody")) {
    let shown = 0;
    for (const row of body.rows) {
      if (row.classList.contains("section")) continue;
      const text = row.textContent.toLowerCase();
      row.hidden = !(words.every((word) => text.includes(word)) && chosen.every((list) => row.dataset[`l${list.dataset.label}`] === list.value));
      if (!row.hidden) shown += 1;
    }
    for (const row of body.querySelectorAll("tr.section")) row.hidden = shown === 0;
  }
};

/* On narrow pages, and of many columns, those of other groups are away. */
qualms.tables.group = (box, number) => {
  for (const cell of box.querySelectorAll("[class*=' g'], [class^='g']")) cell.classList.toggle("away", number !== "all" && !cell.classList.contains(`g${number}`));
};
document.addEventListener("DOMContentLoaded", () => {
  for (const tabs of document.querySelectorAll(".table .tabs.narrow")) qualms.tables.group(tabs.closest(".table"), "0");
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.closest("th[data-column]")) qualms.tables.sort(button.closest("th"));
  const tabs = button.closest(".tabs");
  if (!tabs) return;
  for (const other of tabs.children) other.setAttribute("aria-pressed", String(other === button));
  if (tabs.dataset.shows) for (const each of document.querySelectorAll(`[data-of="${tabs.dataset.shows}"]`)) each.hidden = each.dataset.key !== button.value;
  else qualms.tables.group(tabs.closest(".table"), button.value);
});
document.addEventListener("input", (event) => {
  const bar = event.target.closest(".bar");
  if (bar && bar.closest(".table")) qualms.tables.filter(bar.closest(".table"));
});
