"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const steps = {{ steps }};

  // ---------------------------------------------------------------- light and dark

  const theme = document.getElementById("theme");
  const root = document.documentElement;
  const wish = matchMedia("(prefers-color-scheme: dark)");
  let dark = wish.matches;
  const paint = () => (theme.textContent = dark ? "Switch to light" : "Switch to dark");
  wish.addEventListener("change", () => {
    if (root.dataset.theme) return; // the reader has chosen a theme
    dark = wish.matches;
    paint();
  });
  theme.addEventListener("click", () => {
    dark = !dark;
    root.dataset.theme = dark ? "dark" : "light";
    paint();
  });
  paint();

  // ---------------------------------------------------------------- cards

  // On a phone, each row of a table is a card, in which every figure needs the name of its column.
  for (const table of document.querySelectorAll("table.sortable")) {
    const labels = Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent.trim());
    for (const row of table.tBodies[0].rows) {
      Array.from(row.cells).forEach((cell, at) => {
        if (cell.tagName === "TH") return;
        cell.dataset.label = labels[at];
        const holder = document.createElement("span");
        holder.className = "cell";
        holder.append(...cell.childNodes);
        cell.append(holder);
        if (cell.textContent.trim() === "") cell.classList.add("empty");
      });
    }
  }
  root.classList.add("cards");

  // ---------------------------------------------------------------- sorting

  const collator = new Intl.Collator(undefined, { numeric: true });

  const sort = (button) => {
    const head = button.closest("th");
    const table = head.closest("table");
    const column = head.cellIndex;
    const isNumber = button.dataset.kind === "number";
    // Numbers are sorted from the largest first, names from A to Z.
    const first = isNumber ? "descending" : "ascending";
    const second = isNumber ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? second : first;
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const keyed = Array.from(body.rows, (row) => {
      const cell = row.cells[column];
      const text = cell.dataset.v ?? cell.textContent.trim();
      return { row, key: isNumber ? Number.parseFloat(text) : text };
    });
    const empty = (key) => (isNumber ? Number.isNaN(key) : key === "" || key === "–");
    keyed.sort((a, b) => {
      // Rows without a value come last in both orders.
      if (empty(a.key) || empty(b.key)) return empty(a.key) - empty(b.key);
      return sign * (isNumber ? a.key - b.key : collator.compare(a.key, b.key));
    });
    body.append(...keyed.map((item) => item.row));
  };

  // ---------------------------------------------------------------- filtering

  // Searchable text of each row in lower case, computed at the first search.
  const searchTexts = new WeakMap();
  const searchText = (row) => {
    if (!searchTexts.has(row)) {
      const texts = Array.from(row.querySelectorAll("th .name, .text .name"), (cell) => cell.textContent.toLowerCase());
      searchTexts.set(row, texts.join("\n"));
    }
    return searchTexts.get(row);
  };

  const matches = {
    text: (row, value) => searchText(row).includes(value.toLowerCase()),
    tag: (row, value) => {
      const tags = row.dataset.tags === "" ? [] : row.dataset.tags.split(" ");
      return value === "+" ? tags.length > 0 : value === "-" ? tags.length === 0 : tags.includes(value);
    },
    least: (row, value) => Number(row.dataset.least) >= Number(value),
  };

  const filter = (id) => {
    const inputs = Array.from(document.querySelectorAll(`[data-table="${id}"]`)).filter((input) => input.value !== "");
    const rows = document.getElementById(id).tBodies[0].rows;
    let shown = 0;
    for (const row of rows) {
      row.hidden = !inputs.every((input) => matches[input.dataset.filter](row, input.value));
      shown += row.hidden ? 0 : 1;
    }
    const count = shown === rows.length ? `${shown} shown` : `${shown} of ${rows.length} shown`;
    document.querySelector(`[data-count="${id}"]`).textContent = count;
  };

  for (const input of document.querySelectorAll("[data-filter]")) {
    input.addEventListener(input.tagName === "SELECT" ? "change" : "input", () => filter(input.dataset.table));
  }

  // ---------------------------------------------------------------- card of a worker

  const card = document.getElementById("card");

  const createElement = (kind, text, attributes = {}) => {
    const element = document.createElement(kind);
    // Text is never inserted as markup.
    const holder = kind === "th" ? element.appendChild(document.createElement("bdi")) : element;
    holder.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // Accuracy of a worker over time, in tenths of the votes.
  const drawHistory = (history) => {
    const figure = document.getElementById("card-history");
    figure.hidden = !history;
    if (!history) return;
    const svg = figure.querySelector("svg");
    const createShape = (kind, attributes, text = "") => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      element.textContent = text;
      return element;
    };
    const n = history.accuracy.length;
    const x = (tenth) => 46 + (tenth * 304) / (n - 1);
    const y = (share) => 96 - 0.84 * share;
    const shapes = [];
    for (const share of [0, 50, 100]) {
      shapes.push(createShape("path", { class: "grid", d: `M46 ${y(share)}h304` }));
      shapes.push(createShape("text", { x: 40, y: y(share) + 4, "text-anchor": "end" }, `${share}%`));
    }
    if (history.change_span !== null) shapes.push(createShape("path", { class: "change", d: `M${x(history.change_span - 0.5)} 8v92` }));
    shapes.push(createShape("polyline", { class: "line", points: history.accuracy.map((share, at) => `${x(at)},${y(share)}`).join(" ") }));
    history.accuracy.forEach((share, at) => shapes.push(createShape("circle", { class: "dot", cx: x(at), cy: y(share), r: 3 })));
    shapes.push(createShape("text", { x: 46, y: 116 }, history.first.slice(0, 10)));
    shapes.push(createShape("text", { x: 350, y: 116, "text-anchor": "end" }, history.last.slice(0, 10)));
    svg.replaceChildren(...shapes);
    const change = history.change_time === null ? "" : ` The dashed line marks a change on ${history.change_time} (UTC).`;
    document.getElementById("card-history-caption").textContent =
      `Estimated accuracy of this worker in each tenth of ` +
      `${history.n_votes.toLocaleString("en")} votes in order of time: ${history.accuracy.map((p) => `${p}%`).join(", ")}.${change}`;
  };

  const openCard = (row) => {
    const worker = data.workers[row];
    const n = data.classes.length;
    const setText = (id, text) => (document.getElementById(id).textContent = text);
    setText("card-name", worker.name);
    const votes = worker.n_votes === 1 ? "1 vote" : `${worker.n_votes.toLocaleString("en")} votes`;
    setText("card-facts", `${votes}, accuracy ${worker.accuracy}.`);
    setText("card-why", worker.why);
    drawHistory(worker.history);
    const selection = n < data.n_classes ? ` ${n} of ${data.n_classes} classes, the most frequent in the crowd.` : "";
    setText("card-caption", `Labels of this worker for each true class, in percent of the row.${selection}`);
    const top = createElement("tr", "");
    top.append(createElement("th", "true ↓ label →", { scope: "col", class: "corner" }));
    for (const name of data.classes) top.append(createElement("th", name, { scope: "col" }));
    document.getElementById("card-top").replaceChildren(top);
    const rows = data.classes.map((name, trueClass) => {
      const tableRow = createElement("tr", "");
      tableRow.append(createElement("th", name, { scope: "row" }));
      for (let label = 0; label < n; label++) {
        const share = worker.matrix[trueClass * n + label];
        const step = Math.round(steps * Math.sqrt(share / 100));
        tableRow.append(createElement("td", `${share}%`, { class: (label === trueClass ? "d" : "o") + step }));
      }
      return tableRow;
    });
    document.getElementById("card-body").replaceChildren(...rows);
    const foot = createElement("tr", "");
    foot.append(createElement("th", "votes", { scope: "row" }));
    for (const count of worker.label_counts) foot.append(createElement("td", count.toLocaleString("en")));
    document.getElementById("card-foot").replaceChildren(foot);
    for (const point of document.querySelectorAll(".point.chosen")) point.classList.remove("chosen");
    document.querySelector(`#map [data-worker="${row}"]`)?.classList.add("chosen");
    card.showModal();
    document.getElementById("card-name").focus();
  };

  // The pages about comparisons and label sets have no cards.
  document.getElementById("card-close")?.addEventListener("click", () => card.close());
  card?.addEventListener("click", (event) => {
    if (event.target === card) card.close();
  });

  document.addEventListener("click", (event) => {
    const sorter = event.target.closest("button.sort");
    if (sorter) sort(sorter);
    const opener = event.target.closest("[data-worker]");
    if (opener) openCard(Number(opener.dataset.worker));
  });
})();
