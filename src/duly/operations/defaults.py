"""Defaults of the store and of projects: the rules that tasks have where their authors wrote none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duly.core.contradictions import check_defaults
from duly.core.defaults import read_defaults, readable_defaults
from duly.core.definition_json import RULE_NAMES, rule_to_json
from duly.core.names import key_of
from duly.core.reading import nearest, shown
from duly.core.run import Entry
from duly.errors import Invalid
from duly.operations.lookup import project_key
from duly.store import Session, Store
from duly.store.defaults import STORE
from duly.store.definitions_written import decide_anew
from duly.store.switches import lift_over

DECIDE_MORE = frozenset({"overlap", "queue", "seats", "priority", "spread"})
"""Default rules that are also kept beside the tasks which have them, for admission to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaulted:
    """The default rules of one scope, as they were and as they are; `tasks`: how many have other rules by it."""

    project: str | None
    before: Mapping[str, object]
    after: Mapping[str, object]
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """One default rule, of a project or of the store, and how many tasks have it for want of their own."""

    rule: str
    value: object
    project: str | None
    tasks: int


def set_defaults(store: Store, rules: Mapping[str, object], *, project: str | None, by: str) -> Defaulted:
    """Set default rules, given as JSON has them; the others of the scope stay. Tasks have them from now on."""
    read = {name: rule_to_json(value) for name, value in read_defaults(rules).items()}
    with store.write() as session:
        lift_over(session)
        scope = STORE if project is None else project_key(session, project)
        before = session.defaults.all().get(scope, {})
        return _write(session, scope, before, {**before, **read}, by=by)


def write_defaults(store: Store, rules: Mapping[str, object], *, project: str | None, by: str) -> Defaulted:
    """Write the default rules of a scope anew, whole: what is not given is no default there any more."""
    read = {name: rule_to_json(value) for name, value in read_defaults(rules).items()} if rules else {}
    with store.write() as session:
        lift_over(session)
        scope = STORE if project is None else project_key(session, project)
        return _write(session, scope, session.defaults.all().get(scope, {}), read, by=by)


def remove_defaults(store: Store, names: Sequence[str], *, project: str | None, by: str) -> Defaulted:
    """Take default rules away; Invalid for one that is not set there."""
    with store.write() as session:
        lift_over(session)
        scope = STORE if project is None else project_key(session, project)
        before = session.defaults.all().get(scope, {})
        gone = [_known(name, before) for name in names]
        return _write(session, scope, before, {name: before[name] for name in before if name not in gone}, by=by)


def listed(session: Session) -> list[Default]:
    """List every default rule, the store's first, in the order in which rules are told."""
    tasks = session.tasks.in_scope("store", "")
    out = []
    for scope, rules in session.defaults.all().items():
        name = None if scope == STORE else session.projects.name(scope) or scope
        mine = [one.definition for one in tasks if scope in (STORE, key_of(one.definition.project))]
        origin = "store" if scope == STORE else "project"
        for rule in sorted(rules, key=_place):
            having = sum(one.inherited.get(rule) == origin for one in mine)
            out.append(Default(rule=rule, value=rules[rule], project=name, tasks=having))
    return out


def _write(
    session: Session, scope: str, before: Mapping[str, object], after: Mapping[str, object], *, by: str
) -> Defaulted:
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    project = None if scope == STORE else session.projects.name(scope)
    if not changed:
        return Defaulted(project=project, before=before, after=after, tasks=0)
    stores = after if scope == STORE else session.defaults.all().get(STORE, {})
    check_defaults(readable_defaults({**stores, **after}))
    where = ("store", "") if scope == STORE else ("project", scope)
    were = {one.id: one.definition.rules for one in session.tasks.in_scope(*where)}
    session.defaults.set(scope, after)
    if changed & DECIDE_MORE:
        decide_anew(session, *where)
    told = {"defaults": project or "store", "rules": dict(after), "changed": sorted(changed, key=_place)}
    session.ledger.add([Entry(kind="defined", at=session.now, by=by, details=told)])
    touched = sum(one.definition.rules != were[one.id] for one in session.tasks.in_scope(*where))
    return Defaulted(project=project, before=before, after=after, tasks=touched)


def _known(name: str, before: Mapping[str, object]) -> str:
    rule = name.strip().replace("-", "_").lower()
    if rule in before:
        return rule
    if rule not in RULE_NAMES:
        near = nearest(rule, RULE_NAMES)
        raise Invalid(f"there is no rule {shown(name)}", field="RULE", hint=near, details={"allowed": list(RULE_NAMES)})
    hint = f"one of {', '.join(sorted(before, key=_place))}" if before else "duly default list"
    raise Invalid(f"no default is set for {rule} there", field="RULE", hint=hint, details={"set": sorted(before)})


def _place(name: str) -> int:
    return RULE_NAMES.index(name) if name in RULE_NAMES else len(RULE_NAMES)
