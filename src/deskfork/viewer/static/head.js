// What stands above a trial's steps: who, how it ended, why, and where its time went.
import { $, count, el, grade, money, score, seconds } from "./page.js";

const PARTS = ["model", "guest", "observe", "framework"];
const words = (state) => state.replace("_", " ");

/** A bar of parts with their lengths in seconds; `whole` is the length of the full width. */
export function bar(parts, whole, label) {
  const told = parts.filter(([, value]) => value > 0).map(([name, value]) => `${name} ${seconds(value)}`).join(", ");
  const pieces = parts.map(([name, value]) =>
    el("span", { class: `part ${name}`, style: { width: `${whole > 0 ? (100 * value) / whole : 0}%` } }));
  return el("span", { class: "timing", role: "img", "aria-label": `${label}: ${told || "no time"}`, title: told }, ...pieces);
}

/** The bar of one step. */
export function stepBar(step, whole) {
  return bar(PARTS.map((name, place) => [name, step.seconds[place]]), whole, `Step ${step.number}`);
}

export function total(step) {
  return step.seconds.reduce((sum, value) => sum + value, 0);
}

export function legend(values) {
  return el("span", { class: "legend" }, ...values.map(([name, value]) =>
    el("span", {}, el("i", { class: `part ${name}`, "aria-hidden": "true" }), `${name} ${seconds(value)}`)));
}

export function showHead(page, steps, link) {
  const { row, ending } = page;
  document.title = `${row.task} · ${row.agent} · deskfork`;
  $("task").textContent = row.task;
  $("task").title = row.task;
  $("who").textContent = `${row.agent} · repeat ${row.repeat}`;
  $("chips").replaceChildren(...chips(row, ending));
  $("live").hidden = row.state !== "running";
  showPlace(page, link);
  const facts = [
    ending?.model,
    count(Math.max(row.steps, steps.length), "step"),
    seconds(row.duration_s),
    row.tokens ? count(row.tokens, "token") : "",
    money(row.cost_usd),
    row.started_at ? new Date(row.started_at).toLocaleString("en-GB") : "",
    page.sandbox ? `sandbox ${page.sandbox}` : "",
  ];
  const sums = PARTS.map((name, place) => [name, steps.reduce((sum, step) => sum + step.seconds[place], 0)]);
  const whole = sums.reduce((sum, [, value]) => sum + value, 0);
  const parts = [el("p", { class: "facts muted", text: facts.filter(Boolean).join(" · ") })];
  if (whole) parts.push(el("p", { class: "times" }, bar(sums, whole, "All steps"), legend(sums)));
  if (row.state === "unreadable") parts.push(note("problem", row.note));
  if (ending) parts.push(...told(ending));
  if (ending || page.prompt) parts.push(more(page));
  $("head").replaceChildren(...parts);
}

function chips(row, ending) {
  const made = [el("span", { class: `chip ${row.status}`, text: words(row.status) })];
  if (row.state !== "ended") return made;
  made.push(el("span", { class: `score ${grade(row.score)}`, text: `score ${score(row.score)}` }));
  made.push(el("span", { class: `score ${grade(row.strict_score)}`, text: `strict ${score(row.strict_score)}` }));
  if (ending?.self_report) {
    const isRight = row.score === null ? "" : (ending.self_report === "done") === (row.score >= 1) ? "" : " wrong";
    made.push(el("span", { class: `chip self${isRight}`, text: `agent says ${ending.self_report}` }));
  }
  return made;
}

function told(ending) {
  const made = [];
  if (ending.difference) made.push(note("", `The scores differ: ${ending.difference}`));
  if (ending.reason) made.push(note("", ending.reason));
  if (ending.error && ending.error !== ending.reason) made.push(note("bad", ending.error));
  return made;
}

const note = (kind, text) => el("p", { class: `note ${kind}`, text });

/** What is asked for less often, folded. */
function more(page) {
  const { ending } = page;
  const rows = [];
  const add = (name, content) => content && rows.push(el("dt", { text: name }), el("dd", {}, content));
  if (ending) {
    add("ended by", ending.ending);
    add("answer", ending.answer !== null ? el("pre", { text: ending.answer }) : null);
    const phases = Object.entries(ending.phases_s);
    add("phases", phases.length ? phases.map(([name, value]) => `${name} ${seconds(value)}`).join(", ") : null);
    add("steps by class", mix(ending.action_mix));
    add("lines by class", mix(ending.line_mix));
    add("metrics", ending.findings.length ? findings(ending.findings) : null);
    add("trace", ending.trace_id);
  }
  add("told at first", page.prompt ? el("pre", { text: page.prompt.text }) : null);
  const wasOpen = $("head").querySelector("details")?.open;
  return el("details", { open: wasOpen }, el("summary", { text: "Verdict, answer, phases, prompt" }), el("dl", {}, ...rows));
}

const mix = (counts) => Object.entries(counts).map(([name, number]) => `${name} ${number}`).join(", ");

function findings(found) {
  const cell = (text) => el("td", { text });
  const rows = found.map((one) =>
    el("tr", {}, cell(one.metric), cell(score(one.score)), cell(one.detail), cell(score(one.strict_score)), cell(one.strict_detail)));
  const heads = ["metric", "score", "", "strict", ""].map((name) => el("th", { scope: "col", text: name }));
  return el("table", { class: "findings" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows));
}

function showPlace(page, link) {
  const { neighbours, attempts, row } = page;
  for (const name of ["previous", "next"]) {
    if (neighbours[name]) $(name).href = link(neighbours[name]);
    else $(name).removeAttribute("href");
  }
  $("place").textContent = neighbours.position ? `${neighbours.position} of ${neighbours.count}` : "";
  const others = attempts.length > 1 ? attempts : [];
  $("attempts").replaceChildren(...others.map((key, place) =>
    el("a", { class: "chip", href: link(key), "aria-current": key === row.key ? "page" : null, text: `attempt ${place}` })));
}
