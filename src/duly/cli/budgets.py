"""`budget set`, `budget list`, `budget remove`: what the store or a project may spend in a day or a month."""

from typing import TYPE_CHECKING, cast

import click

from duly.cli import out
from duly.cli.fields import whole_number
from duly.cli.frame import Verbs, command, settings
from duly.cli.joining import hint, open_for_change, reading
from duly.cli.table import Cell, Column, plain, render
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.core.amounts import Per
    from duly.operations.budgets import Shown

KEY = click.Argument(["key"], metavar="KEY")
USED_MOST = 0.8
"""From so much on a budget stands out in the list."""


@command(
    name="set",
    help="Set what may be spent in each day or month: by the whole store (KEY is store) or a project (project:NAME).",
    epilog=(
        "duly budget set store --runs 500 --per day\n"
        "duly budget set project:reports --runs 40 --per month\n"
        "duly status shows what is spent, set aside and left"
    ),
    params=[
        KEY,
        click.Option(["--runs"], metavar="N", help="At most so many runs."),
        click.Option(["--tokens"], metavar="N", help="At most so many tokens of agents."),
        click.Option(["--usd"], metavar="X", help="At most so many dollars of agents."),
        click.Option(["--per"], metavar="day|month", required=True, help="In each day, or in each month."),
    ],
)
def set_(key: str, runs: str | None, tokens: str | None, usd: str | None, per: str) -> None:
    """Set a budget."""
    from duly.core.amounts import Allowance, read_usd
    from duly.operations import budgets
    from duly.operations.lookup import caller

    if per not in ("day", "month"):
        raise Invalid(f'"{per[:40]}" is not day or month', field="--per", text=per, at=0)
    micro = None if usd is None else read_usd(usd)
    if usd is not None and micro is None:
        raise Invalid(f'"{usd[:40]}" is no amount of dollars such as 2.50', field="--usd", text=usd, at=0)
    allowed = Allowance(
        per=cast("Per", per),
        runs=None if runs is None else whole_number(runs, "--runs"),
        tokens=None if tokens is None else whole_number(tokens, "--tokens"),
        usd_micro=micro,
    )
    with open_for_change() as store:
        done = budgets.set_budget(store, key, allowed, by=caller())
    if settings().as_json:
        out.document(budgets.shape(done))
        return
    out.line(f"budget {plain(done.name)} is {_bounds(done)} (in this one: {_used(done)})")


@command(name="list", help="List the budgets: what each allows, what of it is spent, and when it begins anew.")
def list_() -> None:
    """List the budgets."""
    from duly.operations import budgets

    with reading() as session:
        found: list[Shown] = [] if session is None else budgets.standing(session)
    if settings().as_json:
        out.document({"items": [budgets.shape(one) for one in found], "next": None})
        return
    if not found:
        hint("no budget is set: duly budget set store --runs N --per day")
        return
    columns = [
        Column(head="BUDGET", cut=True),
        Column(head="PER"),
        Column(head="SPENT", right=True),
        Column(head="SET ASIDE", right=True),
        Column(head="OF", right=True),
        Column(head="ANEW"),
        Column(head="SET", yields=1),
    ]
    out.lines(render(columns, [row for one in found for row in _rows(one)]))


@command(name="remove", help="Take a budget away: nothing is bound by it any more.", params=[KEY])
def remove(key: str) -> None:
    """Remove a budget."""
    from duly.operations import budgets
    from duly.operations.lookup import caller

    with open_for_change() as store:
        gone = budgets.remove_budget(store, key, by=caller())
    if settings().as_json:
        out.document(budgets.shape(gone))
        return
    out.line(f"budget {plain(gone.name)} is no longer set")


budget = Verbs(
    "budget", set_, list_, remove, help="What the whole store, or one project, may spend in a day or a month."
)


def _kinds(one: "Shown") -> list[str]:
    from duly.core.amounts import KINDS

    return [kind for kind in KINDS if getattr(one.standing.budget.allowed, kind) is not None]


def _amount(kind: str, amount: int) -> str:
    if kind == "usd_micro":
        return f"${amount / 1e6:,.2f}"
    return f"{amount:,} {'tokens' if kind == 'tokens' else 'runs'}"


def _bounds(one: "Shown") -> str:
    budget_ = one.standing.budget.allowed
    return ", ".join(_amount(kind, getattr(budget_, kind)) for kind in _kinds(one)) + f" a {budget_.per}"


def _used(one: "Shown") -> str:
    return ", ".join(_amount(kind, _taken(one, kind)) for kind in _kinds(one))


def _taken(one: "Shown", kind: str) -> int:
    spent, reserved = getattr(one.standing.spent, kind), getattr(one.standing.reserved, kind)
    assert isinstance(spent, int)
    assert isinstance(reserved, int)
    return spent + reserved


def _rows(one: "Shown") -> list[list[Cell | str]]:
    rows: list[list[Cell | str]] = []
    standing = one.standing
    for kind in _kinds(one):
        bound = getattr(standing.budget.allowed, kind)
        styles = ("yellow",) if _taken(one, kind) >= bound * USED_MOST else ()
        first = not rows
        rows.append(
            [
                plain(one.name) if first else "",
                standing.budget.allowed.per if first else "",
                Cell(text=_amount(kind, getattr(standing.spent, kind)), styles=styles),
                _amount(kind, getattr(standing.reserved, kind)),
                _amount(kind, bound),
                f"{standing.until:%Y-%m-%d %H:%M} UTC" if first else "",
                ("by its task" if standing.budget.set_at is None else f"by {plain(standing.budget.set_by or '')}")
                if first
                else "",
            ]
        )
    return rows
