// A run as the page knows it, made from the server's events or from a record of history. It touches no element.

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
    this.problem = null; // or problem JSON
    this.stopping = false;
    this.lost = false; // whether the stream broke off and is asked for again
  }

  // Makes one of a record of the history.
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

  // The round whose score is the highest so far, the first of equal ones; undefined before the first score.
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

  // Takes one event; false where it was there already (a stream that is followed again tells from the beginning).
  apply({id, name, data}) {
    const number = Number(id);
    if (number && number <= this.lastEvent) return false;
    this.lastEvent = number || this.lastEvent;
    if (data.at !== undefined) this.began = Math.min(this.began, Date.now() - data.at * 1000); // seconds since it began
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
