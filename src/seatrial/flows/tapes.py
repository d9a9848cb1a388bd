"""Tool calls of a run on tape: one tape per attempt in a folder, recorded once and replayed by tool and arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from seatrial.errors import InputError
from seatrial.flows.look import safe_name
from seatrial.records import World, WorldStart
from seatrial.suites import Episode
from seatrial.suites.runner import Planned
from seatrial.world.cassette import CassetteWorld, RecordingWorld, load_tape

Mode = Literal["auto", "record", "replay"]


class Taping:
    """One attempt's tape. `around` is given to the attempt; `after` keeps what was recorded.

    `auto` replays a tape that exists and records one that does not.
    """

    def __init__(self, folder: Path, mode: Mode, planned: Planned) -> None:
        self._path = folder / f"{safe_name(planned.task.id)}-{planned.task_hash[:8]}-{planned.trial}.tape.jsonl"
        self._replay = mode == "replay" or (mode == "auto" and self._path.exists())
        self._seed = planned.seed
        self._recording: RecordingWorld | None = None
        self._playing: CassetteWorld | None = None

    def around(self, world: World) -> World:
        """The world with a recorder around it, or the tape in its place.

        Raises:
            InputError: there is no tape, or it begins in another state.
        """
        start = WorldStart(state=world.state(), seed=self._seed)
        if self._replay:
            self._playing = CassetteWorld(load_tape(self._path))
            if self._playing.version != world.version or self._playing.name != world.name:
                raise InputError("the tape is of another world", file=str(self._path), hint="record it again")
            self._playing.reset(start)
            return self._playing
        self._recording = RecordingWorld(world)
        self._recording.reset(start)
        return self._recording

    def after(self, episode: Episode) -> Episode:
        """Save the tape. An attempt that asked for calls which are not on its tape says nothing about its agent."""
        if self._recording is not None and episode.status != "error_infra":
            self._recording.tape().save(self._path)
        if self._playing is not None and self._playing.missed:
            why = f"{self._playing.missed} calls are not on the tape {self._path.name}: record it again"
            return msgspec.structs.replace(episode, status="error_infra", reason=why)
        return episode
