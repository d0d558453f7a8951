// The chart of the score of each round and the threshold. It is drawn for the available width, so that text keeps its size.

import {drawn, element} from "./dom.js";
import {counted, score} from "./words.js";

const LEFT = 38;
const RIGHT = 12;
const TOP = 32; // leaves space for the number above a score of 1.00
const BOTTOM = 24;

// Describes the chart as text, for screen readers.
export function told(progress) {
  const scored = progress.rounds.filter((round) => round.state === "done");
  if (!scored.length) return `No iteration has a score yet. The threshold is ${score(progress.threshold)}.`;
  const parts = scored.map((round) => `iteration ${round.number}: ${round.score === null ? "no score" : score(round.score)}`);
  const best = progress.best ? ` The best is iteration ${progress.best.number}.` : "";
  return `The threshold is ${score(progress.threshold)}. ${parts.join(", ").replace(/^i/, "I")}.${best}`;
}

export function chart(progress, width, height) {
  const rounds = Math.max(progress.iterMax, progress.rounds.length);
  const x = (number) => LEFT + (number - 0.5) / rounds * (width - LEFT - RIGHT);
  const y = (value) => TOP + (1 - value) * (height - TOP - BOTTOM);
  const parts = [];
  for (const tick of [0, 0.5, 1]) {
    parts.push(drawn("line", {class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick)}));
    if (Math.abs(tick - progress.threshold) > 0.09) {
      parts.push(drawn("text", {class: "axis", x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end"}, tick.toFixed(1)));
    }
  }
  const wanted = y(progress.threshold);
  parts.push(drawn("line", {class: "threshold", x1: LEFT, x2: width - RIGHT, y1: wanted, y2: wanted}));
  parts.push(drawn("text", {class: "threshold-name", x: LEFT - 8, y: wanted + 4, "text-anchor": "end"}, score(progress.threshold)));
  for (let number = 1; number <= rounds; number++) {
    parts.push(drawn("text", {class: "axis", x: x(number), y: height - 6, "text-anchor": "middle"}, number));
  }
  const scored = progress.rounds.filter((round) => round.score !== null);
  if (scored.length > 1) {
    parts.push(drawn("polyline", {class: "line", points: scored.map((round) => `${x(round.number)},${y(round.score)}`).join(" ")}));
  }
  // With many rounds on a narrow screen, the numbers would overlap, so only the best and the last round have a number.
  const crowded = (width - LEFT - RIGHT) / rounds < 34;
  for (const round of progress.rounds) {
    const valued = !crowded || round === progress.best || (round === scored.at(-1) && Math.abs(round.number - progress.best.number) > 1);
    parts.push(...spot(round, progress, x(round.number), y, valued));
  }
  return drawn(
    "svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": "chart-title chart-told"},
    drawn("title", {id: "chart-title"}, "Score of each iteration"), drawn("desc", {id: "chart-told"}, told(progress)), ...parts,
  );
}

function spot(round, progress, at, y, valued) {
  if (round.state !== "done") return progress.over ? [] : [drawn("circle", {class: "waiting", cx: at, cy: y(0), r: 4})];
  const others = (round.result?.candidates ?? [])
    .filter((candidate, index) => index !== round.result.chosen && candidate.evaluation)
    .map((candidate) => drawn("circle", {class: "other", cx: at, cy: y(candidate.evaluation.score), r: 3}));
  if (round.score === null) {
    const low = y(0) - 9;
    return [...others, drawn("path", {class: "cross", d: `M${at - 5} ${low - 5}l10 10m0 -10l-10 10`})];
  }
  const high = round.score >= progress.threshold;
  const mark = drawn("circle", {class: high ? "dot accepted" : "dot", cx: at, cy: y(round.score), r: 5});
  const ring = round === progress.best ? drawn("circle", {class: high ? "ring" : "ring short", cx: at, cy: y(round.score), r: 9}) : null;
  const value = drawn("text", {class: "value", x: at, y: y(round.score) - 13, "text-anchor": "middle"}, score(round.score));
  return [...others, mark, ring, valued ? value : null].filter(Boolean);
}

export function legend(progress) {
  const threshold = drawn("svg", {class: "key-line", width: 22, height: 8, "aria-hidden": "true"}, drawn("line", {class: "threshold", x1: 0, x2: 22, y1: 4, y2: 4}));
  const several = (progress.request.attempts ?? 1) > 1;
  return [
    element("span", {}, threshold, ` threshold: ${score(progress.threshold)}`),
    element("span", {}, `across: up to ${counted(progress.iterMax, "iteration")}`),
    several ? element("span", {}, "○ other candidates") : null,
  ].filter(Boolean);
}
