"""One example for each public function; ``docs/generate.py`` copies them to ``docs/reference/python.md``, and a test runs them.

The line ``# %% NAMES`` begins an example and names its functions. Each example is a complete program that is run in the repository's root.
"""

# %% lwt.parse
from knotwork import lwt

script = lwt.parse('(final)=LLM("Name a colour.")')
assert [step.id for step in script.steps] == ["final"]
assert script.diagnostics == ()

# %% lwt.check
from knotwork import lwt

diagnostics = lwt.check('(final)=LLM("Describe {(colour)}.")')
assert [(each.code, each.severity) for each in diagnostics] == [("LWT012", "error")]

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
assert [each.code for each in diagnostics] == ["GASL008"]
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

# %% seed.estimate
from knotwork import seed

cafes = seed.load("docs/examples/cafes/cafes.seed.json")
estimate = seed.estimate(
    cafes, [{"name": "Harbour Roast", "reviews": [{"text": "Good coffee."}, {"text": "Good tea."}]}]
)
assert (estimate.reviews, estimate.calls) == (2, 1)

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
