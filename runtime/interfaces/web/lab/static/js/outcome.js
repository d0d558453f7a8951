// Describes a run in one line, during the run and after its end.

import {score} from "./words.js";

const ENDED = {
  cancelled: "Stopped",
  budget: "A limit on calls, tokens or cost was reached",
  time: "The time limit was reached",
  hopeless: "The model can't be called",
  no_progress: "The model repeated the same answer",
};

const DOING = {writing: "writing", judging: "judging", done: "done"};

// Returns {text, tone, problem}: tone is "", good, warn or bad; problem is shown in the box below, or is null.
export function outcome(progress) {
  if (progress === null) return {text: "Nothing has run yet", tone: "", problem: null};
  if (!progress.over) return {text: going(progress), tone: "", problem: null};
  if (progress.problem) return failed(progress, progress.problem);
  const {status, stopped, reason} = progress.result.metadata;
  if (status === "failed") return failed(progress, {title: "No answer was evaluated", detail: reason, stopped});
  const wanted = score(progress.threshold);
  const best = progress.best;
  if (status === "accepted") return {text: `Accepted: iteration ${best.number} scored ${score(best.score)}, and the threshold is ${wanted}`, tone: "good", problem: null};
  const kept = best ? `the best is iteration ${best.number} with ${score(best.score)}` : "no answer was evaluated";
  if (status === "interrupted") return {text: `The server stopped before the run ended; ${kept}`, tone: "warn", problem: null};
  if (stopped) return {text: `${ENDED[stopped] ?? stopped}; ${kept}`, tone: "warn", problem: null};
  return {text: `Threshold not reached: no iteration scored ${wanted}; ${kept}`, tone: "warn", problem: null};
}

function failed(progress, problem) {
  const stopped = problem.stopped ?? problem.metadata?.stopped;
  if (stopped === "cancelled") return {text: "Stopped before any answer was evaluated", tone: "warn", problem: null};
  return {text: "Failed: no answer", tone: "bad", problem: {title: problem.title, detail: cleared(problem)}};
}

// Returns the detail without a leading title, because the title is already shown above it.
function cleared({title = "", detail = ""}) {
  const repeated = detail.toLowerCase().startsWith(`${title.toLowerCase()}: `);
  const text = repeated ? detail.slice(title.length + 2) : detail;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function going(progress) {
  if (progress.stopping) return "Stopping";
  if (progress.lost) return "The connection was lost; reconnecting";
  const round = progress.rounds.at(-1);
  if (!round) return "Starting";
  const before = progress.rounds.at(-2);
  const told = before?.state === "done" ? `Iteration ${before.number}: ${before.score === null ? "no score" : score(before.score)}. ` : "";
  const now = round.state === "done" && round.score !== null ? score(round.score) : DOING[round.state];
  return `${told}Iteration ${round.number} of ${progress.iterMax}: ${now}`;
}
