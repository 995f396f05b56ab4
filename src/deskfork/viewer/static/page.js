// What both pages share. Whatever comes from records becomes text nodes, never markup.

export const $ = (id) => document.getElementById(id);

/** Make an element; `given` holds attributes, with `text` for its text and `on` for its listeners. */
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name === "on") Object.entries(value).forEach(([event, act]) => made.addEventListener(event, act));
    else if (name === "style") Object.entries(value).forEach(([key, v]) => made.style.setProperty(key, v));
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Ask the server for JSON. */
export async function ask(path, query = {}, method = "GET") {
  const response = await fetch(`${path}?${new URLSearchParams(query)}`, { method });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** Show what went wrong, or take it away. */
export function tell(problem) {
  $("problem").textContent = problem ? String(problem.message ?? problem) : "";
  $("problem").hidden = !problem;
}

/** Have `act` called with the state of the run at each change, as long as the page is looked at. */
export function watch(query, act) {
  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(`api/changes?${new URLSearchParams(query)}`);
    source.onmessage = (event) => {
      tell(null);
      act(JSON.parse(event.data));
    };
    source.onerror = () => tell("The viewer does not answer; it was ended perhaps.");
  };
  const close = () => {
    source?.close();
    source = null;
  };
  // A browser opens only a few connections to a server: pages that nobody looks at must not hold one each.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
  return close;
}

/**
 * Listen for keys, which `keys` lists as [names, what they do, action, whether also over a screen in full size];
 * `?` shows the list.
 */
export function listen(keys) {
  const help = ["?", "show or hide these keys", () => toggle()];
  const all = [...keys, help];
  const toggle = () => {
    const dialog = $("keys");
    if (dialog.open) return dialog.close();
    dialog.replaceChildren(
      el("h2", { text: "Keys" }),
      el("dl", {}, ...all.flatMap(([names, what]) => [
        el("dt", {}, ...names.split(" ").map((name) => el("kbd", { text: SHOWN[name] ?? name }))),
        el("dd", { text: what }),
      ])),
      el("button", { type: "button", text: "Close", on: { click: () => dialog.close() } }),
    );
    dialog.showModal();
  };
  $("help").addEventListener("click", toggle);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const isOpen = document.querySelector("dialog[open]");
    const found = all.find(([names]) => names.split(" ").includes(event.key));
    if (!found || (isOpen && found !== help && !(found[3] && isOpen.id === "large"))) return;
    event.preventDefault();
    found[2](event);
  });
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }
}

const SHOWN = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→" };

export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 120) return `${minutes}:${String(Math.floor(value % 60)).padStart(2, "0")} min`;
  return `${(value / 3600).toFixed(1)} h`;
}

export function score(value) {
  return value === null || value === undefined ? "absent" : value.toFixed(3).replace(/\.?0+$/, "");
}

export function grade(value) {
  if (value === null || value === undefined) return "absent";
  return value >= 1 ? "one" : value > 0 ? "between" : "zero";
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

export function money(value) {
  return value ? `$${value.toFixed(value < 0.1 ? 4 : 2)}` : value === 0 ? "0" : "";
}
