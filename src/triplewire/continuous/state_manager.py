"""The state manager: the files of continuous queries below one directory.

```
decisions.json     decisions that a replayed batch must repeat; written before anything is done by them
programs/          the programs of the join network that workers read, the newest few
windows/           the windowed queries that workers read, the newest few
due                the time, in microseconds, at which a batch is due though nothing was published
state/             the generations of state, with the changelogs of partitions and of the distinct state
```

Every file is replaced atomically and is durable before the batch that needs it runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from triplewire.config.files import replace_file
from triplewire.continuous.batch_planner import Decisions, registration_value
from triplewire.continuous.planner import NetworkProgram
from triplewire.continuous.state import NEVER, DistinctState, StateChangelog, StateGenerations, read_due
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY

KEPT_FILES = 4
"""Program and query files that stay: those of the current batch, and of one that may be replayed."""


class StateManager:
    """The files of one run, written by the driver alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.due_file = path / "due"
        self.generations = StateGenerations(path / "state")
        self._decisions = path / "decisions.json"
        self._program: tuple[NetworkProgram, Path] | None = None
        self._queries: tuple[Sequence[ContinuousQuery], Path] | None = None
        self._due = read_due(self.due_file)
        self._written = 0
        self._distinct: DistinctState | None = None

    def read_decisions(self, partitions: int, spread: bool) -> Decisions:
        """Read the decisions of the last run, or begin with these settings."""
        value = json.loads(self._decisions.read_bytes()) if self._decisions.exists() else {}
        return Decisions.from_value(value, partitions, spread)

    def write_decisions(self, decisions: Decisions) -> None:
        replace_file(self._decisions, json.dumps(decisions.to_value()).encode())

    def write_program(self, program: NetworkProgram, decisions: Decisions, position: int) -> Path:
        """Write a program, after the decisions that it follows from; return the file that workers read. The program
        that was written last is not written again."""
        if self._program is None or self._program[0] is not program:
            self.write_decisions(decisions)
            self._program = program, self._write_new("programs", position, program.to_bytes())
        return self._program[1]

    def write_queries(self, queries: Sequence[ContinuousQuery], position: int) -> Path:
        """Write the windowed queries as registry changes; return the file that workers read. The queries that were
        written last are not written again."""
        if self._queries is None or self._queries[0] != queries:
            rows = [[each.since, QUERY, each.id, registration_value(each)] for each in queries]
            self._queries = queries, self._write_new("windows", position, json.dumps(rows).encode())
        return self._queries[1]

    def write_due(self, due: int | None) -> None:
        """Write when the next batch is due at the latest; None for never."""
        if (due or NEVER) != self._due:
            replace_file(self.due_file, str(due or NEVER).encode())
            self._due = due or NEVER

    def distinct_state(self, run: str) -> DistinctState:
        if self._distinct is None:
            self._distinct = DistinctState(StateChangelog(self.generations.distinct(run)))
        return self._distinct

    def _write_new(self, folder: str, position: int, data: bytes) -> Path:
        """Write a file under a name of its own, because workers cache files by name."""
        self._written += 1
        path = self.path / folder / f"{position:016x}-{os.getpid()}-{self._written}"
        replace_file(path, data)
        files = [each for each in path.parent.iterdir() if not each.name.startswith(".")]
        for each in sorted(files, key=lambda each: each.stat().st_mtime_ns)[:-KEPT_FILES]:
            each.unlink(missing_ok=True)
        return path


def read_queries(data: bytes) -> Sequence[RegistryChange]:
    """Read what `StateManager.write_queries` wrote."""
    return [RegistryChange(*each) for each in json.loads(data)]
