"""The settings that a host may have, as a table: their keys, their variables and flags, their kinds and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

SLOTS_MOST = 10_000

Kind = Literal["path", "count", "span", "switch", "word", "text"]
Value = str | int | bool | timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: its key in the file, its variable, its flag, what kind of value it takes, and its default."""

    key: str
    kind: Kind
    variable: str
    flag: str
    help: str
    default: Value = None
    default_text: str | None = None
    """How the default is told where it depends on the host."""
    zero: bool = False
    """Whether a span of nothing makes sense."""
    most: int = 0
    least: int = 1
    words: tuple[str, ...] = ()
    """What a word may be."""


SETTINGS: tuple[Setting, ...] = (
    Setting(
        key="store",
        kind="path",
        variable="DULY_STORE",
        flag="--store",
        help="the store",
        default_text="duly/duly.db in the data folder",
    ),
    Setting(
        key="serve.slots",
        kind="count",
        variable="DULY_SERVE_SLOTS",
        flag="--slots",
        help="how many runs at once",
        default_text="4, or the CPUs where larger",
        most=SLOTS_MOST,
    ),
    Setting(
        key="serve.beat",
        kind="span",
        variable="DULY_SERVE_BEAT",
        flag="--beat",
        help="how often leases are extended",
        default=timedelta(seconds=20),
    ),
    Setting(
        key="serve.lease",
        kind="span",
        variable="DULY_SERVE_LEASE",
        flag="--lease",
        help="how long a claim holds without a beat",
        default=timedelta(seconds=100),
    ),
    Setting(
        key="serve.drain",
        kind="span",
        variable="DULY_SERVE_DRAIN",
        flag="--drain",
        help="how long live runs may go on at a stop",
        default=timedelta(seconds=30),
        zero=True,
    ),
    Setting(
        key="serve.on_stop",
        kind="word",
        variable="DULY_SERVE_ON_STOP",
        flag="--on-stop",
        help="what becomes at a stop of what still runs: hand-over or cancel",
        default="hand-over",
        words=("hand-over", "cancel"),
    ),
    Setting(
        key="serve.catch_up_delay",
        kind="span",
        variable="DULY_SERVE_CATCH_UP_DELAY",
        flag="--catch-up-delay",
        help="how long catching up of agents and webhooks waits after a start that finds nobody else",
        default=timedelta(seconds=10),
        zero=True,
    ),
    Setting(
        key="serve.catch_up_spacing",
        kind="span",
        variable="DULY_SERVE_CATCH_UP_SPACING",
        flag="--catch-up-spacing",
        help="how far apart those of one project start",
        default=timedelta(seconds=1),
        zero=True,
    ),
    Setting(
        key="mcp.commands",
        kind="word",
        variable="DULY_MCP_COMMANDS",
        flag="--commands",
        help="whether what agents schedule to act on this host waits for a person's yes: ask or allow",
        default="ask",
        words=("ask", "allow"),
    ),
    Setting(
        key="mcp.shortest",
        kind="span",
        variable="DULY_MCP_SHORTEST",
        flag="--shortest",
        help="how far apart the starts of a task must be that an agent schedules",
        default=timedelta(minutes=1),
        zero=True,
    ),
    Setting(
        key="mcp.tasks_most",
        kind="count",
        variable="DULY_MCP_TASKS_MOST",
        flag="--tasks-most",
        help="how many tasks agents may have made",
        default=100,
        most=10_000,
    ),
    Setting(
        key="serve.log_format",
        kind="word",
        variable="DULY_SERVE_LOG_FORMAT",
        flag="--log-format",
        help="how the log on standard error is written: text or json",
        default="text",
        words=("text", "json"),
    ),
    Setting(
        key="serve.allow_network_fs",
        kind="switch",
        variable="DULY_SERVE_ALLOW_NETWORK_FS",
        flag="--allow-network-fs",
        help="serve a store on a network file system all the same",
        default=False,
    ),
    Setting(
        key="serve.web",
        kind="switch",
        variable="DULY_SERVE_WEB",
        flag="--no-web",
        help="answer by HTTP",
        default=True,
    ),
    Setting(
        key="serve.host",
        kind="text",
        variable="DULY_SERVE_HOST",
        flag="--host",
        help="the address that is listened on",
        default="127.0.0.1",
    ),
    Setting(
        key="serve.port",
        kind="count",
        variable="DULY_SERVE_PORT",
        flag="--port",
        help="the port that is listened on; 0 is any free one",
        default=7433,
        most=65_535,
        least=0,
    ),
    Setting(
        key="serve.tls_cert",
        kind="path",
        variable="DULY_SERVE_TLS_CERT",
        flag="--tls-cert",
        help="the certificate to listen with, as a PEM file",
    ),
    Setting(
        key="serve.tls_key",
        kind="path",
        variable="DULY_SERVE_TLS_KEY",
        flag="--tls-key",
        help="its key, as a PEM file",
    ),
    Setting(
        key="serve.listen_without_tls",
        kind="switch",
        variable="DULY_SERVE_LISTEN_WITHOUT_TLS",
        flag="--listen-without-tls",
        help="listen on an outside address in the clear all the same",
        default=False,
    ),
    Setting(
        key="public_url",
        kind="text",
        variable="DULY_PUBLIC_URL",
        flag="",
        help="the URL by which others reach this host's interface, as a proxy before it has it",
    ),
    Setting(
        key="http.inside",
        kind="switch",
        variable="DULY_HTTP_INSIDE",
        flag="",
        help="send webhooks to names that lead to addresses of this machine or of a private network",
        default=False,
    ),
)
BY_KEY: Mapping[str, Setting] = {setting.key: setting for setting in SETTINGS}
SECTIONS = tuple(dict.fromkeys(key.partition(".")[0] for key in BY_KEY if "." in key))
