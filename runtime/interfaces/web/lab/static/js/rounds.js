// The card of a round: its answer, its status, the evaluation, and the changes since the previous round.

import {changes} from "./changes.js";
import {element, say} from "./dom.js";
import {counted, money, score, seconds} from "./words.js";

const STATES = {writing: "writing", judging: "judging", left: "not finished"};

export class Card {
  constructor(number) {
    this.number = number;
    this.comparing = false;
    this.mark = element("span", {class: "badge", hidden: true});
    this.score = element("span", {class: "score", hidden: true});
    this.doing = element("span", {class: "doing"});
    this.views = element("div", {class: "views", role: "group", "aria-label": `View of iteration ${number}`, hidden: true});
    this.answer = element("div", {class: "answer", tabindex: "0", role: "group", "aria-label": `Answer of iteration ${number}`});
    this.rest = element("div", {class: "body"});
    this.details = element(
      "details", {open: true},
      element("summary", {}, element("h3", {}, `Iteration ${number}`), this.score, this.doing, this.mark),
      element("div", {class: "body"}, this.views, this.answer),
      this.rest,
    );
    this.root = element("li", {class: "round", id: `iteration-${number}`}, this.details);
  }

  // `before` is the previous round with an answer, or undefined.
  update(round, before, progress) {
    const best = progress.best === round;
    const high = round.score !== null && round.score >= progress.threshold;
    this.root.classList.toggle("best", best);
    this.root.classList.toggle("short", !high);
    this.mark.hidden = !best;
    this.mark.className = high ? "badge accepted" : "badge";
    say(this.mark, high ? "accepted" : progress.over ? "best" : "best so far");
    if (this.shown === round.result && this.state === round.state && !this.stale(round)) return;
    this.state = round.state;
    this.shown = round.result;
    this.note = round.note;
    this.heads(round, high);
    this.text = round.answers.find((answer) => answer !== undefined) ?? "";
    this.before = before;
    this.answers = round.answers.length;
    this.show();
    this.answer.hidden = round.state === "done" && !this.text; // the error is shown below
    if (round.result) this.tell(round.result);
  }

  stale(round) {
    return this.note !== round.note || this.answers !== round.answers.length;
  }

  heads(round, high) {
    const over = round.state === "done";
    this.score.hidden = !over;
    this.score.className = round.score === null ? "score none" : high ? "score accepted" : "score";
    say(this.score, over ? (round.score === null ? "no score" : score(round.score)) : "");
    say(this.doing, over ? "" : [STATES[round.state], round.note].filter(Boolean).join(", "));
  }

  show() {
    const {before, text} = this;
    if (before && text && !this.views.childElementCount) {
      this.plain = element("button", {type: "button"}, "Answer");
      this.compared = element("button", {type: "button"}, `Changes since iteration ${before.number}`);
      this.plain.addEventListener("click", () => this.turn(false));
      this.compared.addEventListener("click", () => this.turn(true));
      this.views.append(this.plain, this.compared);
      this.views.hidden = false;
    }
    this.plain?.setAttribute("aria-pressed", String(!this.comparing));
    this.compared?.setAttribute("aria-pressed", String(this.comparing));
    if (!this.comparing || !before) return say(this.answer, text);
    const parts = changes(before.answers[0] ?? "", text);
    if (parts) this.answer.replaceChildren(...parts);
    else say(this.answer, "The answers are too long or too different for a word-by-word comparison.");
  }

  turn(comparing) {
    this.comparing = comparing;
    this.show();
  }

  tell(result) {
    const others = (result.candidates ?? []).map((candidate, index) => [candidate, index + 1]).filter(([, number]) => number !== result.chosen + 1);
    this.rest.replaceChildren(...judged(result), ...(others.length ? [otherCandidates(others)] : []), element("p", {class: "facts"}, facts(result)));
  }
}

// Returns elements with the evaluation of a candidate, or the reason why it was not evaluated.
function judged({evaluation, error}) {
  if (error) {
    const stage = error.stage === "generation" ? "No answer" : "The answer could not be evaluated";
    return [
      element("p", {class: "wrong"}, `${stage}: ${error.message}`),
      ...(error.hint ? [element("p", {class: "help"}, error.hint)] : []),
    ];
  }
  const parts = [];
  if (evaluation?.evaluation_reasoning) {
    parts.push(element("div", {class: "judgement"}, element("h4", {}, "Evaluation"), element("p", {}, evaluation.evaluation_reasoning)));
  }
  if (evaluation?.improvement_suggestions.length) {
    const list = element("ul", {}, ...evaluation.improvement_suggestions.map((suggestion) => element("li", {}, suggestion)));
    parts.push(element("div", {class: "judgement"}, element("h4", {}, "Suggestions"), list));
  }
  return parts;
}

function otherCandidates(others) {
  const told = others.map(([candidate, number]) => element(
    "div", {},
    element("h4", {}, `Candidate ${number}: ${candidate.evaluation ? score(candidate.evaluation.score) : "no score"}`),
    candidate.answer ? element("div", {class: "answer", tabindex: "0", role: "group", "aria-label": `Candidate ${number}`}, candidate.answer) : null,
    ...judged(candidate),
  ));
  return element("details", {class: "others"}, element("summary", {}, counted(others.length, "other candidate")), ...told);
}

// Returns the calls, tokens, time and cost in one line.
export function facts({usage, cost, seconds: time}) {
  const tokens = usage && `${usage.prompt_tokens.toLocaleString("en")} tokens in, ${usage.completion_tokens.toLocaleString("en")} out`;
  return [
    usage && counted(usage.calls, "call"), tokens, time === undefined ? "" : seconds(time),
    cost === null || cost === undefined ? "" : money(cost),
  ].filter(Boolean).join(" · ");
}
