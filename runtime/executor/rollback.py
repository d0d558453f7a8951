"""Taking a state back to an earlier moment: a commit like others, of which the history tells."""

from datetime import UTC, datetime
from typing import Any

from ...adapters.state import Snapshot, StateStore, StoreError
from .grounds import ROLLBACK, origins

__all__ = ["ROLLBACK", "roll_back"]


def roll_back(store: StateStore, to: Snapshot | str, command: str) -> int:
    """Make the state what it was and commit that; return in how many ways it differed, 0 where nothing was to be done.

    ``command`` is what the history says was done; the hash is put behind it. Raises ``StateError`` for a hash that no commit at
    hand has, and ``StoreError``; the state is as it was then.
    """
    differences = len(store.diff(store.snapshot(), to))
    if not differences:
        return 0
    before, config = origins(store)[-1:], store.replay_info()["config"]
    store.restore(to)
    after = origins(store)[-1:]
    if [each.graph for each in after] != [each.graph for each in before]:  # the findings are another graph's again
        store.configure(config={"adapter": (after[0].source if after else None) or {"type": "networkx"}})
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    last = store.history[-1].get("step") if len(store.history) else 0
    entry: dict[str, Any] = {
        "step": last,
        "part": ROLLBACK,
        "command": f"{command} {store.hash[:12]}",
        "why": None,
        "summary": {"differences": differences},
        "provenance_summary": {},
        "started_at": now,
        "finished_at": now,
        "status": "success",
        "state": store.hash,
    }
    store.note(entry)
    try:
        store.commit(found=False)  # the one commit: the state is never taken back without the history telling it
    except StoreError:
        store.configure(config=config)
        raise
    return differences
