"""`default set`, `default list`, `default remove`: the rules of tasks whose authors wrote none."""

from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.fields import rule_given
from duly.cli.frame import Verbs, command, settings
from duly.cli.joining import find, hint, open_for_change
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import many, rule_text

if TYPE_CHECKING:
    from duly.operations.defaults import Default, Defaulted

PROJECT = click.Option(["--project"], metavar="P", help="Of the tasks of this project, before the store's defaults.")


@command(
    name="set",
    help="Set rules that tasks have where their authors wrote none: of one project, or of the whole store.",
    epilog="duly default set max_age=12h on_missed=skip\nduly default set retries=2 --project reports",
    params=[click.Argument(["rules"], metavar="RULE=VALUE...", nargs=-1, required=True), PROJECT],
)
def set_(rules: tuple[str, ...], project: str | None) -> None:
    """Set default rules."""
    from duly.operations import defaults
    from duly.operations.lookup import caller

    given: dict[str, object] = {}
    for word in rules:
        name, value = rule_given(word, given)
        given[name] = value
    with open_for_change(create=True) as store:
        _answer(defaults.set_defaults(store, given, project=project, by=caller()))


@command(name="list", help="List the default rules, and how many tasks have each.")
def list_() -> None:
    """List the default rules."""
    from duly.operations import defaults, shapes

    store = find()
    found: list[Default] = []
    if store is not None:
        try:
            with store.read() as session:
                found = defaults.listed(session)
        finally:
            store.close()
    if settings().as_json:
        items = [shapes.default(one.rule, one.value, project=one.project, tasks=one.tasks) for one in found]
        out.document({"items": items, "next": None})
        return
    if not found:
        hint("no default is set: duly default set RULE=VALUE")
        return
    columns = [
        Column(head="RULE"),
        Column(head="VALUE", cut=True),
        Column(head="OF", cut=True),
        Column(head="TASKS", right=True),
    ]
    out.lines(render(columns, [_row(one) for one in found]))


@command(
    name="remove",
    help="Take default rules away; tasks without a rule of their own go back to the default beneath.",
    epilog="duly default remove max_age",
    params=[click.Argument(["rules"], metavar="RULE...", nargs=-1, required=True), PROJECT],
)
def remove(rules: tuple[str, ...], project: str | None) -> None:
    """Remove default rules."""
    from duly.operations import defaults
    from duly.operations.lookup import caller

    with open_for_change() as store:
        _answer(defaults.remove_defaults(store, rules, project=project, by=caller()))


default = Verbs("default", set_, list_, remove, help="Default rules of the store and of projects.")


def _answer(done: "Defaulted") -> None:
    if settings().as_json:
        out.document({"project": done.project, "rules": dict(done.after), "tasks": done.tasks})
        return
    whose = f"of project {plain(done.project)}" if done.project else "of the store"
    changed = [name for name in {**done.before, **done.after} if done.before.get(name) != done.after.get(name)]
    if not changed:
        out.line(f"the defaults {whose} say so already")
        return
    for name in changed:
        old, new = (rule_text(rules.get(name)) for rules in (done.before, done.after))
        out.line(f"default {name} {whose}: {old or 'none'} → {new or 'none'}")
    out.line(f"changes the rules of {many(done.tasks, 'task')}")


def _row(one: "Default") -> list[Cell | str]:
    whose = "the store" if one.project is None else f"project {one.project}"
    return [one.rule, plain(rule_text(one.value)), plain(whose), str(one.tasks)]
