"""How things stand, and who serves."""

from fastapi import APIRouter, Response

from duly.operations import standing
from duly.web.describing import described
from duly.web.frame import Reads, answer

router = APIRouter(tags=["status"])


@router.get("/status", **described("How things stand", right="read", answer="status"))
def status(ask: Reads) -> Response:
    """Count what there is, what goes on, and what wants a person; of the whole store."""
    ask.check_everything("the status")
    with ask.store.read() as session:
        return answer(standing.status(ask.store, session))
