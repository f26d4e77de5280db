"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const steps = {{ steps }};

  // ---------------------------------------------------------------- light and dark

  const theme = document.getElementById("theme");
  const root = document.documentElement;
  const wish = matchMedia("(prefers-color-scheme: dark)");
  let dark = wish.matches;
  const paint = () => theme.setAttribute("aria-pressed", String(dark));
  wish.addEventListener("change", () => {
    if (root.dataset.theme) return; // somebody has chosen
    dark = wish.matches;
    paint();
  });
  theme.addEventListener("click", () => {
    dark = !dark;
    root.dataset.theme = dark ? "dark" : "light";
    paint();
  });
  paint();

  // ---------------------------------------------------------------- sorting

  const words = new Intl.Collator(undefined, { numeric: true });

  const sort = (button) => {
    const head = button.closest("th");
    const table = head.closest("table");
    const column = head.cellIndex;
    const isNumber = button.dataset.kind === "number";
    // Figures are mostly wanted from the top, names from the beginning.
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
      // What has no value comes last, whatever the order.
      if (empty(a.key) || empty(b.key)) return empty(a.key) - empty(b.key);
      return sign * (isNumber ? a.key - b.key : words.compare(a.key, b.key));
    });
    body.append(...keyed.map((one) => one.row));
  };

  // ---------------------------------------------------------------- filtering

  // What a row is called and says, in small letters; gathered when somebody first asks.
  const spoken = new WeakMap();
  const words_of = (row) => {
    if (!spoken.has(row)) {
      const found = Array.from(row.querySelectorAll("th .name, .text .name"), (one) => one.textContent.toLowerCase());
      spoken.set(row, found.join("\n"));
    }
    return spoken.get(row);
  };

  const fits = {
    text: (row, value) => words_of(row).includes(value.toLowerCase()),
    tag: (row, value) => {
      const tags = row.dataset.tags === "" ? [] : row.dataset.tags.split(" ");
      return value === "+" ? tags.length > 0 : value === "-" ? tags.length === 0 : tags.includes(value);
    },
    least: (row, value) => Number(row.dataset.least) >= Number(value),
  };

  const filter = (id) => {
    const wanted = Array.from(document.querySelectorAll(`[data-table="${id}"]`)).filter((one) => one.value !== "");
    const rows = document.getElementById(id).tBodies[0].rows;
    let shown = 0;
    for (const row of rows) {
      row.hidden = !wanted.every((one) => fits[one.dataset.filter](row, one.value));
      shown += row.hidden ? 0 : 1;
    }
    const said = shown === rows.length ? `${shown} shown` : `${shown} of ${rows.length} shown`;
    document.querySelector(`[data-count="${id}"]`).textContent = said;
  };

  for (const one of document.querySelectorAll("[data-filter]")) {
    one.addEventListener(one.tagName === "SELECT" ? "change" : "input", () => filter(one.dataset.table));
  }

  // ---------------------------------------------------------------- the card of a worker

  const card = document.getElementById("card");

  const made = (kind, text, attributes = {}) => {
    const element = document.createElement(kind);
    // Text is only ever set as text, never as markup.
    const holder = kind === "th" ? element.appendChild(document.createElement("bdi")) : element;
    holder.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // The course of a worker's votes: how probably right, tenth by tenth.
  const draw = (course) => {
    const figure = document.getElementById("card-course");
    figure.hidden = !course;
    if (!course) return;
    const svg = figure.querySelector("svg");
    const part = (kind, attributes, text = "") => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      element.textContent = text;
      return element;
    };
    const n = course.right.length;
    const x = (tenth) => 46 + (tenth * 304) / (n - 1);
    const y = (share) => 96 - 0.84 * share;
    const made = [];
    for (const share of [0, 50, 100]) {
      made.push(part("path", { class: "grid", d: `M46 ${y(share)}h304` }));
      made.push(part("text", { x: 40, y: y(share) + 4, "text-anchor": "end" }, `${share}%`));
    }
    if (course.cut !== null) made.push(part("path", { class: "cut", d: `M${x(course.cut - 0.5)} 8v92` }));
    made.push(part("polyline", { class: "line", points: course.right.map((share, at) => `${x(at)},${y(share)}`).join(" ") }));
    course.right.forEach((share, at) => made.push(part("circle", { class: "dot", cx: x(at), cy: y(share), r: 3 })));
    made.push(part("text", { x: 46, y: 116 }, course.from.slice(0, 10)));
    made.push(part("text", { x: 350, y: 116, "text-anchor": "end" }, course.to.slice(0, 10)));
    svg.replaceChildren(...made);
    const change = course.since === null ? "" : ` The broken line is the change, since ${course.since} (UTC).`;
    document.getElementById("card-course-about").textContent =
      `How probably this worker was right, by the other votes on the same tasks, in each tenth of ` +
      `${course.votes.toLocaleString("en")} votes from the first to the last: ${course.right.map((p) => `${p}%`).join(", ")}.${change}`;
  };

  const open = (place) => {
    const worker = data.workers[place];
    const n = data.classes.length;
    const put = (id, text) => (document.getElementById(id).textContent = text);
    put("card-name", worker.name);
    const votes = worker.votes === 1 ? "1 vote" : `${worker.votes.toLocaleString("en")} votes`;
    put("card-facts", `${votes}, accuracy ${worker.accuracy}.`);
    put("card-why", worker.why);
    draw(worker.course);
    const part = n < data.of_classes ? ` ${n} of ${data.of_classes} classes, the most frequent in the crowd.` : "";
    put("card-caption", `What this worker says when each class is true, in percent of the row.${part}`);
    const top = made("tr", "");
    top.append(made("th", "true ↓ said →", { scope: "col", class: "corner" }));
    for (const name of data.classes) top.append(made("th", name, { scope: "col" }));
    document.getElementById("card-top").replaceChildren(top);
    const rows = data.classes.map((name, true_) => {
      const row = made("tr", "");
      row.append(made("th", name, { scope: "row" }));
      for (let said = 0; said < n; said++) {
        const share = worker.matrix[true_ * n + said];
        const step = Math.round(steps * Math.sqrt(share / 100));
        row.append(made("td", `${share}%`, { class: (said === true_ ? "d" : "o") + step }));
      }
      return row;
    });
    document.getElementById("card-body").replaceChildren(...rows);
    const foot = made("tr", "");
    foot.append(made("th", "votes", { scope: "row" }));
    for (const count of worker.said) foot.append(made("td", count.toLocaleString("en")));
    document.getElementById("card-foot").replaceChildren(foot);
    for (const point of document.querySelectorAll(".point.chosen")) point.classList.remove("chosen");
    document.querySelector(`#map [data-worker="${place}"]`)?.classList.add("chosen");
    card.showModal();
    document.getElementById("card-name").focus();
  };

  document.getElementById("card-close").addEventListener("click", () => card.close());
  card.addEventListener("click", (event) => {
    if (event.target === card) card.close();
  });

  document.addEventListener("click", (event) => {
    const sorter = event.target.closest("button.sort");
    if (sorter) sort(sorter);
    const opener = event.target.closest("[data-worker]");
    if (opener) open(Number(opener.dataset.worker));
  });
})();
