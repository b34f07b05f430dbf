"""`why`: the fate of any instant of a task, or of a run, and the rule behind it, on one screen."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import find, hint
from duly.errors import Invalid, Refused

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from duly.operations.why_values import Why
    from duly.store.store import Session, Store


@command(
    name="why",
    help="Say why an instant ran, did not, or will not: the fate and the rule behind it, with its figures.",
    epilog=(
        "duly why backup\n"
        "duly why backup --at '2026-12-01 03:00'\n"
        "duly why backup --at +2d\n"
        "duly why backup --since 7d\n"
        "duly why 7kq2m9xw"
    ),
    params=[
        click.Argument(["which"], metavar="TASK|RUN"),
        click.Option(
            ["--at"],
            metavar="INSTANT",
            help="This instant, past or to come; of a run, how it stood then.  [the last, the next, and now]",
        ),
        click.Option(["--since"], metavar="I", help="List what did not run as planned from this instant on."),
        click.Option(["--zone"], metavar="ZONE", help="The zone of local times given here.  [this machine's]"),
    ],
)
def why(which: str, at: str | None, since: str | None, zone: str | None) -> None:
    """Answer for a task or a run."""
    if at is not None and since is not None:
        raise Invalid("--at asks about one instant and --since about many", field="--since", hint="one of the two")
    store = find()
    if store is None:
        raise Refused(
            "unknown_id", f'there is no task and no run "{which}": there is no store yet', details={"word": which}
        )
    try:
        with store.read() as session:
            if since is not None:
                _since(session, which, _instant(since, "--since", zone, session.now))
            else:
                _one(store, session, which, at, zone)
    finally:
        store.close()


def _one(store: "Store", session: "Session", which: str, at: str | None, zone: str | None) -> None:
    from duly.operations import why as asking
    from duly.operations.serving import alive as alive_now

    boot = store.clock.lease_boot()
    alive = alive_now(store, session)
    moment = None if at is None else _instant(at, "--at", zone, session.now)
    found = asking.why(session, which, moment, alive=alive, boot=boot)
    if settings().as_json:
        from duly.operations import shapes_why

        out.document(shapes_why.why(found))
        return
    from duly.cli.why_rows import screen

    out.lines(screen(found))
    if at is not None:
        _hint(found, at, zone)


def _hint(found: "Why", at: str, zone: str | None) -> None:
    """Say so when a local time that was typed is none of its wall, or means another instant on the task's own."""
    from duly.core.explaining import judge
    from duly.core.spans import local_reading, resolve, write_local
    from duly.core.task import Definition

    local, place = local_reading(at.strip()), _zone(zone)
    if local is None or found.asked_at is None:
        return
    there = found.asked_at.astimezone(place).replace(tzinfo=None)
    if there != local:
        missing = f"{write_local(local)} does not come on the wall of {place.key}"
        hint(f"{missing}: {write_local(there)} was asked about, which comes after the gap")
    own, in_force = found.zone, found.in_force
    if zone is not None or own is None or in_force is None or own.key == place.key or found.due:
        return
    if isinstance(in_force.definition, Definition) and judge(in_force.definition, own, resolve(local, own)).due:
        hint(f"{write_local(local)} is due on the task's own wall: --zone {own.key}")


def _since(session: "Session", which: str, since: datetime) -> None:
    from duly.operations.why_since import not_as_planned

    found = not_as_planned(session, which, since)
    if settings().as_json:
        from duly.operations import shapes_why

        out.document(shapes_why.since(found))
        return
    from duly.cli.why_list import listed

    out.lines(listed(found))


def _instant(text: str, option: str, zone: str | None, now: datetime) -> datetime:
    from duly.core.spans import read_instant

    return read_instant(text, now=now, zone=_zone(zone), field=option)


def _zone(name: str | None) -> "ZoneInfo":
    from duly import zones

    return zones.zone(name if name is not None else zones.machine_zone() or "UTC")
