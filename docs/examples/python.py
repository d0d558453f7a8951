"""One example for each public function; ``docs/generate.py`` copies them to ``docs/reference/python.md``, and a test runs them.

The line ``# %% NAMES`` begins an example and names its functions. Each example is a complete program that is run in the repository's root.
"""

# %% lwt.load
import tempfile
from pathlib import Path

from knotwork import lwt

with tempfile.TemporaryDirectory() as folder:
    Path(folder, "colour.txt").write_text("Name a colour.")
    Path(folder, "colour.lwt").write_text('(final)=LLM(file="colour.txt")')
    script = lwt.load(Path(folder, "colour.lwt"))
    assert lwt.check(script) == []

# %% lwt.parse
from knotwork import lwt

script = lwt.parse('(final)=LLM("Name a colour.")')
assert [step.id for step in script.steps] == ["final"]
assert script.diagnostics == ()

# %% lwt.check
from knotwork import lwt

diagnostics = lwt.check('(final)=LLM("Describe {(colour)}.")')
assert [(each.code, each.severity) for each in diagnostics] == [("LWT012", "error")]

# With the functions and operations that the host of the run offers:
assert lwt.check('(final)=CALL("price", text={(input)})', functions=["price"]) == []
assert [each.code for each in lwt.check('(final)=CALL("prize")', functions=["price"])] == ["LWT048"]

# %% lwt.format
from knotwork import lwt

assert lwt.format('(final) = LLM( "Name a colour." )') == '(final)=LLM("Name a colour.")\n'

# %% lwt.run, lwt.run_sync
from knotwork import lwt


class Model:
    async def generate(self, prompt, **options):
        return "green" if "colour" in prompt else "grass"


script = """
(colour)=LLM("Name a colour.")
(final)=LLM("Name a plant that is {(colour)}.")
"""
run = lwt.run_sync(script, llm=Model(), max_calls=10)  # in async code: await lwt.run(...)
assert (run.status, run.output) == ("complete", "grass")
assert run.steps["colour"].output == "green"

events, parts = lwt.Events(), []
events.subscribe(lambda event: parts.append(event.text) if event.name == "call.delta" else None)
events.stream_answers(["final"])  # the parts of this step's answer, while it arrives
run = lwt.run_sync(script, llm=Model(), events=events)
assert "".join(parts) == "grass"

# %% lwt.run_each, lwt.run_each_sync
from knotwork import lwt


class Model:
    async def generate(self, prompt, **options):
        return '{"stars": 2}' if "Cold" in prompt else '{"stars": 5}'


rows = [{"id": 7, "text": "Cold soup."}, {"id": 8, "text": "Great soup."}]  # or a data frame, "reviews.parquet", ...
script = """(final)=LLM('Rate this: {(input)}["text"]', type=json)"""
run = lwt.run_each_sync(script, rows, llm=Model(), max_calls=10)  # in async code: await lwt.run_each(...)
assert (run.status, run.totals.calls) == ("complete", 2)
assert [(row["id"], row["final.stars"]) for row in run.table] == [(7, 2), (8, 5)]

# %% lwt.run_cases, lwt.run_cases_sync
from knotwork import lwt

# mood.cases.jsonl has the test cases of mood.lwt
report = lwt.run_cases_sync(
    "docs/examples/cases/mood.lwt", llm="replay:docs/examples/cases/mood.jsonl"
)  # in async code: await lwt.run_cases(...)
assert report.passed
assert (report.results[0].name, report.results[0].status) == ("cold soup is sad", "passed")

# %% lwt.import_file
import json
import tempfile
from pathlib import Path

from knotwork import lwt

folder = Path(tempfile.mkdtemp())
prompt = {
    "_type": "prompt",
    "input_variables": ["dish"],
    "template": "Describe {dish}.",
    "output_parser": {"_type": "x"},
}
(folder / "describe.json").write_text(json.dumps(prompt))  # a prompt of LangChain; also promptfoo and DSPy
found = lwt.import_file(folder / "describe.json")
assert found.scripts[0].text == '(final)=LLM("Describe {(input)}["dish"].")\n'
assert found.left_out == ("output_parser: it has no equivalent",)
assert [path.name for path in found.write(folder)] == ["describe.lwt"]

# %% lwt.run_stream, lwt.run_stream_sync
from knotwork import lwt


class Model:
    async def generate(self, prompt, **options):
        return "green"


arriving = ['(colour)=LLM("Name a co', 'lour.")\n(final)=LLM("Name ', 'a plant that is {(colour)}.")']
run = lwt.run_stream_sync(arriving, llm=Model())  # in async code: await lwt.run_stream(...)
assert run.status == "complete"

# %% lwt.resume, lwt.resume_sync
from knotwork import lwt


class Model:
    async def generate(self, prompt, **options):
        return "green"


run = lwt.run_sync('(final)=LLM("Name a colour.")', llm=Model(), record=True)
again = lwt.resume_sync(run.run_id, llm=Model())  # in async code: await lwt.resume(...)
assert again.steps["final"].reused

# %% gasl.parse
from knotwork import gasl

program = gasl.parse("FIND nodes WHERE degree > 20 AS hubs")
assert program.diagnostics == ()
assert len(program.statements) == 1

# %% gasl.parse_condition
from knotwork import gasl

condition = gasl.parse_condition("degree > 20")
assert condition.matches({"degree": 36}) is True
assert condition.matches({}) is None  # unknown

# %% gasl.check
from knotwork import gasl

diagnostics = gasl.check("FIND nodes WHERE degree > AS hubs")
assert [each.code for each in diagnostics] == ["GASL010"]
print(diagnostics[0].hints)

# %% gasl.format
from knotwork import gasl

assert gasl.format("find nodes where degree>20 as hubs") == "FIND nodes WHERE degree > 20 AS hubs\n"

# %% gasl.open
from knotwork import gasl

with gasl.open("nx:les_miserables") as executor:
    record = executor.execute_one("FIND nodes WHERE degree > 20 AS hubs")
assert record.status == "success"
assert [node["id"] for node in record.value] == ["Valjean", "Gavroche"]

# %% gasl.run_plan, gasl.plan_status
from knotwork import gasl

plan = """
DECLARE hubs AS LIST
FIND nodes WHERE degree > 20 AS found
UPDATE hubs WITH found
"""
records = gasl.run_plan(plan, "nx:les_miserables")
assert [record.status for record in records] == ["success"] * 3
assert gasl.plan_status(records) == "success"

# %% gasl.areplay, gasl.replay
import tempfile

from knotwork import gasl

with tempfile.TemporaryDirectory() as folder:
    gasl.run_plan("FIND nodes WHERE degree > 20 AS hubs", "nx:les_miserables", state=folder)
    verdict = gasl.replay(folder, "nx:les_miserables")  # in async code: await gasl.areplay(...)
assert verdict.identical

# %% seed.load, seed.convert
from knotwork import seed

cafes = seed.load("docs/examples/cafes/cafes.seed.json")
assert cafes.outputs == ("N", "SHARE", "SCORE", "VERDICT")
assert seed.convert(cafes).document["task_name"] == "coffee"

# %% seed.check
from knotwork import seed

diagnostics = seed.check("docs/examples/cafes/faulty.seed.json")
assert any(each.severity == "error" for each in diagnostics)

# %% seed.run, seed.run_sync
from knotwork import seed


class Model:
    async def generate(self, prompt, **options):
        return '{"sentiment": "positive"}'


cafes = seed.load("docs/examples/cafes/cafes.seed.json")
context = {
    "name": "Harbour Roast",
    "categories": ["Roastery"],
    "reviews": [{"text": "Good coffee.", "date": "2025-03-02"}],
}
result = seed.run_sync(cafes, context, llm=Model())  # in async code: await seed.run(...)
assert result.status == "complete"
assert result.outputs["VERDICT"] == "go for the coffee"

# %% seed.run_many, seed.run_many_sync
from knotwork import seed


class Model:
    async def generate(self, prompt, **options):
        return '{"sentiment": "negative"}' if "cold" in prompt else '{"sentiment": "positive"}'


cafes = seed.load("docs/examples/cafes/cafes.seed.json")
contexts = [{"name": name, "reviews": [{"text": f"The coffee was {name}."}]} for name in ("hot", "cold")]
results = seed.run_many_sync(cafes, contexts, llm=Model())  # in async code: async for result in seed.run_many(...)
assert [result.outputs["SHARE"] for result in results] == [1.0, 0.0]

# %% seed.contexts
from knotwork import seed

rows = [
    {"cafe": "Luna", "body": "Loud.", "rating": 2},
    {"cafe": "Sol", "body": "Quiet."},
    {"cafe": "Luna", "body": "Cold."},
]
contexts = seed.contexts(
    rows, group="cafe", text="body", columns={"stars": "rating"}
)  # or a data frame, "reviews.parquet", ...
luna, sol = contexts
assert luna["name"] == "Luna"
assert [review["text"] for review in luna["reviews"]] == ["Loud.", "Cold."]

# %% seed.collect, seed.collect_sync, seed.export
import os
import tempfile
from pathlib import Path

from knotwork import seed


class Model:
    async def generate(self, prompt, **options):
        return '{"sentiment": "positive"}'


cafes = seed.load("docs/examples/cafes/cafes.seed.json")
rows = [
    {"cafe": "Luna", "text": "Good coffee.", "categories": ["Roastery"]},
    {"cafe": "Sol", "text": "Good tea and coffee.", "categories": []},
]
os.environ["KNOTWORK_HOME"] = home = tempfile.mkdtemp()
contexts = seed.contexts(rows, group="cafe")
results = seed.collect_sync(cafes, contexts, llm=Model(), record=True)  # in async code: await seed.collect(...)
assert [row["VERDICT"] for row in results.to_dicts()] == ["go for the coffee", "go for the coffee"]
assert [row["sentiment"] for row in results.extractions] == ["positive", "positive"]
results.to_csv(Path(home) / "verdicts.csv")

(run,) = Path(home, "runs").iterdir()  # the stored run; it may also be under way
assert seed.export(run, Path(home) / "results.jsonl", extractions=Path(home) / "extractions.csv") == 2

# %% seed.merge
import os
import tempfile
from pathlib import Path

from knotwork import seed


class Model:
    async def generate(self, prompt, **options):
        return '{"sentiment": "positive"}'


cafes = seed.load("docs/examples/cafes/cafes.seed.json")
rows = [{"cafe": name, "text": "Good coffee.", "categories": []} for name in ("Luna", "Sol", "Mare")]
os.environ["KNOTWORK_HOME"] = home = tempfile.mkdtemp()
for shard in ("1/2", "2/2"):  # on two machines
    contexts = seed.contexts(rows, group="cafe", shard=shard)
    seed.collect_sync(cafes, contexts, llm=Model(), record=True)
made = seed.merge(list(Path(home, "runs").iterdir()), Path(home) / "all.csv")
assert (made.results, made.is_complete) == (3, True)

# %% seed.estimate
from knotwork import seed

cafes = seed.load("docs/examples/cafes/cafes.seed.json")
estimate = seed.estimate(
    cafes, [{"name": "Harbour Roast", "reviews": [{"text": "Good coffee."}, {"text": "Good tea."}]}]
)
assert (estimate.reviews, estimate.calls) == (2, 1)

# %% seed.measure, seed.measure_sync
from knotwork import seed
from knotwork.adapters.llm import Completion, Usage


class Model:
    async def generate(self, prompt, **options):
        return Completion('{"sentiment": "positive"}', usage=Usage(120, 40))


cafes = seed.load("docs/examples/cafes/cafes.seed.json")
reviews = [{"text": f"Coffee number {number}."} for number in range(200)]
estimate = seed.measure_sync(
    cafes, [{"name": "Cafe Luna", "reviews": reviews}], llm=Model(), sample=20, price=(0.25, 2)
)  # in async code: await seed.measure(...)
assert (estimate.sample.calls, estimate.sample.usage) == (20, Usage(2_400, 800))  # paid
assert round(estimate.sample.total_cost.value, 3) == 0.022  # US dollars for all 200 reviews

# %% seed.tune, seed.tune_sync
from knotwork import seed


class Model:
    """Takes irony at its word, unless the prompt has an example of it."""

    async def generate(self, prompt, **options):
        is_ironic = "cold" in prompt.rsplit("cup", 1)[1]
        return '{"mood": "bad"}' if is_ironic and "Example" in prompt else '{"mood": "good"}'


document = {"extract": {"fields": [{"name": "mood", "values": ["good", "bad"]}]}}
texts = ["a great cup, and warm" if number % 2 else "a great cup, cold again" for number in range(80)]
contexts = [{"name": f"cafe {number}", "reviews": [{"text": text}]} for number, text in enumerate(texts)]
gold = [{"context": f"cafe {number}", "mood": "good" if number % 2 else "bad"} for number in range(80)]
tuned = seed.tune_sync(
    document, gold, contexts=contexts, llm=Model(), writer="none"
)  # in async code: await seed.tune(...)
assert tuned.verdict == "better" and len(tuned.seed.examples) == 2

# %% seed.compute
from knotwork import seed

cafes = seed.load("docs/examples/cafes/cafes.seed.json")
rows = [{"extraction": {"sentiment": "positive"}, "meta": {"year": 2025}}]
result = seed.compute(cafes, extractions=rows, context={"categories": ["Bakery"]})
assert result.outputs["SHARE"] == 1.0

# %% seed.read_results, seed.explain, seed.sensitivity
from pathlib import Path

from knotwork import seed

cafes = seed.load("docs/examples/cafes/cafes.seed.json")
context = {"categories": ["Roastery"]}
result = seed.read_results(Path("docs/examples/cafes/results.jsonl").read_text())[0]
explanation = seed.explain(cafes, result, context, "VERDICT")
assert explanation.steps[0].rule == "rule 1 of 2 is true: SCORE is at least 0.7"
changes = seed.sensitivity(cafes, result, context).flips
assert changes[0].outputs[0].after == "take your chance"

# %% seed.compile, seed.compile_sync
from pathlib import Path

from knotwork import seed

task = Path("docs/examples/compile/allergy.md").read_text()
compiled = seed.compile_sync(
    task, "replay:docs/examples/compile/allergy.jsonl"
)  # in async code: await seed.compile(...)
assert compiled.status == "done"
assert [each.code for each in seed.check(compiled.seed)] == ["SEED056"]  # a warning

# %% expr.parse, expr.format
from knotwork import expr

read = expr.parse("n>1 and  m>1")
assert read.diagnostics == ()
assert expr.format(read.expr) == "n > 1 and m > 1"

# %% expr.check
from knotwork import expr

diagnostics = expr.check("n_modrate + 1", names=["n_moderate"])
assert diagnostics[0].hints == ("did you mean `n_moderate`?",)

# %% expr.evaluate
from knotwork import expr

assert expr.evaluate("round(total / n, 2)", {"total": 10, "n": 3}) == 3.33

# %% expr.compile
from knotwork import expr

score = expr.compile("clamp(0.1 * n, 0, 1)")
assert [score({"n": n}) for n in (5, 30)] == [0.5, 1]

# %% answers.generate_answer, answers.generate_answer_sync
from knotwork import answers


class Model:
    async def generate(self, prompt, **options):
        return "The moon pulls at the sea."


result = answers.generate_answer_sync("What makes the tides?", model=Model(), checks=["contains:moon"], judges=0)
assert result.success  # in async code: await answers.generate_answer(...)
assert result.final_answer == "The moon pulls at the sea."

# %% answers.read_check
from knotwork import answers

assert answers.read_check("words:1..50").name == "words:1..50"
try:
    answers.read_check("words:many")
except answers.RequestError as error:
    print(error)

# %% answers.read_templates
from pathlib import Path

from knotwork import answers

templates = answers.read_templates(Path("docs/examples/answers/templates.json"))
assert list(templates) == ["letter"]

# %% planner.rank, planner.rank_sync
import json
from pathlib import Path

from knotwork import planner

cafes = json.loads(Path("docs/examples/rank/cafes.json").read_text())
model = "replay:docs/examples/rank/answers.jsonl"
ranked = planner.rank_sync(cafes, "somewhere with a drive-thru", model)  # in async code: await planner.rank(...)
assert ranked.names == ("Milkcrate Cafe", "Good Karma Cafe", "Function Coffee Labs")

# %% planner.rank_many, planner.rank_many_sync
from pathlib import Path

from knotwork import planner

requests = ["somewhere with a drive-thru", "a cafe where the coffee is hot"]
model = "replay:docs/examples/rank/answers.jsonl"
ranked = planner.rank_many_sync(Path("docs/examples/rank/cafes.json"), requests, model)
assert [each.names[0] for each in ranked] == ["Milkcrate Cafe", "Hungry Pigeon"]

# %% ask.ask, ask.ask_sync
from knotwork.runtime.api.ask import ask_sync

asked = ask_sync("nx:les_miserables", "Which two share the most scenes?", llm="replay:docs/examples/ask/closest.jsonl")
assert asked.status == "complete"  # in async code: await knotwork.ask(...)
assert asked.answer == "Valjean and Cosette, who share 31 scenes."

# %% evals.diff_runs
import os
import tempfile

from knotwork import evals, lwt


class Model:
    async def generate(self, prompt, **options):
        return "green" if "nice" in prompt else "blue"


os.environ["KNOTWORK_HOME"] = tempfile.mkdtemp()
before = lwt.run_sync('(a)=LLM("Name a colour.")', llm=Model(), record=True)
after = lwt.run_sync('(a)=LLM("Name a nice colour.")', llm=Model(), record=True)
found = evals.diff_runs(before.run_id, after.run_id)  # ids or folders
(step,) = found.steps
assert (step.prompt, step.answer) == ("changed", "changed")
assert (step.before, step.after) == ("blue", "green")

# %% evals.run, evals.run_sync
from knotwork import evals

folder = "docs/examples/eval"
candidates = {"careful": f"replay:{folder}/careful.jsonl", "hasty": f"replay:{folder}/hasty.jsonl"}
report = evals.run_sync(
    f"{folder}/rating.seed.json",
    f"{folder}/gold.csv",
    contexts=f"{folder}/reviews.jsonl",
    group="product",
    text="body",
    candidates=candidates,
    require=["rating.accuracy >= 0.9"],
)  # in async code: await evals.run(...)
assert report.passed and round(report["careful"].rating.accuracy.value, 3) == 0.917
assert report.compare("careful", "hasty").rating.accuracy.verdict == "no difference shown"  # 12 items are few

# %% evals.dry_run
from knotwork import evals

folder = "docs/examples/eval"
table = {"contexts": f"{folder}/reviews.jsonl", "group": "product", "text": "body"}
cascade = {"llm": "openai:small", "options": {"escalate": "openai:large"}}
estimate = evals.dry_run(
    f"{folder}/rating.seed.json", f"{folder}/gold.csv", **table, candidates={"cascade": cascade}, price=(0.25, 2)
)
assert (estimate.items, estimate.calls, estimate.calls_at_most) == (12, 12, 24)
assert [each.model for each in estimate.candidates["cascade"].models] == ["openai:small", "openai:large"]

# %% evals.read
from knotwork import evals

document = evals.read("docs/examples/eval/rating.eval.json")
assert document["target"] == "rating.seed.json" and list(document["candidates"]) == ["careful", "hasty"]

# %% evals.to_html
from knotwork import evals

report = evals.run_sync("docs/examples/eval/rating.eval.json")
assert "Evaluation of rating.seed.json" in evals.to_html(report)  # also: report.to_html("eval.html")

# %% traces.start, traces.remote_parent
from knotwork import lwt, traces
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Model:
    async def generate(self, prompt, **options):
        return "green"


exporter = InMemorySpanExporter()  # without exporter=, spans go to the collector at OTEL_EXPORTER_OTLP_ENDPOINT
events = lwt.Events()
with traces.start(exporter=exporter) as exported:  # or traces.start("http://localhost:4318")
    exported.subscribe(events)
    with traces.remote_parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"):
        lwt.run_sync('(final)=LLM("Name a colour.")', llm=Model(), events=events)
spans = exporter.get_finished_spans()
assert [span.name for span in spans] == ["chat", "knotwork.step", "knotwork.run"]
assert f"{spans[0].context.trace_id:x}" == "4bf92f3577b34da6a3ce929d0e0e4736"
assert exported.stop().sent == 3
