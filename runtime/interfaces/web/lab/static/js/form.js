// The form for requests: its choices, its values, and its errors.

import {byId, element, say} from "./dom.js";
import {EXAMPLES} from "./examples.js";

const TEXTS = ["instruct", "resp_format", "eval_crit"];
const NUMBERS = ["iter_max", "score_threshold", "attempts", "judges"];
const SHARE = "score_threshold"; // the only number that may be fractional
const CHOICES = ["model", "template"];
const NAMES = [...TEXTS, ...NUMBERS, ...CHOICES, "checks"];

export class Form {
  // `asked(request)` is called when the form is submitted without errors; `changed()` is called when a value changes.
  constructor(asked, changed) {
    this.asked = asked;
    this.root = byId("ask-form");
    this.problem = byId("ask-problem");
    this.about = null;
    this.busy = false;
    this.root.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.send();
    });
    this.root.addEventListener("input", (event) => {
      this.unmark(event.target.name);
      changed();
    });
    this.field("model").addEventListener("change", () => this.suit());
  }

  field(name) {
    return byId(name);
  }

  // Shows the server's models, prompt templates and bounds, and an example that is suitable for its default model.
  offer(about) {
    this.about = about;
    this.field("model").replaceChildren(...about.models.map((name) => {
      const told = [name === about.default ? "default" : "", about.can_judge[name] ? "" : "can't judge"].filter(Boolean);
      return element("option", {value: name, selected: name === about.default}, told.length ? `${name} (${told.join(", ")})` : name);
    }));
    this.field("template").replaceChildren(...about.templates.map((name) => element("option", {value: name}, name)));
    for (const name of NUMBERS) {
      const {min, max, default: value} = about.bounds[name];
      const field = this.field(name);
      field.min = min;
      field.max = max;
      if (field.value === "") field.value = value;
    }
    byId("examples").replaceChildren(...EXAMPLES.map((example) => {
      const button = element("button", {type: "button"}, example.name);
      button.addEventListener("click", () => {
        this.fill({...example.request, model: this.field("model").value});
        this.suit();
        this.field("instruct").focus();
      });
      return button;
    }));
    if (TEXTS.every((name) => this.field(name).value === "")) {
      const judges = about.can_judge[about.default];
      this.fill(EXAMPLES.find((example) => judges || example.checked).request);
      this.suit(!judges);
    } else this.suit(false);
  }

  // Fills the form with the values of a request.
  fill(request) {
    this.clear();
    for (const name of TEXTS) this.field(name).value = request[name] ?? "";
    for (const name of NUMBERS) this.field(name).value = request[name] ?? this.about?.bounds[name]?.default ?? "";
    this.field("checks").value = (request.checks ?? []).join("\n");
    const models = this.about?.models ?? [];
    this.field("model").value = models.includes(request.model) ? request.model : this.about?.default ?? "";
    this.field("template").value = this.about?.templates.includes(request.template) ? request.template : "default";
    if ((request.checks ?? []).length || (request.judges ?? 1) !== 1 || (request.attempts ?? 1) !== 1) byId("more").open = true;
    this.suit(false);
    this.root.dispatchEvent(new Event("input"));
  }

  // Shows a note if the selected model can't judge. With `set`, also sets the judges to 0 and selects the brief prompt template.
  suit(set = true) {
    const note = byId("no-judge");
    const model = this.field("model").value;
    const able = !this.about || this.about.can_judge[model] !== false;
    note.hidden = able;
    if (able) {
      if (set && this.field("judges").value === "0" && !this.checks().length) this.field("judges").value = 1;
      return;
    }
    byId("more").open = true;
    if (set) {
      this.field("judges").value = 0;
      this.field("template").value = "brief";
    }
    say(note, `The model “${model}” can write, but it is too small to judge: its scores are meaningless. Use checks, and set the judges to 0.`);
  }

  checks() {
    return this.field("checks").value.split("\n").map((line) => line.trim()).filter(Boolean);
  }

  request() {
    const request = {};
    for (const name of [...TEXTS, ...CHOICES]) request[name] = this.field(name).value;
    for (const name of NUMBERS) request[name] = this.field(name).valueAsNumber;
    request.checks = this.checks();
    return request;
  }

  wait(busy) {
    this.busy = busy;
    byId("run").setAttribute("aria-disabled", String(busy)); // keeps the focus, unlike `disabled`
  }

  send() {
    if (this.busy || !this.about) return;
    const request = this.request();
    const errors = this.wrong(request);
    if (errors.length) this.fault({errors});
    else {
      this.clear();
      this.asked(request);
    }
  }

  // Finds simple errors without asking the server. The server checks the request again.
  wrong(request) {
    const errors = [];
    if (!request.instruct.trim()) errors.push({pointer: "/instruct", message: "the instruction is empty"});
    for (const name of NUMBERS) {
      const {min, max} = this.about.bounds[name];
      if (!this.fits(name, request[name])) {
        errors.push({pointer: `/${name}`, message: `must be a ${name === SHARE ? "" : "whole "}number from ${min} to ${max}`});
      }
    }
    return errors;
  }

  fits(name, value) {
    const {min, max} = this.about.bounds[name];
    return value >= min && value <= max && (name === SHARE || Number.isInteger(value));
  }

  // Returns the request for a preview. Numbers that are out of bounds are replaced by their defaults.
  sensible() {
    const request = this.request();
    for (const name of NUMBERS) if (!this.fits(name, request[name])) request[name] = this.about.bounds[name].default;
    return request;
  }

  // Shows a problem: each fault at its field, and other faults above the form. The focus moves to the first faulty field.
  fault({title, detail, errors = []}) {
    this.clear();
    const left = [];
    for (const {pointer = "", message, allowed, hint} of errors) {
      const [, name, index] = pointer.split("/");
      const more = hint ?? (typeof allowed === "string" ? allowed : "");
      const text = `${index ? `line ${Number(index) + 1}: ` : ""}${message}${more ? ` (${more})` : ""}`;
      if (NAMES.includes(name)) this.mark(name, text);
      else left.push(`${pointer.slice(1)}: ${text}`);
    }
    if (left.length || !errors.length) {
      this.problem.replaceChildren(
        element("strong", {}, title ?? "The request is not valid"), ...(errors.length ? left : [detail ?? ""]).map((text) => element("p", {}, text)),
      );
      this.problem.hidden = false;
    }
    const first = this.root.querySelector("[aria-invalid=true]");
    if (first?.closest("details")) first.closest("details").open = true;
    first?.focus();
  }

  mark(name, message) {
    this.field(name).setAttribute("aria-invalid", "true");
    const fault = byId(`${name}-fault`);
    say(fault, [fault.textContent, message.charAt(0).toUpperCase() + message.slice(1)].filter(Boolean).join("; "));
  }

  unmark(name) {
    if (!NAMES.includes(name)) return;
    this.field(name).removeAttribute("aria-invalid");
    say(byId(`${name}-fault`), "");
  }

  clear() {
    NAMES.forEach((name) => this.unmark(name));
    this.problem.hidden = true;
  }
}
