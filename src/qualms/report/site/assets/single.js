// A site of one file: its pages stand one after the other, and one of them is shown.
qualms.showPage = () => {
  const pages = [...document.querySelectorAll("article.page")];
  if (!pages.length) return;
  const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  const shown = (target && target.closest("article.page")) || pages[0];
  for (const page of pages) page.hidden = page !== shown;
  for (const link of document.querySelectorAll(".nav a")) {
    if (link.getAttribute("href") === `#${shown.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (target && target !== shown) target.scrollIntoView();
  else if (target) scrollTo(0, 0);
};
document.addEventListener("DOMContentLoaded", qualms.showPage);
addEventListener("hashchange", qualms.showPage);
