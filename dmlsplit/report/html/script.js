"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const collator = new Intl.Collator("en", { numeric: true });

  // Sorting: a button in each heading; without this script the headings are plain text.
  const value = (row, column, kind) => {
    const cell = row.cells[column];
    if (kind !== "number") return cell.textContent;
    const number = Number.parseFloat(cell.dataset.value ?? cell.textContent);
    return Number.isNaN(number) ? Infinity : number;
  };
  const sort = (heading) => {
    const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
    const kind = heading.dataset.sort;
    const order = heading.ariaSort === "ascending" ? "descending" : "ascending";
    for (const other of all("th[aria-sort]", table)) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const keyed = [...body.rows].map((row) => [value(row, column, kind), row]);
    const compare = kind === "number" ? (a, b) => (a === b ? 0 : a < b ? -1 : 1) : collator.compare;
    keyed.sort(([a], [b]) => sign * compare(a, b));
    body.append(...keyed.map(([, row]) => row));
  };
  for (const heading of all(".operators th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(heading));
    heading.append(button);
  }

  // Filtering: every word has to be in the row, or in the findings of its operator.
  const rows = all(".operators tbody tr");
  const details = new Map(all(".operator").map((article) => [article.id.slice(3), article]));
  const matrix = all(".levels tbody tr");
  const files = all(".file").map((section) => ({
    section,
    link: document.querySelector(`.files a[href="#file-${section.dataset.file}"]`)?.parentElement,
    rows: all(".operators tbody tr", section),
  }));
  const findings = new Map();
  const findingsOf = (id) => {
    if (!findings.has(id)) findings.set(id, details.get(id).querySelector(".findings")?.textContent ?? "");
    return findings.get(id);
  };
  let haystacks = null;
  const filter = () => {
    haystacks ??= rows.map((row) => `${row.textContent} ${findingsOf(row.dataset.detail)}`.toLowerCase());
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = byId("verdict").value;
    const shown = new Set();
    let count = 0;
    rows.forEach((row, i) => {
      const fits = words.every((word) => haystacks[i].includes(word)) && (!verdict || row.dataset.verdict.split("|").includes(verdict));
      row.hidden = !fits;
      if (fits) {
        count += 1;
        shown.add(row.dataset.detail);
      }
    });
    for (const row of matrix) row.hidden = !shown.has(row.dataset.detail);
    // Of a file without operators there is something to say all the same, until somebody looks for operators.
    const everything = !words.length && !verdict;
    for (const file of files) {
      file.section.hidden = !everything && file.rows.every((row) => row.hidden);
      if (file.link) file.link.hidden = file.section.hidden;
    }
    for (const [id, article] of details) article.hidden = !shown.has(id);
    byId("none").hidden = count > 0;
    byId("count").textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${rows.length === 1 ? "operator" : "operators"}`;
  };
  byId("filter").addEventListener("input", filter);
  byId("verdict").addEventListener("change", filter);
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  byId("tools").hidden = false;
  byId("count").textContent = `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "operator" : "operators"}`;

  // The reason of a cell of the matrix: hover, or focus by arrow keys (one stop of the Tab key for each table).
  const tip = byId("tip");
  let described = null, closing = 0;
  const hide = () => {
    clearTimeout(closing);
    tip.hidden = true;
    described?.removeAttribute("aria-describedby");
    described = null;
  };
  const show = (cell) => {
    clearTimeout(closing);
    const reason = byId(`r${cell.dataset.reason}`);
    if (!reason) return;
    if (described !== cell) hide();
    tip.replaceChildren(...[...reason.childNodes].map((node) => node.cloneNode(true)));
    tip.hidden = false;
    const box = cell.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const below = box.bottom + size.height + 8 < document.documentElement.clientHeight;
    const left = Math.min(Math.max(box.left - 12, 8), document.documentElement.clientWidth - size.width - 8);
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(below ? box.bottom + 4 : box.top - size.height - 4) + scrollY}px`;
    cell.setAttribute("aria-describedby", "tip");
    described = cell;
  };
  const later = () => {
    clearTimeout(closing);
    closing = setTimeout(hide, 150);
  };
  tip.addEventListener("mouseenter", () => clearTimeout(closing));
  tip.addEventListener("mouseleave", later);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });

  for (const table of all(".levels")) {
    const body = table.tBodies[0];
    let current = body.rows[0].cells[1];
    table.setAttribute("role", "grid");
    current.tabIndex = 0;
    const focus = (cell) => {
      current.removeAttribute("tabindex");
      current = cell;
      current.tabIndex = 0;
      current.focus();
    };
    const visible = () => [...body.rows].filter((row) => !row.hidden);
    const targets = {
      ArrowLeft: (row, column) => row.cells[Math.max(column - 1, 1)],
      ArrowRight: (row, column) => row.cells[Math.min(column + 1, row.cells.length - 1)],
      ArrowUp: (row, column, near) => near(-1).cells[column],
      ArrowDown: (row, column, near) => near(1).cells[column],
      Home: (row) => row.cells[1],
      End: (row) => row.cells[row.cells.length - 1],
    };
    body.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td");
      if (!cell) return;
      const row = cell.parentElement;
      if (event.key === "Enter") {
        row.querySelector("a").click();
      } else if (event.key in targets) {
        const near = (step) => {
          const list = visible(), at = list.indexOf(row) + step;
          return list[Math.min(Math.max(at, 0), list.length - 1)];
        };
        focus(targets[event.key](row, cell.cellIndex, near));
      } else {
        return;
      }
      event.preventDefault();
    });
    body.addEventListener("focusin", (event) => event.target.matches("td") && show(event.target));
    body.addEventListener("focusout", hide);
    body.addEventListener("mouseover", (event) => {
      const cell = event.target.closest("td");
      if (cell) show(cell);
    });
    body.addEventListener("mouseout", later);
    body.addEventListener("click", (event) => {
      const cell = event.target.closest("td");
      if (cell) focus(cell);
    });
    // The row that holds the only stop may be filtered out.
    table.addEventListener("focusstop", () => {
      if (!current.parentElement.hidden) return;
      const row = visible()[0];
      current.removeAttribute("tabindex");
      current = (row ?? body.rows[0]).cells[1];
      current.tabIndex = 0;
    });
  }
  const stops = () => all(".levels").forEach((table) => table.dispatchEvent(new Event("focusstop")));
  byId("filter").addEventListener("input", stops);
  byId("verdict").addEventListener("change", stops);

  // What a link leads to takes the focus, so that reading goes on there.
  addEventListener("hashchange", () => byId(`${location.hash.slice(1)}-name`)?.focus({ preventScroll: true }));
})();
