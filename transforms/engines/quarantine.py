"""Requests that may have killed an engine, and the groups in which they are asked again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from transforms.engines.base import EngineRequest


class Quarantine:
    """Halves what is suspected, and hands out one group at a time.

    Args:
        suspects: sets of request ids that an earlier run left unresolved: requests of them are
            held back as they come, and asked in groups of half of their set.
    """

    def __init__(self, suspects: Sequence[frozenset[str]] = ()) -> None:
        self._shares: dict[str, int] = {}
        for ids in sorted(suspects, key=len, reverse=True):
            self._shares |= dict.fromkeys(ids, max(1, len(ids) // 2))
        self._held: list[EngineRequest] = []
        self._groups: list[list[EngineRequest]] = []
        self._group: dict[str, EngineRequest] | None = None

    @property
    def group(self) -> list[EngineRequest] | None:
        """What is unanswered of the group that is being asked; None while there is none."""
        return None if self._group is None else list(self._group.values())

    def wants(self, request: EngineRequest) -> bool:
        """Whether the request is suspected since an earlier run; it is held back then."""
        if request.request_id not in self._shares:
            return False
        self._held.append(request)
        return True

    def halve(self, suspects: Sequence[EngineRequest]) -> None:
        """Ask these again in two groups, before everything else that waits here."""
        half = (len(suspects) + 1) // 2
        self._groups += [list(part) for part in (suspects[half:], suspects[:half]) if part]

    def waiting(self, *, idle: bool) -> bool:
        """Whether a group is ready to be asked.

        Args:
            idle: nothing else waits or runs, so that no more of the held ones need to be awaited.
        """
        if not self._groups and self._held:
            share = min(self._shares[request.request_id] for request in self._held)
            if idle or len(self._held) >= share:
                self._groups.append(self._held[:share])
                del self._held[:share]
        return bool(self._groups)

    def begin(self) -> list[EngineRequest]:
        """The next group; it is the one being asked from now on."""
        group = self._groups.pop()
        self._group = {request.request_id: request for request in group}
        return group

    def answered(self, request_ids: Iterable[str]) -> None:
        """These did no harm."""
        for request_id in request_ids:
            if self._group is not None:
                self._group.pop(request_id, None)

    def end(self) -> None:
        """The group is done with, one way or another."""
        self._group = None
