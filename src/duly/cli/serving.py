"""`serve`, `init` and `demo`: processes that run what is due, and how a store begins."""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import address, config, hint
from duly.cli.table import plain
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.app.interface import Listening
    from duly.config import InForce
    from duly.holder.wish import OnStop


SPANS = ("beat", "lease", "drain", "catch_up_delay", "catch_up_spacing")


@command(
    name="serve",
    help="Run what is due from a store until stopped (TERM or INT stops cleanly). Any number may serve one store.",
    epilog="duly serve\nduly serve --store ./duly.db --slots 8 --until-idle",
    params=[
        click.Option(["--slots"], metavar="N", help="How many runs at once.  [4, or the CPUs where larger]"),
        click.Option(["--beat"], metavar="SPAN", help="How often leases are extended.  [20s]"),
        click.Option(["--lease"], metavar="SPAN", help="How long a claim holds without a beat.  [100s]"),
        click.Option(["--drain"], metavar="SPAN", help="How long live runs may go on at a stop.  [30s]"),
        click.Option(
            ["--on-stop"],
            metavar="hand-over|cancel",
            help="What becomes then of what still runs: hand-over leaves commands to whoever serves next, cancel ends "
            "them. The first process of a container always ends them.  [hand-over]",
        ),
        click.Option(
            ["--label", "labels"],
            metavar="L",
            multiple=True,
            help="A label this process has, for tasks that need it (may be repeated).",
        ),
        click.Option(
            ["--catch-up-delay"],
            metavar="SPAN",
            help="After a start that finds nobody else, what was missed and asks others than this machine (agents, "
            "webhooks) waits for so long.  [10s]",
        ),
        click.Option(["--catch-up-spacing"], metavar="SPAN", help="And those of one project start so far apart.  [1s]"),
        click.Option(["--host"], metavar="ADDRESS", help="Where to answer by HTTP.  [127.0.0.1]"),
        click.Option(["--port"], metavar="N", help="At which port; 0 is any free one.  [7433]"),
        click.Option(["--no-web"], is_flag=True, help="Do not answer by HTTP."),
        click.Option(["--tls-cert"], metavar="FILE", help="A certificate to listen with (PEM), for other machines."),
        click.Option(["--tls-key"], metavar="FILE", help="Its key (PEM)."),
        click.Option(
            ["--listen-without-tls"],
            is_flag=True,
            default=None,
            help="Listen on an outside address in the clear, where a proxy before it has TLS.",
        ),
        click.Option(
            ["--log-format"], metavar="text|json", help="How the log is written, a line or an object each.  [text]"
        ),
        click.Option(["--until-idle"], is_flag=True, help="Stop when nothing is due, waiting or running."),
        click.Option(
            ["--passive"],
            is_flag=True,
            help="Start nothing: only look after what others leave when they stop or die.",
        ),
        click.Option(
            ["--allow-network-fs"],
            is_flag=True,
            default=None,
            help="Serve a store on a network file system, which one machine alone uses.",
        ),
    ],
)
def serve(
    until_idle: bool,
    passive: bool,
    labels: tuple[str, ...],
    allow_network_fs: bool | None,
    no_web: bool,
    listen_without_tls: bool | None,
    **given: str | None,
) -> int:
    """Serve a store."""
    if passive:
        _check_passive(until_idle, given["slots"])
    from duly.app import service
    from duly.core.spans import write_span

    spans = {name: cast(timedelta, _set(f"serve.{name}", given[name]).value) for name in SPANS}
    if spans["lease"] <= 2 * spans["beat"]:
        lease, beat = write_span(spans["lease"]), write_span(spans["beat"])
        raise Invalid(
            f"{lease} is not more than two beats of {beat}: a single late one would lose the lease",
            field=_set("serve.lease", given["lease"]).place or "--lease",
        )
    return service.serve(
        address(),
        slots=cast(int | None, _set("serve.slots", given["slots"]).value),
        until_idle=until_idle,
        on_stop=cast("OnStop", _set("serve.on_stop", given["on_stop"]).value),
        passive=passive,
        labels=labels,
        as_json=settings().as_json,
        allow_network_fs=_set("serve.allow_network_fs", allow_network_fs).value is True,
        web=_listening(no_web, listen_without_tls, given),
        log_format=str(_set("serve.log_format", given["log_format"]).value),
        **spans,
    )


def _listening(no_web: bool, without_tls: bool | None, given: Mapping[str, str | None]) -> "Listening | None":
    """Say where to answer by HTTP; None where not at all."""
    if _set("serve.web", False if no_web else None).value is not True:
        return None
    from duly.app.interface import Listening

    port = _set("serve.port", given["port"])
    cert, key = _set("serve.tls_cert", given["tls_cert"]).value, _set("serve.tls_key", given["tls_key"]).value
    public_url = _set("public_url", None).value
    return Listening(
        host=cast(str, _set("serve.host", given["host"]).value),
        port=cast(int, port.value),
        chosen=port.origin != "default",
        tls_cert=None if cert is None else Path(str(cert)).absolute(),
        tls_key=None if key is None else Path(str(key)).absolute(),
        without_tls=_set("serve.listen_without_tls", without_tls).value is True,
        public_url=None if public_url is None else str(public_url),
    )


def _check_passive(until_idle: bool, slots: str | None) -> None:
    if until_idle:
        raise Invalid("it starts nothing, and so would wait for others to be idle", field="--passive and --until-idle")
    if slots is not None:
        raise Invalid("it starts nothing, and so has no slots", field="--passive and --slots")


def _set(key: str, flag: str | bool | None) -> "InForce":
    from duly.config import in_force

    return in_force(key, config(), os.environ, flag)


@command(name="init", help="Make an empty store; on a standing one it says so.")
def init() -> None:
    """Make a store."""
    from duly.app import service

    where = address()
    made = service.init(where)
    if settings().as_json:
        out.document({"store": str(where), "made": made})
        return
    out.line(f"made the store {plain(str(where))}" if made else f"the store {plain(str(where))} stands already")
    if made:
        hint("a first task: duly add hello --when 'every 1m' -- echo hello")


@command(
    name="demo",
    help="Show real commands run at their times, from a store in a temporary folder.",
    params=[click.Option(["--for", "length"], metavar="SPAN", default="60s", help="How long.  [60s]")],
)
def demo(length: str) -> int:
    """Run the demonstration."""
    if settings().store is not None:
        raise Invalid("the demonstration has a store of its own", field="--store", hint="duly demo")
    from duly.app import demonstration
    from duly.core.spans import read_span

    return demonstration.demo(read_span(length, field="--for"), as_json=settings().as_json)
