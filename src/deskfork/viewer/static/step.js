// One step in words: what the model thought, did, and got back.
import { legend, stepBar, total } from "./head.js";
import { $, ask, count, el, seconds, tell } from "./page.js";

/** What stands above a step. */
export function stepHead(step) {
  const parts = ["model", "guest", "observe", "framework"].map((name, place) => [name, step.seconds[place]]);
  const facts = [seconds(total(step)), step.tokens ? count(step.tokens, "token") : "", step.is_cached ? "from the cache" : ""];
  return el("header", { class: "stephead" },
    el("h2", {}, `Step ${step.number} `, el("span", { class: `class ${step.action}`, text: step.action })),
    el("span", { class: "muted", text: facts.filter(Boolean).join(" · ") }),
    stepBar(step, total(step)), legend(parts));
}

/** Show all that was said and done in a step. */
export function showBody(key, body, step) {
  const parts = [stepHead(step)];
  const add = (name, text, kind = "") => text && (text.text || kind.includes("always")) && parts.push(block(key, name, text, kind, body.number));
  if (body.refused) add("Refused", body.refused, "bad");
  add("Thought", body.thought, "prose");
  add("Action", body.code, "code always");
  add("Tool calls", body.calls, "code");
  add("Output", body.stdout);
  add("Errors (stderr)", body.stderr, "warn");
  add("Error", body.error, "bad");
  if (!body.stdout.text && !body.stderr.text && !body.error && !body.refused) parts.push(el("p", { class: "muted", text: "It printed nothing." }));
  const forgotten = [];
  if (body.images_dropped) forgotten.push(`${count(body.images_dropped, "earlier picture")} not shown again`);
  if (body.steps_cut) forgotten.push(`${count(body.steps_cut, "earlier step")} told in short`);
  if (forgotten.length) parts.push(el("p", { class: "muted", text: `The model saw: ${forgotten.join(", ")}.` }));
  if (body.raw) parts.push(el("details", {}, el("summary", { text: "What the model said, raw" }), el("pre", { text: body.raw.text })));
  $("body").replaceChildren(...parts);
  $("body").scrollTop = 0;
}

const FIELD = { Refused: "refused", Thought: "thought", Action: "code", "Tool calls": "calls", Output: "stdout", "Errors (stderr)": "stderr", Error: "error" };

function block(key, name, text, kind, number) {
  const pre = el("pre", { text: text.text, tabindex: "0", "aria-label": name });
  const made = el("section", { class: `block ${kind}` }, el("h3", { text: name }), pre);
  if (text.left_out) {
    const all = async () => {
      const whole = await ask("api/step", { at: key, step: number, whole: 1 }).catch(tell);
      if (!whole) return;
      pre.textContent = whole[FIELD[name]].text;
      more.remove();
    };
    const more = el("button", { type: "button", text: `… ${count(text.left_out, "more character")}`, on: { click: all } });
    made.append(more);
  }
  return made;
}
