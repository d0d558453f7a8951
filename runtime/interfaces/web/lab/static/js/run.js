// The view of a run: starts or opens a run, follows it until its end, and shows its progress.

import {Problem} from "./api.js";
import {chart, legend} from "./chart.js";
import {byId, element, say} from "./dom.js";
import {outcome} from "./outcome.js";
import {Progress} from "./progress.js";
import {Card, facts} from "./rounds.js";
import {events} from "./sse.js";
import {clipped, seconds} from "./words.js";

const PATIENCE = [500, 1000, 2000, 4000, 8000, 8000]; // milliseconds before a lost stream is requested again

const SOON = new Set([429, 502, 503, 504]); // the server, or a proxy, is temporarily unavailable

const wait = (time) => new Promise((done) => setTimeout(done, time));

export class RunView {
  // `began(id)` is called when a run has an id, `over()` when it has ended, `failed(problem)` if the server refuses a request.
  constructor(api, {began, over, failed}) {
    Object.assign(this, {api, began, over, failed});
    this.progress = null;
    this.preview = null;
    this.cards = [];
    this.stop = byId("stop");
    this.stop.addEventListener("click", () => this.cancel());
    byId("show").addEventListener("click", () => this.showAnswer());
    byId("copy").addEventListener("click", () => this.copy());
    byId("copy").hidden = !navigator.clipboard; // only available in secure contexts
    new ResizeObserver(() => this.draw()).observe(byId("chart"));
    setInterval(() => this.tick(), 100);
  }

  get running() {
    return this.progress !== null && !this.progress.over;
  }

  // Shows that no run is active, with an empty chart for `request`, the current values of the form.
  idle(request) {
    this.preview = new Progress(request);
    if (!this.progress) this.render();
  }

  leave() {
    this.opening = null;
    this.aborting?.abort();
    this.progress = null;
    this.reset();
  }

  reset() {
    this.cards = [];
    byId("rounds").replaceChildren();
    this.tell(null);
    this.render();
  }

  take(progress) {
    this.aborting?.abort();
    this.aborting = new AbortController();
    this.progress = progress;
    this.reset();
    return this.aborting.signal;
  }

  // Starts a run. Raises `Problem` if the server refuses it; the page then stays unchanged.
  async start(request) {
    const aborting = new AbortController();
    const response = await this.api.start(request, aborting.signal);
    const progress = new Progress(request);
    this.opening = null;
    this.take(progress);
    this.aborting = aborting;
    this.follow(progress, response, aborting.signal);
  }

  // Shows a run from the history and returns its request; null if another run was opened in the meantime. Raises `Problem` if the
  // id is unknown.
  async open(id) {
    this.opening = id;
    const record = await this.api.run(id);
    if (this.opening !== id) return null;
    const progress = Progress.of(record);
    const signal = this.take(progress);
    if (!progress.over) this.follow(progress, null, signal);
    else this.fold();
    return record.request;
  }

  async follow(progress, response, signal) {
    for (let lost = 0; !progress.over; lost++) {
      try {
        response ??= await this.api.follow(progress.id, progress.lastEvent, signal);
        progress.lost = false;
        if (response.status === 204) progress.finish("result", (await this.api.run(progress.id)).result); // all events were already received
        else for await (const event of events(response)) lost = this.hear(progress, event);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem && error.status && !SOON.has(error.status)) return this.refused(progress, error);
        if (!(error instanceof Problem || error instanceof TypeError)) throw error; // a TypeError means an interrupted body
      }
      if (signal.aborted || progress.over) {
        this.render();
        break;
      }
      response = null;
      progress.lost = true;
      if (!progress.id || lost >= PATIENCE.length) {
        progress.finish("problem", {title: "The connection was lost", detail: "The run may continue. It appears in the list of earlier runs when the server responds again."});
        this.render();
        break;
      }
      this.render();
      await wait(PATIENCE[lost]);
    }
    if (!signal.aborted) this.over();
  }

  // Handles a run that can no longer be followed, because it was deleted or the key became invalid.
  refused(progress, problem) {
    progress.finish("problem", {title: problem.title, detail: problem.detail});
    this.render();
    this.over();
    this.failed(problem);
  }

  // Processes an event of the current run. Returns 0, the number of times that the stream was lost since then.
  hear(progress, event) {
    if (progress !== this.progress || !progress.apply(event)) return 0;
    if (event.name === "run") this.began(progress.id);
    if (event.name === "gap") this.catchUp(progress);
    this.render();
    return 0;
  }

  // Loads the finished iterations from the record, because the stream omitted events.
  async catchUp(progress) {
    const record = await this.api.run(progress.id).catch(() => null);
    record?.result.iterations.forEach((iteration) => progress.finished(iteration));
    if (progress === this.progress) this.render();
  }

  async cancel() {
    if (!this.running || this.progress.stopping) return;
    const progress = this.progress;
    progress.stopping = true;
    this.render();
    try {
      await this.api.cancel(progress.id);
    } catch (problem) {
      progress.stopping = false;
      if (problem.status !== 409 && problem.status !== 404) this.failed(problem); // the run has already ended
      this.render();
    }
  }

  // Shows a problem that is not shown elsewhere. `null` removes it.
  tell(problem) {
    const box = byId("run-problem");
    box.hidden = problem === null;
    if (problem === null) return box.replaceChildren();
    box.replaceChildren(element("strong", {}, problem.title), ...(problem.detail ? [element("p", {}, problem.detail)] : []));
  }

  render() {
    const progress = this.progress;
    const {text, tone, problem} = outcome(progress);
    const state = byId("state");
    say(state, text);
    state.className = `state ${tone}`;
    say(byId("asked"), progress ? clipped(progress.request.instruct, 300) : "Choose an example or write an instruction, then press Run.");
    if (problem) this.tell(problem);
    const focused = document.activeElement === this.stop;
    this.stop.hidden = !this.running;
    if (focused && this.stop.hidden) byId("run-title").focus();
    this.stop.setAttribute("aria-disabled", String(!progress?.id || progress.stopping));
    byId("rerun").hidden = !progress?.over;
    byId("final").hidden = !progress || (progress.over && !progress.best);
    for (const id of ["show", "copy"]) byId(id).setAttribute("aria-disabled", String(!progress?.best));
    say(byId("total"), progress?.result ? facts({...progress.result.metadata, seconds: undefined}) : "");
    this.warn(progress?.warnings ?? []);
    this.showRounds(progress);
    this.draw();
    this.tick();
    document.title = this.running ? `${progress.rounds.length || 1}/${progress.iterMax} · Lab · knotwork` : "Lab · knotwork";
  }

  showRounds(progress) {
    byId("empty").hidden = Boolean(progress?.rounds.length || progress?.over);
    for (const round of progress?.rounds ?? []) {
      let card = this.cards[round.number - 1];
      if (!card) {
        card = this.cards[round.number - 1] = new Card(round.number);
        byId("rounds").append(card.root);
      }
      const before = progress.rounds.slice(0, round.number - 1).findLast((other) => other.answers[0]);
      card.update(round, before, progress);
    }
  }

  // If a finished run is opened, expand the iteration with the answer and collapse the other iterations.
  fold() {
    const best = this.progress.best;
    if (!best) return;
    for (const card of this.cards) card.details.open = card.number === best.number;
  }

  warn(warnings) {
    const list = byId("warnings");
    list.hidden = !warnings.length;
    if (list.childElementCount !== warnings.length) list.replaceChildren(...warnings.map((text) => element("li", {}, text)));
  }

  draw() {
    const shown = this.progress ?? this.preview;
    const place = byId("chart");
    if (!shown || !place.clientWidth) return;
    place.replaceChildren(chart(shown, place.clientWidth, place.clientHeight));
    byId("legend").replaceChildren(...legend(shown));
  }

  tick() {
    const progress = this.progress;
    say(byId("elapsed"), progress ? seconds(Math.max(0, progress.seconds)) : "");
  }

  showAnswer() {
    if (!this.progress?.best) return;
    const card = this.cards[this.progress.best.number - 1];
    card.details.open = true;
    card.turn(false);
    card.root.scrollIntoView({block: "start"});
    card.answer.focus({preventScroll: true});
  }

  async copy() {
    if (!this.progress?.best) return;
    try {
      await navigator.clipboard.writeText(this.progress.best.answers[0]);
      say(byId("copied"), "Copied");
    } catch {
      say(byId("copied"), "The browser does not allow copying");
    }
    await wait(2000);
    say(byId("copied"), "");
  }
}
