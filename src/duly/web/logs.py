"""What a run wrote, byte for byte: all of it, a range of it, or on while it writes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from duly.core.run import Run
from duly.operations import outputs
from duly.store.pool import Pool
from duly.web import problems, ranges
from duly.web.describing import described, problem
from duly.web.frame import Reads
from duly.web.problems import Unreadable
from duly.web.streaming import Streamed
from duly.web.streams import still_allowed, tail_of

TEXT = "text/plain; charset=utf-8"
POSITION_MOST = 10**18 - 1
ATTEMPTS_MOST = 10**9

router = APIRouter(tags=["runs"])


def _bytes() -> dict[str, Any]:
    told = described("What a run wrote", right="read", errors=(404, 416))
    content = {"text/plain": {"schema": {"type": "string"}, "example": "42 files saved\n"}}
    cut = "Duly-Log-Cut says how many bytes of its middle are not kept, Duly-Log-Bytes how long it is with them"
    told["responses"][200] = {"description": f"all that is kept of it; {cut}", "content": content}
    told["responses"][206] = {
        "description": "the first stretch of the range that is kept; positions count what was cut out",
        "content": content,
    }
    told["responses"][409] = problem(409)
    return told


@router.get("/runs/{run}/log", **_bytes())
def log(
    ask: Reads,
    request: Request,
    run: str,
    follow: Annotated[bool, Query(description="go on until the run ends, over all its attempts")] = False,
    after: Annotated[int, Query(ge=0, le=POSITION_MOST, description="only what follows this position")] = 0,
    attempt: Annotated[int | None, Query(ge=1, le=ATTEMPTS_MOST, description="of several attempts this one")] = None,
    bytes_: Annotated[str | None, Header(alias="Range", description="one range of bytes")] = None,
) -> Response:
    """Give a run's output: of several attempts the last one's, where no other is named."""
    with ask.store.read() as session:
        found = ask.run(session, run)
        folder = outputs.folder_of(ask.store, session, found, attempt)
        kept = outputs.kept(ask.store, folder, session=session)
    if follow:
        if bytes_ is not None:
            hint = "say where to begin by ?after=POSITION"
            raise Unreadable(400, "what is followed has no range", field="Range", hint=hint)
        tail, still = tail_of(request), still_allowed(ask, request)
        return Streamed(
            tail,
            lambda wake: tail.log(wake, found, folder=folder, attempt=attempt, position=after, still=still),
            media_type=TEXT,
        )
    size = kept[-1][1] if kept else 0
    asked = ranges.wanted(bytes_, size)
    told = {
        "Accept-Ranges": "bytes",
        "Duly-Log-Bytes": str(size),
        "Duly-Log-Cut": str(size - sum(end - begin for begin, end in kept)),
    }
    over = found.state == "ended" or (attempt is not None and attempt < found.attempt)
    if asked is None:
        parts = [(max(begin, after), end) for begin, end in kept if end > after]
        if over:
            told["Content-Length"] = str(sum(end - begin for begin, end in parts))
        return _sent(ask.house.pool, folder, parts, 200, told)
    part = ranges.within(asked, kept)
    if part is None:
        return _not_there(found, asked, size)
    told["Content-Range"] = f"bytes {part[0]}-{part[1] - 1}/{size if over else '*'}"
    told["Content-Length"] = str(part[1] - part[0])
    return _sent(ask.house.pool, folder, [part], 206, told)


def _sent(
    pool: Pool, folder: Path | None, parts: Sequence[tuple[int, int]], status: int, told: dict[str, str]
) -> Response:
    return StreamingResponse(_pieces(pool, folder, parts), status_code=status, headers=told, media_type=TEXT)


def _pieces(pool: Pool, folder: Path | None, parts: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Read piece by piece; the connection is given back between two, for a reader may be slow."""
    assert folder is not None or not parts
    for begin, end in parts:
        while begin < end and folder is not None:
            with pool.lent() as store:
                piece = outputs.read(store, folder, begin)
            if not piece.data or piece.at != begin:
                break  # what was kept when it was asked for is gone
            yield piece.data[: end - piece.at]
            begin = piece.next


def _not_there(run: Run, asked: tuple[int, int], size: int) -> Response:
    fault = Unreadable(
        416, f"nothing of {run.id} is kept at {asked[0]:,}", field="Range", hint=f"it is {size:,} bytes long"
    )
    answer = problems.problem(fault)
    answer.headers["Content-Range"] = f"bytes */{size}"
    return answer
