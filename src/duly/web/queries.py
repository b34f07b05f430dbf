"""Words of a query, each of which somebody must read: a filter with a typing error in it is no filter at all."""

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from duly.core.reading import nearest, shown
from duly.errors import Invalid


def refuse_unread(request: Request) -> None:
    """Refuse a word of the query that the route does not know."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not request.query_params:
        return
    known = _words(route.dependant)
    for word in request.query_params:
        if word not in known:
            raise Invalid(
                f"{shown(word)} is not known here",
                field=f"query.{word}" if word.isidentifier() else "query",
                hint=nearest(word, known),
                details={"allowed": known},
            )


def _words(of: Dependant) -> list[str]:
    own = [str(one.alias) for one in of.query_params]
    return own + [word for one in of.dependencies for word in _words(one)]
