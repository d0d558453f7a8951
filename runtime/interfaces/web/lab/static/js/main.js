// Assembles the page from key, form, run and history. The run's id is in the address, so that a reload shows the same run.

import {Api, Problem} from "./api.js";
import {byId, say} from "./dom.js";
import {Form} from "./form.js";
import {History} from "./history.js";
import {Key} from "./key.js";
import {RunView} from "./run.js";

const key = new Key(() => begin());
const api = new Api(() => key.value);
const form = new Form(ask, () => form.about && view.idle(form.sensible()));
const view = new RunView(api, {
  began: (id) => {
    location.hash = `run=${id}`;
    history.mark(id);
    history.load();
  },
  over: () => {
    form.wait(false);
    history.load();
  },
  failed,
});
const history = new History(api, failed, (id) => {
  if (id === named()) location.hash = "";
});

function named() {
  return decodeURIComponent(location.hash.match(/^#run=(.+)$/)?.[1] ?? "");
}

// Handles a refused request: asks for a key if one is required; shows other problems in the run's panel.
function failed(problem) {
  form.wait(view.running);
  if (!(problem instanceof Problem)) throw problem;
  if (problem.status === 401) return locked(problem);
  view.tell(problem);
  byId("run-problem").focus();
}

function locked(problem) {
  if (key.value) key.refuse(`${problem.title}. Check the key, or ask the server's administrator`);
  else key.ask();
  if (!form.about) byId("columns").hidden = true; // the form has no choices yet
}

async function ask(request) {
  form.wait(true);
  view.tell(null);
  try {
    await view.start(request);
    byId("run-title").scrollIntoView({block: matchMedia("(max-width: 59.99rem)").matches ? "start" : "nearest"});
  } catch (problem) {
    if (problem.status === 422 || problem.status === 400) {
      form.wait(view.running);
      form.fault({...problem.body, title: problem.title});
    } else failed(problem);
  }
}

// Shows the run whose id is in the address; without an id, shows that no run is active.
async function shown() {
  const id = named();
  history.mark(id);
  if (id === (view.progress?.id ?? "")) return;
  if (!id) {
    view.leave();
    return form.wait(false);
  }
  try {
    const request = await view.open(id);
    if (request) form.fill(request);
    form.wait(view.running);
  } catch (problem) {
    failed(problem);
  }
}

async function begin() {
  byId("unreachable").hidden = true;
  let about;
  try {
    about = await api.about();
  } catch (problem) {
    if (problem.status === 401) return locked(problem);
    if (!(problem instanceof Problem)) throw problem;
    say(byId("unreachable-why"), [problem.title, problem.detail].filter(Boolean).join(". "));
    byId("unreachable").hidden = false;
    return;
  }
  const asked = !key.panel.hidden;
  key.accept();
  byId("columns").hidden = false;
  say(byId("server"), `knotwork ${about.version}`);
  form.offer(about);
  view.idle(form.sensible());
  await Promise.all([history.load(), shown()]);
  if (asked) byId("ask-title").focus();
}

byId("again").addEventListener("click", begin);
byId("rerun").addEventListener("click", () => {
  form.wait(view.running); // the run may have ended before the form was updated
  form.fill(view.progress.request);
  form.send();
});
addEventListener("hashchange", shown);
addEventListener("focus", () => form.about && history.load());
view.render();
begin();
