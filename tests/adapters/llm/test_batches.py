"""Batches through the real SDK against a server with OpenAI's file and batch APIs: each is submitted once, whatever is interrupted."""

import asyncio
import json

import pytest
from knotwork.adapters.llm import BadAnswer, TimedOut, Unavailable, WrongKey
from knotwork.adapters.llm.batches import BatchLine, BatchRun, BatchState, BatchUnclear, batch_files
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.openai_batches import OpenAIBatches
from knotwork.runtime.runs.journal import Journal, records
from support.batch_server import BatchServer
from support.model_requests import answer_to
from support.model_server import KEY

PROMPTS = tuple(f"call {n}" for n in range(20))


class Killed(BaseException):
    """A kill at a chosen write of the journal."""


class Book:
    """A journal; its process is killed before a record is written (an even ``kill``) or after it (odd)."""

    damage = ""

    def __init__(self, path, kill=None):
        self.journal = Journal.open(path)
        self.kill, self.at = kill, 0

    def append(self, record):
        self.reached()
        self.journal.append(record)

    def sync(self):
        self.journal.sync()
        self.reached()

    def reached(self):
        self.at += 1
        if self.at - 1 == self.kill:
            raise Killed


def read(path):
    return [record for _, record in records(path)] if path.exists() else []


def file_of(prompts=PROMPTS):
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1")
    requests = [(key := f"{n:064x}", model.batch_line(key, prompt, {})) for n, prompt in enumerate(prompts)]
    [made] = batch_files(requests, most_requests=50_000, most_bytes=1 << 20)
    return made


async def no_sleep(_):
    await asyncio.sleep(0)


def opened(server, path, kill=None, service=None):
    book = Book(path, kill)
    service = service or OpenAIBatches(api_key=KEY, base_url=server.url, max_retries=0)
    return BatchRun(service, book, "run-1", read(path), sleep=no_sleep, settled=0.0), book


async def closed(run, book):
    book.journal.close()
    await run.service.aclose()


def texts(answers):
    return {
        key: line.body["choices"][0]["message"]["content"] for key, line in answers.lines.items() if line.status == 200
    }


def test_each_answer_is_placed_by_its_key(tmp_path):
    async def main():
        server = BatchServer(
            expires=frozenset(PROMPTS[:2]), fails=frozenset(PROMPTS[2:4]), loses=frozenset(PROMPTS[4:7]), cuts=2
        )
        async with server:
            run, book = opened(server, tmp_path / "j")
            file = file_of()
            batch = await run.submit(1, file)
            state = await run.wait(batch)
            assert (state.status, state.word) == ("ended", "expired")
            answers = await run.answers(state, file.keys)
            assert texts(answers) == {file.keys[n]: answer_to(prompt) for n, prompt in enumerate(PROMPTS) if n >= 7}
            assert answers.lost == file.keys[4:7]
            assert [answers.lines[key].status for key in file.keys[:4]] == [0, 0, 500, 500]
            assert "could not be executed in time" in answers.lines[file.keys[0]].fault
            assert (await run.answers(state, file.keys[8:])).unknown == 8 - 3
            await closed(run, book)

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["", "drop"])
@pytest.mark.parametrize("kill", range(7))
def test_a_killed_submission_is_never_repeated(tmp_path, kill, fault):
    async def main():
        async with BatchServer(faults=[fault]) as server:
            run, book = opened(server, tmp_path / "j", kill)
            try:
                await run.submit(1, file_of())
            except Killed:
                assert kill < 6
            await closed(run, book)
            run, book = opened(server, tmp_path / "j")
            batch = await run.submit(1, file_of())
            assert list(server.batches) == [batch] == list(run.batches.values())
            assert server.batches[batch]["metadata"] == {"knotwork_run": "run-1", "knotwork_batch": "1"}
            again = BatchRun(run.service, book, "run-1", read(tmp_path / "j"), settled=0.0)
            assert await again.submit(1, file_of()) == batch
            assert len(server.batches) == 1
            await closed(run, book)

    asyncio.run(main())


@pytest.mark.slow
def test_the_wait_for_a_submission_that_may_not_be_listed_yet_is_announced(tmp_path):
    async def main():
        async with BatchServer(faults=["503"]) as server:
            run, book = opened(server, tmp_path / "j")
            with pytest.raises(Unavailable):
                await run.submit(1, file_of())
            told, slept = [], []

            async def sleep(seconds):
                assert told, "it waits in silence"
                slept.append(seconds)
                await asyncio.sleep(seconds)

            records = read(tmp_path / "j")
            again = BatchRun(run.service, book, "run-1", records, sleep=sleep, settled=2.0, tell=told.append)
            await again.submit(1, file_of())
            assert len(server.batches) == 1 and len(slept) == 1 and 0 < slept[0] <= 2
            (said,) = told
            assert said.startswith(
                "batch 1: its submission was interrupted, and the service does not list it yet; the list is read again in "
            )
            await closed(run, book)

    asyncio.run(main())


class Listed:
    """A service whose batches have these states, in order, and these lines."""

    def __init__(self, *words, lines=()):
        self.words, self.given, self.asked = list(words), lines, 0

    async def state(self, batch):
        self.asked += 1
        return BatchState(batch, self.words.pop(0), "")

    async def lines(self, state):
        for line in self.given:
            yield line


def test_the_state_of_a_batch_is_asked_at_once_and_then_after_growing_waits(tmp_path):
    async def main():
        service, asked = Listed("running", "running", "ended"), []

        async def sleep(seconds):
            asked.append((service.asked, seconds))

        run = BatchRun(service, Book(tmp_path / "j"), "run-1", sleep=sleep)
        await run.wait("batch-0")
        assert asked == [(1, 60.0), (2, 60.0)]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("first", "second", "chosen"), [(200, 200, 0), (500, 200, 1), (200, 500, 0), (0, 500, 1), (500, 429, 0)]
)
def test_of_two_lines_with_one_id_the_first_answer_counts(tmp_path, first, second, chosen):
    async def main():
        lines = [BatchLine("a", status, {"number": number}) for number, status in enumerate((first, second))]
        run = BatchRun(Listed(lines=lines), Book(tmp_path / "j"), "run-1")
        answers = await run.answers(BatchState("batch-0", "ended", "completed"), ["a"])
        assert (answers.lines["a"].body["number"], answers.repeated, answers.lost) == (chosen, 1, ())

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["refuse", "503"])
def test_a_submission_that_made_no_batch_is_made_when_the_run_is_resumed(tmp_path, fault):
    async def main():
        async with BatchServer(faults=[fault]) as server:
            run, book = opened(server, tmp_path / "j")
            with pytest.raises(Unavailable, match="does not list it"):
                await run.submit(1, file_of())
            assert not server.batches
            await closed(run, book)
            run, book = opened(server, tmp_path / "j")
            assert await run.submit(1, file_of()) == "batch-0"
            assert (len(server.batches), len(server.files)) == (1, 1), "the stored file is used again"
            await closed(run, book)

    asyncio.run(main())


def test_the_second_batch_of_a_run_is_another_and_a_run_does_not_take_the_batch_of_another(tmp_path):
    async def main():
        async with BatchServer() as server:
            server.batches |= {f"old-{n}": {"id": f"old-{n}", "object": "batch", "created_at": 1, "status": "completed",
                "completion_window": "24h", "endpoint": "x", "input_file_id": "x", "metadata": None} for n in range(150)}  # fmt: skip
            run, book = opened(server, tmp_path / "j")
            first, second = await run.submit(1, file_of()), await run.submit(2, file_of(PROMPTS[:3]))
            assert first != second
            assert run.batches == {1: first, 2: second}
            assert await run.service.find("run-1", 2, 0, 3) == [second]
            assert await run.service.find("run-2", 1, 0, 3) == []
            await closed(run, book)

    asyncio.run(main())


def test_other_requests_are_not_taken_for_those_that_were_submitted(tmp_path):
    async def main():
        async with BatchServer() as server:
            run, book = opened(server, tmp_path / "j")
            await run.submit(1, file_of())
            with pytest.raises(BatchUnclear, match="not those that were submitted"):
                await run.submit(1, file_of(PROMPTS[1:]))
            await closed(run, book)

    asyncio.run(main())


class Unmarked:
    """A service that stores no marks, and whose submission may be interrupted."""

    has_files, has_marks = True, False

    def __init__(self):
        self.submitted = []

    async def upload(self, name, content):
        return "file"

    async def submit(self, file, content, run, number):
        self.submitted.append(number)
        return f"b{len(self.submitted)}"

    async def find(self, run, number, since, requests):
        return None

    async def aclose(self):
        pass


def test_without_marks_the_user_decides(tmp_path):
    async def main():
        service = Unmarked()
        run, book = opened(None, tmp_path / "j", 4, service)
        with pytest.raises(Killed):
            await run.submit(1, file_of())
        await closed(run, book)
        assert service.submitted == [1]
        run, book = opened(None, tmp_path / "j", None, service)
        for _ in range(2):
            with pytest.raises(BatchUnclear, match="can't tell whether the batch exists"):
                await run.submit(1, file_of())
        assert service.submitted == [1]
        assert await run.submit(1, file_of(), batch_id="b1") == "b1"
        await closed(run, book)
        run, book = opened(None, tmp_path / "j", None, service)
        assert await run.submit(1, file_of()) == "b1"
        await closed(run, book)

    asyncio.run(main())


def test_a_lost_batch_is_submitted_again_only_if_the_user_says_so(tmp_path):
    async def main():
        service = Unmarked()
        run, book = opened(None, tmp_path / "j", 3, service)
        with pytest.raises(Killed):
            await run.submit(1, file_of())
        await closed(run, book)
        run, book = opened(None, tmp_path / "j", None, service)
        assert await run.submit(1, file_of(), is_lost=True) == "b1"
        await closed(run, book)

    asyncio.run(main())


def test_a_batch_goes_on_while_the_server_restarts(tmp_path):
    async def main():
        server = BatchServer(polls=0)
        async with server:
            run, book = opened(server, tmp_path / "j")
            batch = await run.submit(1, file_of())
        waits = []

        async def restart(seconds):
            waits.append(seconds)
            if len(waits) == 2:
                await server.__aenter__()

        run.sleep = restart
        state = await run.wait(batch)
        assert len(texts(await run.answers(state, file_of().keys))) == len(PROMPTS)
        assert waits == [60.0, 60.0]
        await server.__aexit__()
        await closed(run, book)

    asyncio.run(main())


def test_a_running_batch_can_be_cancelled_and_waiting_can_end(tmp_path):
    async def main():
        async with BatchServer(polls=1000) as server:
            run, book = opened(server, tmp_path / "j")
            batch = await run.submit(1, file_of())
            with pytest.raises(TimedOut, match="is not finished"):
                await run.wait(batch, within=0.0)
            assert await run.cancel() == (batch,)
            state = await run.wait(batch)
            assert (state.status, state.word) == ("ended", "cancelled")
            assert await run.cancel() == ()
            assert {line.status for line in (await run.answers(state, file_of().keys)).lines.values()} == {0}
            await closed(run, book)

    asyncio.run(main())


def test_a_batch_that_the_service_refuses_says_why(tmp_path):
    async def main():
        async with BatchServer(invalid=f"line 3 is invalid for {KEY}") as server:
            run, book = opened(server, tmp_path / "j")
            state = await run.wait(await run.submit(1, file_of()))
            assert state == BatchState("batch-0", "failed", "failed", (), "line 3 is invalid for ***")
            await closed(run, book)

    asyncio.run(main())


def test_without_a_journal_nothing_is_submitted(tmp_path):
    async def main():
        async with BatchServer() as server:
            run, book = opened(server, tmp_path / "j")
            book.damage = "the disk is full"
            with pytest.raises(Unavailable, match="without a journal: the disk is full"):
                await run.submit(1, file_of())
            assert (server.files, server.batches) == ({}, {})
            await closed(run, book)

    asyncio.run(main())


def test_errors_are_those_of_the_port_and_do_not_show_the_key(tmp_path):
    async def main():
        async with BatchServer(faults=["401"]) as server:
            service = OpenAIBatches(api_key=KEY, base_url=server.url, max_retries=0)
            with pytest.raises(WrongKey) as caught:
                await service.submit("file-0", b"", "run-1", 1)
            assert "***" in str(caught.value)
            assert (
                KEY not in f"{caught.value!r} {caught.value.args} {caught.value.__cause__} {caught.value.__context__}"
            )
            await service.aclose()

    asyncio.run(main())


def test_what_the_environment_says_for_openai_does_not_reach_another_service(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: other")

    async def main():
        async with BatchServer() as server:
            service = OpenAIBatches(api_key=KEY, base_url=server.url)
            await service.upload("x.jsonl", b"{}\n")
            await service.aclose()
            [headers] = server.headers
            assert "org-secret" not in str(headers)
            assert "x-secret" not in headers
            assert headers["authorization"] == f"Bearer {KEY}"

    asyncio.run(main())


@pytest.mark.parametrize(
    "line", [b"[]", b"{}", b'{"custom_id": "a", "response": 7}', b"no json", b'{"custom_id": "a", "custom_id": "b"}']
)
def test_a_line_that_is_no_answer_is_an_error(line):
    async def main():
        async with BatchServer(files={"file-0": line}) as server:
            service = OpenAIBatches(api_key=KEY, base_url=server.url)
            with pytest.raises(BadAnswer, match="is not an answer"):
                [each async for each in service.lines(BatchState("b", "ended", "completed", ("file-0",)))]
            await service.aclose()

    asyncio.run(main())


def test_files_keep_to_the_limits_of_the_service():
    requests = [(f"k{n}", {"custom_id": f"k{n}", "body": "x" * 50}) for n in range(10)]
    size = len(json.dumps(requests[0][1], separators=(",", ":"))) + 1
    files = list(batch_files(requests, most_requests=4, most_bytes=3 * size))
    assert [len(file.keys) for file in files] == [3, 3, 3, 1]
    assert [len(file.keys) for file in batch_files(requests, most_requests=4, most_bytes=1 << 20)] == [4, 4, 2]
    assert all(file.content.count(b"\n") == len(file.keys) for file in files)
    with pytest.raises(ValueError, match="at most 10"):
        list(batch_files(requests, most_requests=4, most_bytes=10))
    with pytest.raises(ValueError, match="occurs twice"):
        list(batch_files([*requests, requests[0]], most_requests=4, most_bytes=1 << 20))
    assert BatchLine("a", 0).body == {}
