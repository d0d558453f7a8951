// The data of a run, from the server's events or from a record of the history. It does not access the page's elements.

const OVER = new Set(["result", "problem"]);

export class Progress {
  constructor(request) {
    this.request = request;
    this.id = null;
    this.iterMax = request.iter_max ?? 3;
    this.threshold = request.score_threshold ?? 0.8;
    this.began = Date.now();
    this.lastEvent = 0;
    this.rounds = [];
    this.warnings = [];
    this.result = null; // the response
    this.problem = null; // the problem document
    this.stopping = false;
    this.lost = false; // whether the stream was interrupted and is requested again
  }

  // Returns the progress for a record of the history.
  static of(record) {
    const progress = new Progress(record.request);
    progress.id = record.id;
    progress.began -= record.seconds * 1000;
    if (record.status === "running") record.result.iterations.forEach((iteration) => progress.finished(iteration));
    else progress.finish("result", record.result);
    return progress;
  }

  get over() {
    return this.result !== null || this.problem !== null;
  }

  // The round with the highest score so far (the first such round); undefined before the first score.
  get best() {
    const chosen = this.result?.metadata?.best_iteration;
    if (chosen) return this.rounds[chosen - 1];
    let best;
    for (const round of this.rounds) if (round.score !== null && (!best || round.score > best.score)) best = round;
    return best;
  }

  get accepted() {
    return Boolean(this.best && this.best.score >= this.threshold);
  }

  get seconds() {
    return this.result?.metadata?.seconds ?? this.problem?.metadata?.seconds ?? (Date.now() - this.began) / 1000;
  }

  // Processes one event. Returns false if it is already known, because a stream that is requested again may repeat events.
  apply({id, name, data}) {
    const number = Number(id);
    if (number && number <= this.lastEvent) return false;
    this.lastEvent = number || this.lastEvent;
    if (data.at !== undefined) this.began = Math.min(this.began, Date.now() - data.at * 1000); // seconds since the start
    if (OVER.has(name)) this.finish(name, data);
    else HANDLED[name]?.(this, data);
    return true;
  }

  finish(name, data) {
    this[name] = data;
    const iterations = data.iterations ?? [];
    iterations.forEach((iteration) => this.finished(iteration));
    for (const message of data.metadata?.warnings ?? []) this.warn(message);
    for (const round of this.rounds) if (round.state !== "done") round.state = "left";
  }

  warn(message) {
    if (!this.warnings.includes(message)) this.warnings.push(message);
  }

  round(number) {
    while (this.rounds.length < number) {
      this.rounds.push({number: this.rounds.length + 1, state: "writing", answers: [], score: null, result: null, note: ""});
    }
    return this.rounds[number - 1];
  }

  finished(iteration) {
    const round = this.round(iteration.iteration_number);
    round.state = "done";
    round.note = "";
    round.result = iteration;
    round.score = iteration.evaluation?.score ?? null;
    round.answers = [iteration.answer];
  }
}

const HANDLED = {
  "run": (run, data) => {
    run.id = data.run;
  },
  "answer.started": (run, data) => {
    run.iterMax = data.iter_max;
    run.threshold = data.score_threshold;
  },
  "iteration.started": (run, data) => {
    run.round(data.iteration);
  },
  "candidate.written": (run, data) => {
    const round = run.round(data.iteration);
    round.answers[data.candidate] = data.answer;
    round.state = "judging";
    round.note = "";
  },
  "call.retried": (run, data) => {
    const round = run.rounds.at(-1);
    if (round) round.note = `asked again: ${data.reason}`;
  },
  "iteration.finished": (run, data) => {
    run.finished(data.result);
  },
  "warning": (run, data) => {
    run.warn(data.message);
  },
  "budget.reached": (run, data) => {
    run.warn(data.message);
  },
};
