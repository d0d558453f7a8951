// The list of earlier runs, which are stored on the server. Runs can be opened and deleted, and older runs can be loaded.

import {byId, element, say} from "./dom.js";
import {clipped, counted, score, when} from "./words.js";

const TOLD = {running: "running", accepted: "accepted", best: "below threshold", failed: "failed", interrupted: "interrupted"};

export class History {
  // `failed(problem)` is called if the server refuses a request; `deleted(id)` is called after a run was deleted.
  constructor(api, failed, deleted) {
    this.api = api;
    this.failed = failed;
    this.deleted = deleted;
    this.runs = new Map();
    this.next = null;
    this.current = null;
    this.list = byId("runs");
    this.note = byId("history-note");
    this.older = byId("older");
    this.older.addEventListener("click", () => this.load(this.next));
  }

  // Loads the newest runs, or the runs before the id `before`.
  async load(before = null) {
    try {
      const page = await this.api.runs(before);
      if (before !== null || !this.forget(page)) this.next = page.next;
      for (const run of page.runs) this.runs.set(run.id, run);
      this.show();
    } catch (problem) {
      this.failed(problem);
    }
  }

  // Removes the runs that are no longer on the newest page (ids are sorted by time). Returns whether older runs are kept. If the page
  // does not reach the known runs, the runs in between would be missing, so all known runs are removed.
  forget(page) {
    const last = page.runs.at(-1)?.id;
    const reached = page.next !== null && this.runs.has(last);
    for (const id of [...this.runs.keys()]) if (!reached || id >= last) this.runs.delete(id);
    return reached;
  }

  mark(id) {
    this.current = id;
    for (const item of this.list.children) item.setAttribute("aria-current", String(item.dataset.id === id));
  }

  show() {
    const sorted = [...this.runs.values()].sort((one, other) => (one.id < other.id ? 1 : -1));
    const focused = document.activeElement?.closest?.("#runs li")?.dataset.id;
    const onButton = document.activeElement?.tagName === "BUTTON";
    this.list.replaceChildren(...sorted.map((run) => this.item(run)));
    say(this.note, sorted.length ? "" : "No runs yet. The server keeps runs across restarts.");
    this.older.hidden = !this.next;
    if (focused) this.list.querySelector(`[data-id="${CSS.escape(focused)}"] ${onButton ? "button" : "a"}`)?.focus();
  }

  item(run) {
    const tone = run.status === "accepted" ? "good" : run.status === "failed" ? "bad" : "";
    const status = run.stopped === "cancelled" ? "stopped" : TOLD[run.status] ?? run.status;
    const how = [run.score === null ? "" : score(run.score), run.status === "running" ? "" : counted(run.iterations, "iteration"), when(new Date(run.created))];
    const link = element(
      "a", {href: `#run=${encodeURIComponent(run.id)}`},
      element("span", {class: "what"}, clipped(run.instruct, 120)),
      element("span", {class: "how"}, element("span", {class: tone}, status), " · ", how.filter(Boolean).join(" · ")),
    );
    const item = element("li", {"data-id": run.id, "aria-current": run.id === this.current ? "true" : "false"}, link);
    if (run.status !== "running") item.append(this.bin(run));
    return item;
  }

  // Deletes a run only at the second click, because a deleted run can't be restored.
  bin(run) {
    const name = clipped(run.instruct, 60);
    const button = element("button", {type: "button", "aria-label": `Delete: ${name}`}, "Delete");
    const calm = () => {
      button.classList.remove("danger");
      say(button, "Delete");
      button.setAttribute("aria-label", `Delete: ${name}`);
    };
    button.addEventListener("blur", calm);
    button.addEventListener("click", async () => {
      if (!button.classList.contains("danger")) {
        button.classList.add("danger");
        say(button, "Really?");
        button.setAttribute("aria-label", `Really delete: ${name}`);
        return;
      }
      try {
        await this.api.remove(run.id);
      } catch (problem) {
        if (problem.status !== 404) return this.failed(problem);
      }
      this.runs.delete(run.id);
      this.show();
      byId("history-title").focus();
      this.deleted(run.id);
    });
    return button;
  }
}
