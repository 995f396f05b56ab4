import { showHead, stepBar, total } from "./head.js";
import { $, ask, count, el, listen, seconds, tell, watch } from "./page.js";
import { enlarge, figure, prefetch } from "./screens.js";
import { showBody, stepHead } from "./step.js";

const query = Object.fromEntries(new URLSearchParams(location.search));
const key = query.at ?? "";
const steps = [];
const bodies = new Map();
let page = null;
let current = 0;
let isFollowing = false;

/** The address of another trial among the same choice. */
function link(at) {
  return `trial?${new URLSearchParams({ ...query, at })}`;
}

let loading = Promise.resolve();

/** Ask for what is new, one question after the other: each is for what comes after the steps that are known. */
function load() {
  loading = loading.catch(() => {}).then(loadOnce);
  return loading;
}

async function loadOnce() {
  page = await ask("api/trial", { ...query, known: steps.length });
  const isFirst = steps.length === 0;
  steps.push(...page.steps);
  showHead(page, steps, link);
  showList(page.steps);
  showFollow();
  if (isFirst || (isFollowing && page.steps.length)) go(isFirst && !isFollowing ? wanted() : steps.length, { isOurs: true });
  showDesktop();
}

/** The step that the address names. */
function wanted() {
  const found = /^#step=(\d{1,7})$/.exec(location.hash);
  return found ? Number(found[1]) : 1;
}

// ---- the list

function showList(added) {
  const list = $("steps");
  const longest = Math.max(0, ...steps.map(total));
  // Bars are drawn to the longest step, so a longer one changes them all.
  if (added.length) list.replaceChildren(...steps.map((step) => item(step, longest)));
  const note = page.row.state === "running" ? "no step yet" : "no steps";
  $("stepcount").textContent = steps.length ? count(steps.length, "step") : note;
  mark();
}

function item(step, longest) {
  // What overran its time failed by that.
  const marks = [
    [step.is_refused, "refused"], [step.is_timed_out, "timed out"], [step.is_failed && !step.is_timed_out, "error"],
    [step.is_final, "final"],
  ].filter(([isSo]) => isSo).map(([, name]) => el("span", { class: `mark ${name}`, text: name }));
  return el("li", { id: `step-${step.number}`, role: "option", class: `step ${step.action}`, on: { click: () => go(step.number) } },
    el("span", { class: "number", text: step.number }),
    el("span", { class: "class", text: step.action }),
    ...marks,
    el("span", { class: "time", text: seconds(total(step)) }),
    el("span", { class: "title", text: step.title }),
    stepBar(step, longest));
}

function mark() {
  const list = $("steps");
  for (const entry of list.children) entry.setAttribute("aria-selected", entry.id === `step-${current}`);
  if ($(`step-${current}`)) list.setAttribute("aria-activedescendant", `step-${current}`);
}

/** Bring the current step into the list's view. Only the list is moved: the reader may be elsewhere on the page. */
function reveal() {
  const list = $("steps");
  const found = $(`step-${current}`);
  const [top, bottom] = [found.offsetTop - list.offsetTop, found.offsetTop - list.offsetTop + found.offsetHeight];
  if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
  const [left, right] = [found.offsetLeft - list.offsetLeft, found.offsetLeft - list.offsetLeft + found.offsetWidth];
  if (left < list.scrollLeft || right > list.scrollLeft + list.clientWidth) list.scrollLeft = left;
}

// ---- one step

/** Show a step; `isOurs`: the reader did not ask for it. */
async function go(number, { isOurs = false } = {}) {
  if (!steps.length) {
    const first = { title: "Before the first step", name: page.first_screen };
    $("screens").replaceChildren(...(first.name ? [figure(key, first, () => enlarge(key, first))] : []));
    return;
  }
  current = Math.max(1, Math.min(number, steps.length));
  if (!isOurs && isFollowing && current < steps.length) follow(false);
  const shared = `#step=${current}`;
  if (location.hash !== shared && !(isOurs && isFollowing)) history.replaceState(null, "", shared);
  mark();
  reveal();
  showScreens();
  $("said").textContent = `Step ${current} of ${steps.length}`;
  const mine = current;
  try {
    const body = await bodyOf(mine);
    if (mine === current) showBody(key, body, steps[mine - 1]);
  } catch (problem) {
    if (mine === current) $("body").replaceChildren(stepHead(steps[mine - 1]), el("p", { class: "note bad", text: problem.message }));
  }
  for (const near of [mine + 1, mine - 1]) {
    if (steps[near - 1]) {
      bodyOf(near).catch(() => bodies.delete(near)); // it is told when the reader gets there
      prefetch(key, steps[near - 1].screen);
    }
  }
}

function bodyOf(number) {
  if (!bodies.has(number)) bodies.set(number, ask("api/step", { at: key, step: number }));
  return bodies.get(number);
}

// ---- screens

/** What the figures of the current step show. */
function shown() {
  const step = steps[current - 1];
  const earlier = steps[current - 2];
  const before = earlier ? earlier.screen : page.first_screen;
  const common = { picture: page.picture_px, isRefused: step.is_refused };
  const isSame = before && before === step.screen;
  return [
    { ...common, title: earlier ? `Before (after step ${earlier.number})` : "Before (at the start)", name: before,
      spots: step.spots, pointer: step.pointer[0], missing: "the screen at the start is not known" },
    { ...common, title: `After step ${step.number}`, note: isSame ? "nothing has changed" : "", name: step.screen, pointer: step.pointer[1] },
  ];
}

let inFull = 1;

function showScreens() {
  const both = shown();
  $("screens").replaceChildren(...both.map((one, which) => figure(key, one, () => toggleFull(which))));
  if ($("large").open) enlarge(key, both[inFull]);
}

/** Show the screen before (0) or after (1) the step in full size, or no longer. */
function toggleFull(which) {
  if ($("large").open && inFull === which) return $("large").close();
  inFull = which;
  if (steps.length) enlarge(key, shown()[which]);
}

// ---- live

let desktopState = "";

async function showDesktop() {
  const box = $("desktop");
  const isLive = page.row.state === "running" && page.sandbox;
  const state = isLive ? page.sandbox : "";
  if (state === desktopState) return;
  desktopState = state;
  box.hidden = !state;
  box.replaceChildren();
  if (!state) return;
  const title = el("figcaption", {}, el("b", { text: "Now" }), el("span", { class: "muted", text: `the desktop of ${page.sandbox}, live; to be looked at only` }));
  try {
    const { url, why } = await ask("api/desktop", { at: key }, "POST");
    if (!url) throw new Error(why);
    box.replaceChildren(el("figure", {}, title,
      el("iframe", { src: url, title: "Live desktop", sandbox: "allow-scripts allow-same-origin", referrerpolicy: "no-referrer" })));
  } catch (problem) {
    box.replaceChildren(el("p", { class: "muted", text: `No live desktop: ${problem.message}` }));
  }
}

function showFollow() {
  $("follow").hidden = page.row.state !== "running";
}

function follow(isOn) {
  isFollowing = isOn;
  $("follow").setAttribute("aria-pressed", isOn);
  if (isOn) go(steps.length, { isOurs: true });
}

// ---- the page

$("back").href = (() => {
  const { at, ...choice } = query;
  return Object.keys(choice).length ? `./?${new URLSearchParams(choice)}` : "./";
})();
$("follow").addEventListener("click", () => follow(!isFollowing));
window.addEventListener("hashchange", () => go(wanted()));
const visit = (id) => () => $(id).href && $(id).click();
listen([
  ["j ArrowDown ArrowRight", "next step", () => go(current + 1), true],
  ["k ArrowUp ArrowLeft", "previous step", () => go(current - 1), true],
  ["Home g", "first step", () => go(1)],
  ["End G", "last step", () => go(steps.length)],
  ["n", "next trial", visit("next")],
  ["p", "previous trial", visit("previous")],
  ["u", "back to all trials", visit("back")],
  ["z", "screen after the step in full size", () => toggleFull(1), true],
  ["b", "screen before the step in full size", () => toggleFull(0), true],
  ["f", "go along with new steps of a live trial", () => $("follow").hidden || follow(!isFollowing)],
]);

try {
  // Whoever came by a link to a step is not carried along.
  const namesStep = Boolean(location.hash);
  await load();
  if (page.row.state === "running" && !namesStep) follow(true);
} catch (problem) {
  tell(problem);
}
if (page && page.row.state !== "ended") {
  let told = "";
  const stop = watch({ at: key }, async ({ steps: number, ended }) => {
    const state = `${number} ${ended}`;
    if (state === told) return;
    told = state;
    await load().catch(tell);
    if (ended) stop();
  });
}
