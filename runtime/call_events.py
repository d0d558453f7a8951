"""The events of model calls: prompts, answers and their parts, repeated requests, votes."""

from itertools import count

from attrs import frozen

from .event_stream import Event


@frozen(slots=False)
class CallStarted(Event):
    """``call.started``: a prompt is sent to a model. ``item`` is the index of the item in EACH.

    ``call`` is the number of the call in this process; a repair of an invalid answer has the number of the call that it repairs.
    ``model`` is the spec of the model, or "" if it is unknown.
    """

    name = "call.started"
    step: str
    prompt: str
    item: int | None = None
    call: int = 0
    model: str = ""


@frozen
class CallRetried(Event):
    """``call.retried``: a request is repeated. ``kind`` is retry (by the SDK), again (truncated answer), repair (invalid answer), or shown.

    If ``is_void``, the parts of the answer that ``call.delta`` has shown so far are not part of the answer. With the kind shown, no request
    is repeated: the answer differs from its parts, and the complete answer follows as one part.
    """

    name = "call.retried"
    step: str
    kind: str
    attempt: int
    reason: str
    item: int | None = None
    call: int = 0
    is_void: bool = False


@frozen
class CallDelta(Event):
    """``call.delta``: the next part of an answer, while it arrives. Emitted only for plain texts, and only if a subscriber requested it.

    The parts of a call after its last ``call.retried`` with ``is_void`` form the answer. An answer that arrives as a whole, such as one
    from the cache, is one part.
    """

    name = "call.delta"
    step: str
    text: str
    item: int | None = None
    call: int = 0


@frozen
class AnswerVoted(Event):
    """``answer.voted``: the most frequent of several samples was chosen. ``counts`` has the number of equal samples for each sample.

    ``chosen`` is the index of the sample that is the output.
    """

    name = "answer.voted"
    step: str
    samples: tuple[str, ...]
    counts: tuple[int, ...]
    chosen: int
    item: int | None = None


@frozen
class AnswerRead(Event):
    """``answer.read``: an answer was converted to the requested type, or thoughts were removed from it. ``type`` is this type,
    ``said`` the beginning of the answer (300 characters), ``output`` the value. ``how`` is the conversion: thinking, fenced, fence,
    embedded, literal, python, bracket list or coerced.
    """

    name = "answer.read"
    step: str
    type: str
    how: str
    said: str
    output: str
    item: int | None = None


@frozen(slots=False)
class CallFinished(Event):
    """``call.finished``: the model has answered, or ``error`` is the kind of error. ``attempts`` is the number of requests sent.

    ``model`` is the model that the server names, ``finish_reason`` the reason why the answer ended. ``read_as`` is how the value was
    found in the answer ("exact", a conversion of ``answer.read``, or "unfit" for an invalid answer; "" for plain text). ``repaired`` is
    true if a repair of this answer follows, with the same number ``call``. ``raw`` is everything that the model wrote, including
    its thoughts, if ``text`` is a part of it. ``estimated`` is true if the model did not report the tokens.
    """

    name = "call.finished"
    step: str
    text: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    cached: bool
    seconds: float
    error: str = ""
    item: int | None = None
    attempts: int = 1
    call: int = 0
    model: str = ""
    finish_reason: str = ""
    read_as: str = ""
    repaired: bool = False
    raw: str = ""
    estimated: bool = False


next_call = count(1).__next__
"""Returns the number of a new call."""
