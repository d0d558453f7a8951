"""A model that answers what a test tells it to."""

import asyncio
import copy

from knotwork.adapters.llm import Completion, Usage
from knotwork.adapters.llm.middleware import Own


class Scripted(Own):
    """Answers what it is told to, in order, the last for ever; an exception is raised."""

    def __init__(self, *answers, delay=0.0, usage=None):
        self.answers = list(answers)
        self.delay = delay
        self.usage = Usage(10, 5) if usage is None else usage
        self.calls = []
        self.now = self.most = 0
        self.closed = False

    async def generate(self, prompt, **options):
        self.calls.append((prompt, options))
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.now -= 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise copy.copy(answer)
        return Completion(answer, usage=self.usage)

    async def aclose(self):
        self.closed = True
