"""Typed steps on the local model: twenty questions, each answered with a value of its type."""

import asyncio

import pytest
from knotwork import lwt
from knotwork.adapters.llm.local import LocalModel

pytestmark = pytest.mark.slow

RIGHT = {
    'int, "How much is 2 + 2?"': 4,
    'int, "How many days are in a week?"': 7,
    'int, "How many legs has a dog?"': 4,
    'int, "How many months are in a year?"': 12,
    'float, "What is the value of pi, to two decimals?"': 3.14159,
    'float, "The room costs 49.50 dollars. How much does the room cost in dollars?"': 49.5,
    'bool, "Is Paris the capital of France?"': True,
    'bool, "Is ice hot?"': False,
    'bool, "Is the sun a star?"': True,
    'list, "List three animals."': ["A cat", "A dog"],
    'list, "List two fruits."': ["Bananas", "Apples"],
    '"positive" | "negative", "Is this review positive or negative? The waiter was rude and the soup was cold."': "negative",
    '"fruit" | "vehicle", "Is a banana a fruit or a vehicle?"': "fruit",
    'json, "Give the name and the age of this person as an object with the keys name and age: Anna is 31 years old."': {
        "name": "Anna",
        "age": 31,
    },
    'json, "Give the city and the country as an object with the keys city and country: Rome is in Italy."': {
        "city": "Rome",
        "country": "Italy",
    },
}
"""Maps a type and a question to the answer. Two animals are a wrong number of animals, and a list."""
FIT = (
    ("int", "In which year did the Second World War end?", int),
    ("float", "What is one half as a decimal number?", float),
    ("list", "List three colours.", list),
    ("json", "Give the product and its price as an object with the keys product and price: The lamp costs 30.", dict),
    ('"positive" | "negative"', "Is this review positive or negative? The food was wonderful.", str),
)
"""Questions whose answers have the right type and need not be right: the model is small."""


def test_twenty_typed_steps_have_values_of_their_types(model: LocalModel) -> None:
    steps = []
    for number, text in enumerate(RIGHT):
        kind, _, question = text.rpartition(', "')
        steps.append(f'(right{number})=LLM("{question}, type={kind})')
    steps += [f'(fit{number})=LLM("{question}", type={kind})' for number, (kind, question, _) in enumerate(FIT)]
    run = asyncio.run(lwt.run("\n".join(steps), llm=model, all_steps=True))
    values = {name: step.value for name, step in run.steps.items()}
    assert [values[f"right{number}"] for number in range(len(RIGHT))] == list(RIGHT.values())
    assert [type(values[f"fit{number}"]) for number in range(len(FIT))] == [each for *_, each in FIT]
