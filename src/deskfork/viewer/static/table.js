import { $, ask, count, el, grade, listen, money, score, seconds, tell, watch } from "./page.js";

const PAGE = 100;
const COLUMNS = [
  ["task", "task"], ["agent", "agent"], ["", "n"], ["status", "status"], ["score", "score"], ["strict", "strict"],
  ["steps", "steps"], ["duration", "time"], ["tokens", "tokens"], ["cost", "cost"], ["started", "started"], ["", "note"],
];
const NUMBERS = new Set(["n", "score", "strict", "steps", "time", "tokens", "cost"]);
const FIELDS = ["text", "task", "agent", "status", "score"];

// What is looked at; it stands in the address, too, so that the page can be shared and come back to.
const chosen = new URLSearchParams(location.search);
let page = null;
let selected = 0;
let asked = 0;

/** Return what was chosen among the trials, without the page's place. */
function choice() {
  const query = new URLSearchParams(chosen);
  query.delete("offset");
  return query;
}

async function load() {
  const mine = ++asked;
  try {
    const found = await ask("api/trials", { ...Object.fromEntries(chosen), limit: PAGE });
    if (mine !== asked) return; // a later question was answered first
    page = found;
    tell(null);
    show();
  } catch (problem) {
    if (mine === asked) tell(problem);
  }
}

function choose(changes, { keepPlace = false } = {}) {
  for (const [name, value] of Object.entries(changes)) {
    if (value) chosen.set(name, value);
    else chosen.delete(name);
  }
  if (!keepPlace) {
    chosen.delete("offset");
    selected = 0;
  }
  history.replaceState(null, "", `./${chosen.size ? `?${chosen}` : ""}`);
  return load();
}

function show() {
  document.title = `${page.run} · deskfork`;
  $("run").textContent = page.run;
  const running = page.states.running ?? 0;
  $("live").hidden = !running;
  const states = Object.entries(page.states).map(([state, number]) => `${number} ${words(state)}`);
  $("state").textContent = [page.provider, count(page.trials, "trial"), ...states].filter(Boolean).join(" · ");
  showAgents();
  fill("agent", page.agents.map((agent) => agent.agent));
  fill("status", Object.keys(page.states));
  $("count").textContent = page.matching === page.trials ? "" : `${page.matching} of ${count(page.trials, "trial")}`;
  showHeads();
  showRows();
  const last = page.offset + page.rows.length;
  $("place").textContent = page.matching > PAGE ? `${page.offset + 1} to ${last} of ${page.matching}` : "";
  $("earlier").hidden = $("later").hidden = page.matching <= PAGE;
  $("earlier").disabled = page.offset === 0;
  $("later").disabled = last >= page.matching;
  $("nothing").hidden = page.rows.length > 0;
}

const words = (state) => state.replace("_", " ");

function fill(name, values) {
  const select = $("filter").elements[name];
  const wanted = chosen.get(name) ?? "";
  const all = [...new Set([...values, wanted])].filter(Boolean);
  const known = [...select.options].slice(1).map((option) => option.value);
  if (known.join("\n") !== all.join("\n")) {
    select.replaceChildren(select.options[0], ...all.map((value) => el("option", { value, text: words(value) })));
  }
  select.value = wanted;
}

function showAgents() {
  const cards = page.agents.map((sum) => {
    const mean = sum.mean_score;
    const told = mean === null ? "no score yet" : `mean ${score(mean)}`;
    const strict = sum.mean_strict_score === null ? "" : `strict ${score(sum.mean_strict_score)}`;
    const over = `${sum.scored} of ${count(sum.trials, "trial")} scored`;
    return el("div", { class: "card" },
      el("b", { text: sum.agent }),
      el("span", { class: "meter", "aria-hidden": "true" },
        el("span", { style: { width: `${(mean ?? 0) * 100}%` } })),
      el("span", { class: "muted", text: [told, strict, over].filter(Boolean).join(" · ") }));
  });
  $("agents").replaceChildren(...cards);
}

function showHeads() {
  const sort = chosen.get("sort") ?? "task";
  const isDown = chosen.get("order") === "down";
  const heads = COLUMNS.map(([key, name]) => {
    const isSorted = key && key === sort;
    const order = isSorted ? (isDown ? "descending" : "ascending") : null;
    const turn = () => choose({ sort: key, order: isSorted && !isDown ? "down" : "" });
    return el("th", { scope: "col", "aria-sort": order, class: NUMBERS.has(name) ? "number" : null },
      key ? el("button", { type: "button", "data-sort": key, text: isSorted ? `${name} ${isDown ? "↓" : "↑"}` : name,
        on: { click: turn } }) : name);
  });
  const focused = document.activeElement?.dataset?.sort;
  $("columns").replaceChildren(...heads);
  if (focused) document.querySelector(`[data-sort="${focused}"]`)?.focus();
}

function showRows() {
  selected = Math.min(selected, Math.max(0, page.rows.length - 1));
  const hadFocus = $("rows").contains(document.activeElement);
  const old = new Map([...$("rows").children].map((row) => [row.said, row]));
  // Rows of which nothing has changed stay as they are, with what the reader has marked in them.
  const made = page.rows.map((row) => old.get(saidBy(row)) ?? showRow(row));
  const isSame = made.length === old.size && made.every((row, place) => row === $("rows").children[place]);
  if (!isSame) $("rows").replaceChildren(...made);
  if (hadFocus && !isSame) select(selected);
  else mark();
}

const saidBy = (row) => `${JSON.stringify(row)} ${choice()}`;

function showRow(row) {
  const cell = (text, kind) => el("td", { class: kind, text });
  const number = (text) => cell(text, "number");
  const graded = (value) => el("td", { class: "number" }, el("span", { class: `score ${grade(value)}`, text: score(value) }));
  const isOver = row.state === "ended";
  const query = choice();
  query.set("at", row.key);
  const link = el("a", { href: `trial?${query}`, text: row.task, title: row.task });
  const made = el("tr", { "data-key": row.key, on: { click: (event) => event.target.closest("a") || link.click() } },
    el("td", { class: "task" }, link),
    cell(row.agent),
    number(row.attempts > 1 ? `${row.repeat} (${row.attempts} ×)` : String(row.repeat)),
    el("td", {}, el("span", { class: `chip ${row.status}`, text: words(row.status) })),
    isOver ? graded(row.score) : number(""),
    isOver ? graded(row.strict_score) : number(""),
    number(String(row.steps)),
    number(seconds(row.duration_s)),
    number(row.tokens?.toLocaleString("en") ?? ""),
    number(money(row.cost_usd)),
    cell(row.started_at ? new Date(row.started_at).toLocaleTimeString("en-GB") : "", "when"),
    el("td", { class: "note", title: row.note || null, text: row.note }));
  made.said = saidBy(row);
  return made;
}

function mark() {
  [...$("rows").children].forEach((row, place) => row.setAttribute("aria-selected", place === selected));
}

function select(place) {
  if (!page?.rows.length) return;
  selected = Math.max(0, Math.min(place, page.rows.length - 1));
  mark();
  const row = $("rows").children[selected];
  row.querySelector("a").focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function turn(by) {
  const offset = Math.max(0, page.offset + by * PAGE);
  if (offset >= page.matching) return;
  selected = 0;
  choose({ offset: offset ? String(offset) : "" }, { keepPlace: true }).then(() => window.scrollTo(0, 0));
}

const filter = $("filter");
for (const name of FIELDS) filter.elements[name].value = chosen.get(name) ?? "";
filter.addEventListener("input", (event) => choose({ [event.target.name]: event.target.value }));
filter.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("reset", () => choose(Object.fromEntries(FIELDS.map((name) => [name, ""]))));
$("earlier").addEventListener("click", () => turn(-1));
$("later").addEventListener("click", () => turn(1));
listen([
  ["j ArrowDown", "next trial", () => select(selected + (document.activeElement.closest?.("#rows") ? 1 : 0))],
  ["k ArrowUp", "previous trial", () => select(selected - 1)],
  ["Enter o", "open the trial", (event) => (event.target.closest("button, a") ?? $("rows").children[selected]?.querySelector("a"))?.click()],
  ["n", "later trials", () => turn(1)],
  ["p", "earlier trials", () => turn(-1)],
  ["/", "look for text", () => filter.elements.text.focus()],
  ["g", "to the first trial", () => select(0)],
  ["G", "to the last trial of the page", () => select(Infinity)],
]);
await load();
let version = page?.version;
watch({}, (state) => {
  if (state.version === version) return;
  version = state.version;
  load();
});
