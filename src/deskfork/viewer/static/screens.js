// The screens before and after a step, with what the pointer did drawn into them.
import { $, el } from "./page.js";

const SVG = "http://www.w3.org/2000/svg";
const NAMES = { move: "moved", click: "clicked", drag: "dragged", scroll: "scrolled", press: "pressed", release: "released" };

const url = (key, name) => `screen?${new URLSearchParams({ at: key, name })}`;

/** Return a figure of a screen: `title`, the file's `name`, and the `spots` and the `pointer` to draw; `open` is for a click. */
export function figure(key, shown, open) {
  const caption = el("figcaption", {}, el("b", { text: shown.title }), el("span", { class: "muted", text: shown.note ?? "" }));
  if (!shown.name) {
    return el("figure", {}, caption, el("div", { class: "noscreen muted", text: shown.missing ?? "no screen was kept" }));
  }
  const image = el("img", { src: url(key, shown.name), alt: describe(shown), draggable: "false" });
  const frame = el("button", { type: "button", class: "frame", title: "Full size (z)" }, image);
  image.addEventListener("load", () => frame.append(overlay(image, shown)), { once: true });
  const missing = el("div", { class: "noscreen muted", text: "this screen is not in the trial's folder" });
  image.addEventListener("error", () => frame.replaceWith(missing), { once: true });
  frame.addEventListener("click", open);
  return el("figure", {}, caption, frame);
}

/** Show a screen in full size. */
export function enlarge(key, shown) {
  const dialog = $("large");
  if (!shown.name) return dialog.close();
  const image = el("img", { src: url(key, shown.name), alt: describe(shown) });
  const frame = el("div", { class: "frame" }, image);
  image.addEventListener("load", () => frame.append(overlay(image, shown)), { once: true });
  const close = el("button", { type: "button", text: "Close", on: { click: () => dialog.close() } });
  dialog.replaceChildren(el("p", { class: "bar" }, el("b", { text: shown.title }), el("span", { class: "spring" }), close), frame);
  if (!dialog.open) dialog.showModal();
  else close.focus();
}

/** Have the browser fetch a screen before it is looked at. */
export function prefetch(key, name) {
  if (name) new Image().src = url(key, name);
}

function describe(shown) {
  const did = (shown.spots ?? []).map(
    (spot) => `${NAMES[spot.kind]} ${spot.label} at ${Math.round(spot.x)}, ${Math.round(spot.y)}`.replace("  ", " "));
  return [shown.title, ...did].join("; ");
}

function overlay(image, shown) {
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  // Coordinates are those of the picture that the agent was shown, which may be smaller than the screen.
  const scale = shown.picture ? Math.max(1, Math.max(width, height) / shown.picture) : 1;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: `overlay${shown.isRefused ? " refused" : ""}`, "aria-hidden": "true" });
  const spots = shown.spots ?? [];
  const labels = new Map();
  spots.forEach((spot, place) => {
    root.append(drawn(spot, scale));
    const at = `${Math.round(spot.x * scale)} ${Math.round(spot.y * scale)}`;
    labels.set(at, [...(labels.get(at) ?? []), labelOf(spot, spots.length > 1 ? place + 1 : 0)]);
  });
  for (const [at, told] of labels) {
    const [x, y] = at.split(" ").map(Number);
    // Beside the place, on the side where there is room.
    const isRight = x < 0.75 * width;
    const label = svg("text", { x: x + (isRight ? 24 : -24), y: Math.max(26, y - 14), "text-anchor": isRight ? "start" : "end" });
    label.textContent = told.filter(Boolean).join(", ");
    root.append(label);
  }
  if (shown.pointer) {
    const [x, y] = shown.pointer;
    root.append(svg("path", { class: "pointer", transform: `translate(${x * scale} ${y * scale}) scale(1.6)`,
      d: "M0 0v16l3.8-3.4 2.6 5.6 2.5-1.2-2.6-5.4h5z" }));
  }
  return root;
}

/** What is written beside a spot: its number among several, and what is not seen from its sign. */
function labelOf(spot, number) {
  const what = spot.kind === "click" ? spot.label || (number ? "click" : "") : `${spot.kind} ${spot.label}`.trim();
  return [number || "", what].filter(Boolean).join(" ");
}

function drawn(spot, scale) {
  const [x, y] = [spot.x * scale, spot.y * scale];
  const group = svg("g", { class: `spot ${spot.kind}` });
  if (spot.kind === "drag" && spot.start) {
    const [left, top] = [spot.start[0] * scale, spot.start[1] * scale];
    group.append(line(left, top, x, y), svg("circle", { cx: left, cy: top, r: 6 }), arrowhead(left, top, x, y));
  }
  if (spot.kind === "move") group.append(svg("circle", { cx: x, cy: y, r: 9 }));
  else {
    group.append(svg("circle", { cx: x, cy: y, r: 18 }), svg("circle", { cx: x, cy: y, r: 4, class: "core" }));
  }
  if (spot.kind === "scroll") {
    const down = !spot.label.startsWith("up");
    const tip = y + (down ? 46 : -46);
    group.append(line(x, y, x, tip), arrowhead(x, y, x, tip));
  }
  return group;
}

function arrowhead(x1, y1, x2, y2) {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const tips = [angle + 2.6, angle - 2.6].map((turned) => `${x2 + 16 * Math.cos(turned)} ${y2 + 16 * Math.sin(turned)}`);
  return svg("path", { d: `M${tips[0]}L${x2} ${y2}L${tips[1]}` });
}

const line = (x1, y1, x2, y2) => svg("line", { x1, y1, x2, y2 });

function svg(tag, given) {
  const made = document.createElementNS(SVG, tag);
  Object.entries(given).forEach(([name, value]) => made.setAttribute(name, value));
  return made;
}
