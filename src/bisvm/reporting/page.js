"use strict";
// Tables that sort by a click on a head, and narrow down to what is typed.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, k) => {
    const cell = row.cells[k];
    return cell.dataset.value === undefined ? cell.textContent : +cell.dataset.value;
  };
  heads.forEach((head, k) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending" &&
        head.classList.contains("number") || head.getAttribute("aria-sort") === "ascending";
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a, k), key(b, k)];
        const order = typeof x === "number" ? x - y
          : String(x).localeCompare(String(y), undefined, { numeric: true });
        return down ? -order : order;
      });
      body.append(...rows);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
  if (body.rows.length < 20) continue;
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  label.append("Filter rows:", input);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of body.rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    }
  });
  table.parentElement.before(label);
}
// Pictures whose points say their values, to a pointer and to the arrow keys.
for (const figure of document.querySelectorAll("figure[data-points]")) {
  const points = JSON.parse(figure.dataset.points);
  const canvas = figure.querySelector(".canvas");
  const output = figure.querySelector("output");
  const mark = document.createElement("div");
  mark.className = "mark";
  mark.hidden = true;
  canvas.append(mark);
  let current = -1;
  const show = (k) => {
    current = k;
    const [x, y, text] = points[k];
    mark.style.left = 100 * x + "%";
    mark.style.top = 100 * y + "%";
    mark.hidden = false;
    output.textContent = text;
  };
  const hide = () => { mark.hidden = true; output.textContent = ""; };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let near = -1, least = 40 * 40;
    points.forEach(([px, py], k) => {
      const far = (px * box.width - x) ** 2 + (py * box.height - y) ** 2;
      if (far < least) { least = far; near = k; }
    });
    if (near < 0) hide(); else show(near);
  });
  canvas.addEventListener("pointerleave", hide);
  figure.addEventListener("blur", hide);
  figure.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || event.target !== figure) return;
    event.preventDefault();
    const from = current < 0 && step < 0 ? 0 : current;
    show((from + step + points.length) % points.length);
  });
}
// A threshold that can be moved along both curves.
for (const box of document.querySelectorAll("[data-thresholds]")) {
  const points = JSON.parse(box.dataset.thresholds);
  const [P, N] = [+box.dataset.positive, +box.dataset.negative];
  const [roc, pr] = box.querySelectorAll("svg .here");
  const input = box.querySelector("input"), output = box.querySelector("output");
  const put = (dot, x, y) => {
    dot.setAttribute("cx", 45 + 240 * x);
    dot.setAttribute("cy", 250 - 240 * y);
  };
  const percent = (x) => (100 * x).toFixed(1) + "%";
  const show = () => {
    const [value, hits, alarms] = points[+input.value];
    const recall = hits / P, precision = hits + alarms ? hits / (hits + alarms) : 1;
    put(roc, alarms / N, recall);
    put(pr, recall, precision);
    const false_ = alarms === 1 ? "1 false alarm" : `${alarms} false alarms`;
    output.textContent = (hits + alarms
      ? `Rows with ${value} or more: ${hits} of ${P} are found (recall ${
        percent(recall)}), with ${false_} among ${N} others (precision ${
        percent(precision)}).`
      : `Above ${value}, no row is predicted to be of this class.`)
      + (+input.value === +box.dataset.used ? " The model decides here." : "");
  };
  input.addEventListener("input", show);
  show();
}
// Lines of Python that go to the clipboard.
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const code = document.getElementById(button.dataset.of);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected: copy it with your keyboard";
    }
  });
}
