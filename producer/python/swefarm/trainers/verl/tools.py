"""Implements verl's tools `bash` and `submit_solution` with one session of the farm for each trajectory."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Optional
from uuid import uuid4
from weakref import WeakKeyDictionary

from verl.tools.base_tool import BaseTool
from verl.tools.schemas import ToolResponse

from swefarm.farm import FarmError, FarmRefusal
from swefarm.trainers.verl.dryrun import open_dry_session
from swefarm.trainers.verl.session import SUBMITTED, SessionOver, hearts, open_session, plain

logger = logging.getLogger(__name__)

#: Key of the session's data in ``extra_fields`` of a trajectory, which both tools and compute_score read.
HANDLE = "swefarm_session"
LOST = "The sandbox is not available. Finish without further commands."
_sessions: dict[str, Any] = {}
#: A lock for each trajectory: the calls of a turn are concurrent, and a trajectory has only one sandbox.
_locks: WeakKeyDictionary[Any, asyncio.Lock] = WeakKeyDictionary()


class _SessionTool(BaseTool):
    """verl calls create and release around every call, without the trajectory, so these methods only store the row's arguments."""

    def __init__(self, config: dict, tool_schema: Any) -> None:
        super().__init__(config, tool_schema)
        self._rows: dict[str, dict[str, Any]] = {}

    async def create(self, instance_id: Optional[str] = None, **kwargs: Any) -> tuple[str, ToolResponse]:
        key = instance_id or uuid4().hex
        self._rows[key] = plain(kwargs.get("create_kwargs") or kwargs)
        return key, ToolResponse()

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        self._rows.pop(instance_id, None)

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict]:
        agent_data = kwargs["agent_data"]
        async with _locks.setdefault(agent_data, asyncio.Lock()):
            text = await self._answer(agent_data, self._rows.get(instance_id, {}), parameters)
        return ToolResponse(text=text), 0.0, {}

    async def _answer(self, agent_data: Any, row: dict[str, Any], parameters: dict[str, Any]) -> str:
        handle: dict[str, Any] = agent_data.extra_fields.setdefault(HANDLE, {})
        if handle.get("over"):
            return str(handle["over"])
        session = _sessions.get(handle.get("session_id", ""))
        try:
            if session is None:
                session = await self._open(agent_data, row, handle)
            text = await self._act(session, parameters)
            handle["over"] = session.over
            return text
        except SessionOver as over:
            handle["over"] = str(over)
        except (FarmError, FarmRefusal) as error:
            logger.warning("swefarm: %s", error)
            handle.update(lost=str(error)[:200], over=LOST)
        finally:
            if handle.get("over"):
                _sessions.pop(handle.get("session_id", ""), None)
                hearts.forget(handle.get("session_id", ""))
        return str(handle["over"])

    async def _open(self, agent_data: Any, row: dict[str, Any], handle: dict[str, Any]) -> Any:
        if "session_id" in handle:
            raise FarmError("the session belongs to another process")
        if self.config.get("dry_run"):
            session: Any = open_dry_session(agent_data.request_id)
        else:
            session = await open_session(agent_data.request_id, self.config, row)
            handle["farm_url"] = session.farm.url
        handle["session_id"] = session.session_id
        _sessions[session.session_id] = session
        return session

    async def _act(self, session: Any, parameters: dict[str, Any]) -> str:
        raise NotImplementedError


class BashTool(_SessionTool):
    """Runs one command and returns the same observation that the farm's own agents receive."""

    async def _act(self, session: Any, parameters: dict[str, Any]) -> str:
        command = parameters.get("command")
        if not isinstance(command, str) or not command.strip():
            return "bash needs the argument command, a string."
        return str((await session.run(command))["observation"])


class SubmitTool(_SessionTool):
    """Submits the tree. compute_score fetches the verdict later. With ``agent.max_submits`` the model reads why the tests failed."""

    async def _act(self, session: Any, parameters: dict[str, Any]) -> str:
        settings = self.config.get("agent") or {}
        if int(settings.get("max_submits") or 1) > 1 and not self.config.get("dry_run"):
            return await session.submit_for_feedback()
        await session.submit()
        return SUBMITTED
