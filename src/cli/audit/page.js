"use strict";
document.documentElement.classList.add("js");
const body = document.querySelector("#runs tbody");
const heads = [...document.querySelectorAll("#runs th")];
const key = (row, at) => row.cells[at].dataset.v ?? row.cells[at].textContent;
heads.forEach((head, at) => {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [key(row, at), row]);
    rows.sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
    if (down) rows.reverse();
    body.append(...rows.map(([, row]) => row));
  });
});
document.querySelector("#search").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
