"""All cases of the net, by name."""

from __future__ import annotations

from tools.same.cases import others, parts, runs, tasks
from tools.same.kinds import Registry

CASES = Registry()
for own in (parts.CASES, tasks.CASES, runs.CASES, others.CASES):
    for case in own.values():
        CASES.add(case.name, case.run, *case.needs)
