"""The server with its tools, resources and prompts; each tool says what it does to the world."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.tools import Tool as ToolOfServer
from mcp_types import CallToolResult, ToolAnnotations

from duly import __version__
from duly.errors import DulyError
from duly.mcp import texts
from duly.mcp.desk import UNTRUSTED, Desk, refused, run_of
from duly.mcp.looking import Looking, nothing_yet
from duly.mcp.running import LOG_MOST, Running, log_of
from duly.mcp.scheduling import Scheduling

Method = Callable[..., CallToolResult]
UNKNOWN = {"unknown_task", "unknown_run", "unknown_id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: its method, its title, what it is for, and what it does to the world."""

    method: Method
    title: str
    says: str
    reads: bool = False
    destroys: bool = False
    again: bool = False
    """The same call again changes nothing further."""
    outside: bool = False
    """It may act on more than the scheduler: what it starts is a work of any kind."""


def make_server(desk: Desk) -> MCPServer[Any]:
    """Make a server whose tools stand at this desk; how this process logs stays as it is."""
    with _own_logging():
        server: MCPServer[Any] = MCPServer(
            "duly",
            title="Duly, a scheduler",
            version=__version__,
            instructions=texts.INSTRUCTIONS,
            log_level="ERROR",
            tools=[_made(tool) for tool in _tools(desk)],
        )
    _add_resources(server, desk)
    _add_prompts(server)
    return server


def _tools(desk: Desk) -> tuple[Tool, ...]:
    looking, scheduling, running = Looking(desk), Scheduling(desk), Running(desk)
    return (
        Tool(method=looking.schedule_list, title="List schedules", says=texts.LIST, reads=True),
        Tool(method=looking.schedule_get, title="Show a schedule", says=texts.GET, reads=True),
        Tool(method=looking.schedule_preview, title="Preview a time", says=texts.PREVIEW, reads=True),
        Tool(method=looking.schedule_why, title="Why did it (not) run", says=texts.WHY, reads=True),
        Tool(method=scheduling.schedule_create, title="Create a schedule", says=texts.CREATE, again=True, outside=True),
        Tool(
            method=scheduling.schedule_update,
            title="Change a schedule",
            says=texts.UPDATE,
            destroys=True,
            again=True,
            outside=True,
        ),
        Tool(method=scheduling.schedule_pause, title="Pause a schedule", says=texts.PAUSE, again=True),
        Tool(method=scheduling.schedule_resume, title="Resume a schedule", says=texts.RESUME, again=True, outside=True),
        Tool(method=scheduling.schedule_delete, title="Delete a schedule", says=texts.DELETE, destroys=True),
        Tool(method=running.run_now, title="Run a schedule now", says=texts.RUN_NOW, outside=True),
        Tool(method=running.run_list, title="List runs", says=texts.RUNS, reads=True),
        Tool(method=running.run_get, title="Show a run", says=texts.RUN, reads=True),
        Tool(method=running.run_log, title="Read a run's output", says=texts.LOG, reads=True),
        Tool(method=running.run_cancel, title="Cancel a run", says=texts.CANCEL, destroys=True, again=True),
        Tool(method=running.missed_list, title="List what was missed", says=texts.MISSED, reads=True),
        Tool(method=running.missed_resolve, title="Answer what was missed", says=texts.RESOLVE, outside=True),
        Tool(method=running.scheduler_status, title="How things stand", says=texts.STATUS, reads=True),
    )


def _made(tool: Tool) -> ToolOfServer:
    """Make a tool that refuses arguments which it does not know: a misspelt one must not be passed over."""
    made = ToolOfServer.from_function(
        _guarded(tool.method),
        title=tool.title,
        description=tool.says,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.reads or tool.again,
            open_world_hint=tool.outside,
        ),
    )
    model = made.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    made.parameters = model.model_json_schema(by_alias=True)
    return made


def _guarded(method: Method) -> Method:
    """Tell a *no* as an answer that says what to do instead; what is broken goes its own way, and is not told."""

    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> CallToolResult:
        try:
            return method(*args, **kwargs)
        except DulyError as error:
            return refused(error)

    return called


def _add_resources(server: MCPServer[Any], desk: Desk) -> None:
    looking = Looking(desk)

    @server.resource(
        "schedule://{task}", title="A schedule", description="a task, by its id", mime_type="application/json"
    )
    def schedule(task: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        with _as_resource():
            return dict(looking.schedule_get(ctx, task).structured_content or {})

    @server.resource(
        "run://{run}/log", title="A run's output", description="the end of what a run wrote", mime_type="text/plain"
    )
    def log(run: str, ctx: Context[Any, Any]) -> str:
        with _as_resource(), desk.reading(ctx) as seen:
            if seen is None:
                raise nothing_yet(run)
            asker, store, session = seen
            return (
                f"{UNTRUSTED}\n{log_of(store, session, run_of(session, asker, run), after=None, most=LOG_MOST)['text']}"
            )


@contextmanager
def _as_resource() -> Iterator[None]:
    try:
        yield
    except DulyError as error:
        kind = ResourceNotFoundError if error.reason in UNKNOWN else ResourceError
        raise kind(f"{error.reason}: {error.message}") from error


def _add_prompts(server: MCPServer[Any]) -> None:
    @server.prompt(title="Review my schedules", description="what is scheduled, what fails, what was missed")
    def review_schedules() -> str:
        return texts.REVIEW

    @server.prompt(title="Diagnose the last failure", description="why a task, or the newest failure of all, failed")
    def diagnose_failure(task: str = "") -> str:
        return texts.DIAGNOSE.format(of=f"the task {task}" if task else "the newest failed run")


@contextmanager
def _own_logging() -> Iterator[None]:
    """Keep a server that is made from taking over the root of all logs, which it does where that has nothing yet."""
    root, stands_in = logging.getLogger(), logging.NullHandler()
    root.addHandler(stands_in)
    try:
        yield
    finally:
        root.removeHandler(stands_in)
