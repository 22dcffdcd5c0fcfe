"""Tells kopf's asyncio tasks from ours: at its end kopf cancels every task that it is not told to spare.

`watches` uses it. A task belongs to kopf when kopf, or a task of kopf's, created it; the context variable
travels along.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any
from weakref import WeakSet

Task = asyncio.Task[Any]

tracked: ContextVar[bool] = ContextVar("tracked", default=False)
"""True in a task whose offspring is to be tracked."""


class AllBut(Collection[Task]):
    """Every task of the loop, now and later, but these."""

    def __init__(self, excluded: WeakSet[Task]) -> None:
        self._excluded = excluded

    def __contains__(self, task: object) -> bool:
        return task not in self._excluded

    def __iter__(self) -> Iterator[Task]:
        return iter(task for task in asyncio.all_tasks() if task in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@contextmanager
def tracked_tasks() -> Generator[WeakSet[Task]]:
    """Give the set of tasks that are created in tracked tasks while the context lasts."""
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    found: WeakSet[Task] = WeakSet()

    def create(
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        *,
        context: Context | None = None,
        **options: Any,  # noqa: ANN401 - whatever later versions of Python pass
    ) -> Task:
        task: Task = asyncio.Task(coroutine, loop=loop, context=context, **options)
        if tracked.get() if context is None else context.get(tracked, False):
            found.add(task)
        return task

    loop.set_task_factory(create)
    try:
        yield found
    finally:
        loop.set_task_factory(before)
