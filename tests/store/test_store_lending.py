"""What a run's work is lent to come to the store: a token of its own, which counts until the run has ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_scene import Scene, scene

from duly.operations import tokens
from duly.operations.rail import asker_in_a_run
from duly.store.secrets_made import lend


@pytest.fixture(name="one")
def _one(tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path) as made:
        yield made


@pytest.mark.parametrize(("access", "rights"), [("read", frozenset({"read"})), ("run", frozenset({"read", "run"}))])
def test_a_held_run_is_known_by_its_token_with_the_rights_of_its_task_in_its_project_until_it_ends(
    one: Scene, access: str, rights: frozenset[str]
) -> None:
    won = one.held("one", store_access=access)
    with one.store.write() as session:
        first = lend(session, [(won.run, won.definition)])[won.run.id]
        second = lend(session, [(won.run, won.definition)])[won.run.id]
    with one.store.read() as session:
        asker = tokens.asker_of(session, second)
        assert asker is not None
        assert (asker.rights, asker.projects, asker.run) == (rights, frozenset({"default"}), won.run.id)
        assert tokens.asker_of(session, first) is None, "an earlier attempt's token counts no longer"
        here = asker_in_a_run(session, won.run.id, name="ann")
        assert (here.rights, here.projects) == (rights, frozenset({"default"}))
    one.settle(won)
    with one.store.read() as session:
        assert tokens.asker_of(session, second) is None
        assert asker_in_a_run(session, won.run.id, name="ann").rights == frozenset()


def test_a_run_whose_task_says_nothing_is_lent_nothing_and_tokens_of_ended_runs_go(one: Scene) -> None:
    over, plain = one.held("over", store_access="read"), one.held("plain")
    with one.store.write() as session:
        lend(session, [(over.run, over.definition)])
    one.settle(over)
    other = one.held("other", store_access="read")
    with one.store.write() as session:
        assert lend(session, [(plain.run, plain.definition)]) == {}
        lend(session, [(other.run, other.definition)])
        assert [one.run for one in session.tokens.all()] == [other.run.id]
