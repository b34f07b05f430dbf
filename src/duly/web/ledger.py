"""The ledger, who serves and served, and when nobody did."""

from typing import Annotated

from fastapi import APIRouter, Response

from duly.operations import holding, listing, outages, shapes
from duly.web import fields
from duly.web.describing import described
from duly.web.fields import Moment, Word, choice, one_of
from duly.web.frame import Reads
from duly.web.pages import Paged, listed

router = APIRouter(tags=["status"])


@router.get("/ledger", **described("Read the ledger", right="read", answer="[ledger]"))
def ledger(
    ask: Reads, page: Paged, task: Word = None, run: Word = None, project: Word = None, since: Moment = None
) -> Response:
    """List the ledger's entries, the oldest first: all, or the story of a task or a run."""
    with ask.store.read() as session:
        if run is not None:
            story = session.ledger.of_run(ask.run(session, run).id)
            after = listing.seq_cursor(page.cursor)
            left = [one for one in story if one.seq > after]
            found, following = left[: page.most], left[page.most - 1].seq if len(left) > page.most else None
        else:
            found, following = listing.ledger(
                session,
                task=fields.task_of_past(ask, session, task),
                since=None if since is None else fields.instant(since, "since", session.now),
                after=listing.seq_cursor(page.cursor),
                most=page.most,
                projects=fields.projects(ask, project),
            )
    return listed(page, [shapes.entry(one) for one in found], None if following is None else str(following))


@router.get("/holders", **described("List who serves", right="read", answer="[holder]"))
def holders(ask: Reads, page: Paged, state: Annotated[str | None, choice(*holding.STATES)] = None) -> Response:
    """List the processes that serve or served this store, the newest first."""
    ask.check_everything("who serves")
    one_of(state, "state", holding.STATES)
    with ask.store.read() as session:
        items, following = holding.holders(ask.store, session, state=state, cursor=page.cursor, most=page.most)
    return listed(page, items, following)


@router.get("/outages", **described("List the outages", right="read", answer="[outage]"))
def all_outages(ask: Reads, page: Paged, since: Moment = None) -> Response:
    """List when nobody served, the machine slept or its clock was set, with what was missed by it."""
    ask.check_everything("the list of outages")
    cursor = None if page.cursor is None else listing.seq_cursor(page.cursor)
    with ask.store.read() as session:
        begin = None if since is None else fields.instant(since, "since", session.now)
        items, following = outages.outages(ask.store, session, since=begin, cursor=cursor, most=page.most)
    return listed(page, items, None if following is None else str(following))
