"""The tables of a history in PostgreSQL. The number in their names is the version of the schema.

Texts of clients are stored as bytes, because PostgreSQL's type for text can't contain NUL.
"""

import asyncio
from typing import Any

from ...api.server_runs import PostgresError, PostgresPool

RUNS, ITERATIONS, SERVERS = "knotwork_runs_1", "knotwork_iterations_1", "knotwork_servers_1"
EVALUATIONS = "knotwork_evaluations_1"

_MAKE = (
    f"CREATE TABLE IF NOT EXISTS {SERVERS} (id text PRIMARY KEY, until timestamptz NOT NULL)",
    f'CREATE TABLE IF NOT EXISTS {RUNS} (id text COLLATE "C" PRIMARY KEY, owner text NOT NULL, created double precision NOT NULL,'
    " status text NOT NULL, stopped text NOT NULL, model text NOT NULL, instruct bytea NOT NULL, iter_max integer NOT NULL,"
    " score_threshold double precision NOT NULL, score double precision, best integer, iterations integer NOT NULL,"
    " seconds double precision NOT NULL, calls bigint NOT NULL, prompt_tokens bigint NOT NULL,"
    " completion_tokens bigint NOT NULL, cost double precision, last_event bigint NOT NULL, request bytea NOT NULL,"
    " metadata bytea NOT NULL, server text NOT NULL, wish smallint NOT NULL DEFAULT 0)",
    f"CREATE INDEX IF NOT EXISTS {RUNS}_by_owner ON {RUNS} (owner, id)",
    f"CREATE INDEX IF NOT EXISTS {RUNS}_running ON {RUNS} (server) WHERE status = 'running'",
    f"CREATE INDEX IF NOT EXISTS {RUNS}_deleted ON {RUNS} (id) WHERE wish = 2",
    f'CREATE TABLE IF NOT EXISTS {ITERATIONS} (run text COLLATE "C" NOT NULL REFERENCES {RUNS} (id) ON DELETE CASCADE,'
    " number integer NOT NULL, event bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (run, number))",
    f'CREATE TABLE IF NOT EXISTS {EVALUATIONS} (id text COLLATE "C" PRIMARY KEY, owner text NOT NULL,'
    " created double precision NOT NULL, status text NOT NULL, target bytea NOT NULL, body bytea NOT NULL)",
    f"CREATE INDEX IF NOT EXISTS {EVALUATIONS}_by_owner ON {EVALUATIONS} (owner, id)",
)
_MISSING = (
    f"SELECT to_regclass('{RUNS}') IS NULL OR to_regclass('{ITERATIONS}') IS NULL OR to_regclass('{SERVERS}') IS NULL"
    f" OR to_regclass('{EVALUATIONS}') IS NULL"
)
_AT_ONCE = ("23505", "40P01", "42P07", "42710", "XX000")
"""SQLSTATEs of errors that occur if two servers create the same tables at the same time: "IF NOT EXISTS" does not prevent them."""
_ATTEMPTS, _PAUSE = 10, 0.1


async def create_tables(pool: PostgresPool) -> None:
    """Create the tables that are missing. Several servers may do so at the same time. Raises ``PostgresError``."""

    async def is_missing(cursor: Any) -> bool:
        await cursor.execute(_MISSING)
        return bool((await cursor.fetchone())[0])

    async def make(cursor: Any) -> None:
        for statement in _MAKE:
            await cursor.execute(statement)

    for attempt in range(1, _ATTEMPTS + 1):
        if not await pool.read(is_missing):  # a role without the right to create tables can use existing ones
            return
        try:
            await pool.write(make)
        except PostgresError as error:
            if error.code not in _AT_ONCE or attempt == _ATTEMPTS:
                raise
            await asyncio.sleep(_PAUSE)
        else:
            return
