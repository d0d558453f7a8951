"""Keys: made once, kept as hashes, compared in constant time, taken and refused while the server runs."""

import asyncio
import hashlib
import hmac
import json
import os
import stat
import threading
from pathlib import Path

import pytest
from knotwork.runtime.interfaces.http import access as rooms
from knotwork.runtime.interfaces.http.access import Keys, KeysError, add_key, read_keys, remove_key
from support.command import call
from support.web import application, settings_in


def test_a_key_is_32_random_bytes_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "keys.json"
    made = add_key(path, "ada")
    assert made.startswith("kw_")
    assert len(made) == 3 + 43
    text = path.read_text()
    assert made not in text and made[3:] not in text
    [kept] = json.loads(text)["keys"]
    assert kept["sha256"] == hashlib.sha256(made.encode()).hexdigest()
    assert kept["name"] == "ada"
    assert set(kept) == {"name", "id", "sha256", "created"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.with_name("keys.json.lock").stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_ids_are_never_used_again(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    add_key(path, "ada")
    before = read_keys(path)[0].id
    remove_key(path, "ada")
    add_key(path, "ada")
    assert read_keys(path)[0].id != before


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m", "x" * 81])
def test_a_name_is_words_for_people(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeysError, match="not a valid name"):
        add_key(tmp_path / "keys.json", name)


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    add_key(tmp_path / "keys.json", "ada")
    with pytest.raises(KeysError, match="a key named 'ada' already exists"):
        add_key(tmp_path / "keys.json", " ada ")
    with pytest.raises(KeysError, match="unknown key 'bob'"):
        remove_key(tmp_path / "keys.json", "bob")


def test_keys_that_are_added_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    threads = [threading.Thread(target=add_key, args=(path, f"n{number}")) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key.name for key in read_keys(path)} == {f"n{number}" for number in range(12)}


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"keys": 3}', '{"keys": [{"name": "x"}]}', '{"keys": [], "keys": []}',
        '{"keys": [{"name": 1, "id": "", "sha256": "", "created": ""}]}', "\ud800".encode("utf-8", "surrogatepass"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_not_taken_for_empty(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(KeysError):
        read_keys(path)
    with pytest.raises(KeysError):
        _ = Keys(path).needed
    with pytest.raises(KeysError):
        add_key(path, "ada")
    assert path.read_bytes() == (text if isinstance(text, bytes) else text.encode())


def test_every_key_is_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.json"
    made = [add_key(path, f"n{number}") for number in range(5)]
    keys, compared = Keys(path), []
    real = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append(len(one) == len(other))
        return real(one, other)

    monkeypatch.setattr(rooms.hmac, "compare_digest", counted)
    for shown, owner in ((made[0], "n0"), (made[4], "n4"), ("kw_" + "x" * 43, None), ("", None)):
        compared.clear()
        found = keys.owner(shown)
        assert (found.name if found else None) == owner
        assert compared == [True] * 5  # the first match ends nothing


@pytest.mark.parametrize("shown", ["kw_é", "x" * 100_000, "kw_\x00", " ", "\ud800"])
def test_odd_keys_are_nobodys(tmp_path: Path, shown: str) -> None:
    path = tmp_path / "keys.json"
    add_key(path, "ada")
    assert Keys(path).owner(shown) is None


def test_a_key_with_more_behind_it_is_not_the_key(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    made = add_key(path, "ada")
    keys = Keys(path)
    for shown in (made + "x", made[:-1], made.upper(), made[3:], made + "\n"):
        assert keys.owner(shown) is None


def test_a_removed_key_stops_working_and_a_new_one_works_without_a_restart(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    first = add_key(settings.keys, "ada")
    second = add_key(settings.keys, "bob")

    async def asking() -> list[int]:
        seen = []
        async with application(settings) as client:

            async def status(key: str) -> None:
                answer = await client.get("/lab/about", headers={"Authorization": f"Bearer {key}"})
                seen.append(answer.status_code)

            await status(first)
            await asyncio.to_thread(remove_key, settings.keys, "ada")
            await status(first)
            third = add_key(settings.keys, "cleo")
            await status(second)
            await status(third)
            remove_key(settings.keys, "bob")
            remove_key(settings.keys, "cleo")
            await status(third)
            os.unlink(settings.keys)  # whatever becomes of the file: nobody gets in without a key
            await status(third)
            seen.append((await client.get("/lab/about")).status_code)
        return seen

    assert asyncio.run(asking()) == [200, 401, 200, 200, 401, 401, 401]


def test_a_first_key_closes_a_server_that_had_none(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)

    async def asking() -> list[int]:
        async with application(settings) as client:
            seen = [(await client.get("/lab/about")).status_code]
            add_key(settings.keys, "ada")
            return [*seen, (await client.get("/lab/about")).status_code]

    assert asyncio.run(asking()) == [200, 401]


def test_nobody_gets_in_while_the_keys_cant_be_read(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    key = add_key(settings.keys, "ada")

    async def asking() -> list[int]:
        async with application(settings, key) as client:
            seen = [(await client.get("/lab/about")).status_code]
            settings.keys.write_text("{")
            return [*seen, (await client.get("/lab/about")).status_code]

    assert asyncio.run(asking()) == [200, 503]


def test_the_command_makes_lists_and_removes_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    added = call("serve", "--add-key", "ada l.", "--keys", file)
    assert added.code == 0
    assert added.out.startswith("kw_") and added.out.count("\n") == 1
    assert added.out.strip() not in added.err
    assert "only this once" in added.err
    listed = call("serve", "--list-keys", "--keys", file)
    assert listed.out.strip().endswith("ada l.")
    assert "kw_" not in listed.out
    again = call("serve", "--add-key", "ada l.", "--keys", file)
    assert (again.code, again.out) == (1, "")
    assert "a key named" in again.err
    assert call("serve", "--remove-key", "ada l.", "--keys", file).code == 0
    assert call("serve", "--list-keys", "--keys", file).out == ""
    assert call("serve", "--remove-key", "ada l.", "--keys", file).code == 1
    both = call("serve", "--remove-key", "a", "--add-key", "b", "--keys", file)
    assert both.code == 2 and "can't be combined" in both.err
