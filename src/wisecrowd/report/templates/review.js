"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const nTasks = data.task_names.length;
  // More buttons than this are slow to draw and nobody reads them; the filter narrows them down.
  const maxButtons = 60;
  let states = data.states;
  let canUndo = data.can_undo;
  let task = null; // the task on the page
  let sawVotes = false;
  let isBusy = false;

  // ---------------------------------------------------------------- requests

  const complain = (message) => {
    find("alert").textContent = message;
    find("alert").hidden = !message;
  };

  const request = async (path, body) => {
    const options = { headers: {}, credentials: "same-origin", cache: "no-store" };
    if (body !== undefined) {
      options.method = "POST";
      options.headers = { "Content-Type": "application/json", [data.header]: data.secret };
      options.body = JSON.stringify(body);
    }
    let response;
    try {
      response = await fetch(path, options);
    } catch {
      throw new Error("Not saved: wisecrowd review does not answer. Is it still running? Start it again and reload this page.");
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.detail || `The request failed with status ${response.status}.`);
    return answer;
  };

  // One request after the other; a key that is pressed meanwhile is ignored.
  const exclusively = async (action) => {
    if (isBusy) return;
    isBusy = true;
    try {
      await action();
      complain("");
    } catch (error) {
      complain(error.message);
    } finally {
      isBusy = false;
    }
  };

  // ---------------------------------------------------------------- progress

  const count = (letter) => states.split(letter).length - 1;

  const showProgress = () => {
    const settled = count("d");
    const skipped = count("s");
    find("bar").max = nTasks;
    find("bar").value = settled;
    find("count").textContent = `${settled} of ${nTasks} settled${skipped ? `, ${skipped} skipped` : ""}`;
    find("undo").disabled = !canUndo;
  };

  // The next task after a position with a state, or null.
  const findNext = (from, letter) => {
    for (let step = 1; step <= nTasks; step += 1) {
      const number = (from + step) % nTasks;
      if (states[number] === letter) return number;
    }
    return null;
  };

  // ---------------------------------------------------------------- the task

  const drawClasses = () => {
    const wanted = find("filter").value.trim().toLowerCase();
    const chosen = [];
    let nMatches = 0;
    data.class_names.forEach((name, code) => {
      if (wanted && !name.toLowerCase().includes(wanted)) return;
      nMatches += 1;
      if (chosen.length < maxButtons) chosen.push(code);
    });
    const buttons = chosen.map((code, position) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.code = code;
      button.setAttribute("aria-pressed", String(task !== null && task.truth === data.classes[code]));
      if (position < 9) {
        const key = document.createElement("kbd");
        key.textContent = position + 1;
        key.setAttribute("aria-hidden", "true");
        button.append(key);
        button.setAttribute("aria-keyshortcuts", String(position + 1));
      }
      const name = document.createElement("bdi");
      name.textContent = data.class_names[code];
      button.append(name);
      button.addEventListener("click", () => decide(data.classes[code]));
      return button;
    });
    find("classes").replaceChildren(...buttons);
    find("more").hidden = nMatches <= chosen.length;
    find("more").textContent = `${nMatches - chosen.length} more; find one by its name.`;
  };

  const cell = (kind, text, className) => {
    const element = document.createElement(kind);
    if (kind === "th") element.scope = "row";
    if (className) element.className = className;
    const name = document.createElement("bdi");
    name.textContent = text;
    element.append(name);
    return element;
  };

  const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)} %`);

  const drawVotes = (details) => {
    const rows = details.votes.map((vote) => {
      const row = document.createElement("tr");
      row.append(
        cell("th", vote.worker ?? "unknown"), cell("td", vote.label), cell("td", percent(vote.accuracy), "n"),
        cell("td", vote.n_votes === null ? "–" : vote.n_votes.toLocaleString("en"), "n"),
      );
      if (vote.flags) {
        const flag = document.createElement("span");
        flag.className = "flag";
        flag.textContent = vote.flags;
        row.cells[0].append(" ", flag);
      }
      return row;
    });
    find("vote-table").tBodies[0].replaceChildren(...rows);
    const label = document.createElement("strong");
    label.textContent = details.label;
    find("label").replaceChildren("Inferred label: ", label, `, confidence ${percent(details.confidence)}`);
    find("hidden-votes").hidden = true;
    find("shown-votes").hidden = false;
    sawVotes = true;
  };

  const drawTask = () => {
    find("task").textContent = `Task ${task.number + 1} of ${nTasks}: ${task.name}`;
    find("text").textContent = task.text ?? "";
    find("text").hidden = task.text === null;
    find("image-problem").hidden = true;
    find("image").hidden = !task.has_image;
    if (task.has_image) {
      find("image").alt = `Image of task ${task.name}`;
      find("image").src = `/tasks/${task.number}/image`;
    } else {
      find("image").removeAttribute("src");
    }
    find("no-content").hidden = task.has_image || task.text !== null;
    find("decided").hidden = states[task.number] === "o";
    const who = `${task.decided_by ? ` by ${task.decided_by}` : ""}${task.time ? ` on ${task.time.slice(0, 16).replace("T", " ")} UTC` : ""}`;
    find("decided").textContent = states[task.number] === "s" ? `Skipped${who}.` : `Settled as ${task.truth}${who}.`;
    find("note").value = task.note;
    find("other").value = task.truth !== null && !data.classes.includes(task.truth) ? task.truth : "";
    find("filter").value = "";
    drawClasses();
    sawVotes = false;
    if (task.votes === undefined) {
      find("hidden-votes").hidden = false;
      find("shown-votes").hidden = true;
    } else {
      drawVotes(task);
    }
  };

  const open = async (number, focus = true) => {
    task = await request(`/tasks/${number}`);
    find("review").hidden = false;
    find("finished").hidden = true;
    drawTask();
    showProgress();
    if (focus) {
      find("task").focus({ preventScroll: true });
      scrollTo(0, 0);
    }
  };

  const goOn = async (from) => {
    const number = findNext(from, "o");
    if (number !== null) {
      await open(number);
      return;
    }
    showProgress();
    const skipped = count("s");
    find("finished-h").textContent = skipped ? `No task is left, ${skipped} skipped` : "All tasks are settled";
    find("skipped").hidden = !skipped;
    find("review").hidden = true;
    find("finished").hidden = false;
    find("finished-h").focus({ preventScroll: true });
    scrollTo(0, 0);
  };

  // ---------------------------------------------------------------- actions

  const announce = (text) => {
    find("status").textContent = `${text} ${find("count").textContent}.`;
  };

  const save = async (truth) => {
    const reviewer = find("reviewer").value.trim();
    if (!reviewer) {
      find("reviewer").focus();
      throw new Error("Enter your name first; it is saved with every decision.");
    }
    const { number, name } = task;
    const body = { number, truth, reviewer, note: find("note").value, saw_votes: sawVotes };
    const answer = await request("/decisions", body);
    states = answer.states;
    canUndo = answer.can_undo;
    await goOn(number);
    announce(truth === null ? `${name} skipped.` : `${name}: ${truth} saved.`);
  };

  const isOnPage = () => task !== null && !find("review").hidden;
  const decide = (truth) => exclusively(() => save(truth));
  const skip = () => exclusively(() => save(null));
  const undo = () =>
    exclusively(async () => {
      const answer = await request("/undo", {});
      states = answer.states;
      canUndo = answer.can_undo;
      if (answer.number !== null) await open(answer.number);
      showProgress();
      announce(answer.number === null ? "Nothing to undo." : `The decision on ${task.name} is undone.`);
    });
  const move = (step) =>
    exclusively(async () => {
      const from = find("finished").hidden ? task.number + step : task.number;
      await open((from + nTasks) % nTasks);
    });
  const showVotes = () =>
    exclusively(async () => {
      if (find("hidden-votes").hidden) return;
      drawVotes(await request(`/tasks/${task.number}/votes`));
      find("status").textContent = "Votes are shown.";
    });
  const saveOther = () => {
    const truth = find("other").value.trim();
    if (truth) decide(truth);
    else find("other").focus();
  };

  find("skip").addEventListener("click", skip);
  find("undo").addEventListener("click", undo);
  find("previous").addEventListener("click", () => move(-1));
  find("next").addEventListener("click", () => move(1));
  find("show-votes").addEventListener("click", showVotes);
  find("back").addEventListener("click", () => move(-1));
  find("skipped").addEventListener("click", () => exclusively(() => open(findNext(nTasks - 1, "s"))));
  find("other-save").addEventListener("click", saveOther);
  find("filter").addEventListener("input", drawClasses);
  find("image").addEventListener("error", () => {
    if (!find("image").getAttribute("src")) return;
    find("image").hidden = true;
    find("image-problem").textContent = "The image cannot be shown: it is missing, damaged, too large, or not a PNG, JPEG, GIF or WebP.";
    find("image-problem").hidden = false;
  });

  // ---------------------------------------------------------------- keys

  const keys = {
    s: skip, u: undo, v: showVotes, arrowleft: () => move(-1), arrowright: () => move(1),
    o: () => find("other").focus(), n: () => find("note").focus(), f: () => find("filter").focus(),
  };

  const pick = (position) => {
    const button = find("classes").children[position];
    if (button) decide(data.classes[Number(button.dataset.code)]);
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const isField = event.target.matches("input:not([type=checkbox]), textarea");
    if (isField) {
      if (event.key === "Escape") find("task").focus();
      else if (event.key === "Enter" && event.target.id === "other") saveOther();
      else if (event.key === "Enter" && event.target.id === "filter") pick(0);
      else return;
      event.preventDefault();
      return;
    }
    if (!find("shortcuts").checked || event.repeat) return;
    if (event.target.matches(".scroll") && event.key.startsWith("Arrow")) return; // scrolls the table
    const key = event.key.toLowerCase();
    if (/^[1-9]$/.test(key) && isOnPage()) pick(Number(key) - 1);
    else if (key in keys && (isOnPage() || ["u", "arrowleft", "arrowright"].includes(key))) keys[key]();
    else return;
    event.preventDefault();
  });

  find("filter-field").hidden = data.classes.length <= 9;
  showProgress();
  exclusively(async () => {
    const first = findNext(nTasks - 1, "o");
    await open(first ?? 0, false);
    if (first === null) await goOn(0);
  });
})();
