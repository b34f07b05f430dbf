"""The page of OpenAPI is true: whatever is asked by it is answered as it says, and never by a fault of ours."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from web_scene import Web, web_over
from work_scene import added, asking, offered

from duly.operations.audit import verify
from duly.web.making import inner, make_app

EACH = 1
"""Requests of each kind to each route: few, since each change runs them; more by hand now and then."""
BOTH = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
ENDLESS = ("/stream", "/log")
"""What goes on as long as one listens; asked by tests of its own."""
# A cursor, an id or a WHEN is a text like any other to a schema: what it means is refused with a reason, or taken.
BEYOND_SCHEMAS: list[Any] = [positive_data_acceptance, negative_data_rejection]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Web, Mapping[str, str]]]:
    """A store in which something of each kind is there, and the words by which paths name it."""
    with web_over(tmp_path_factory.mktemp("lived")) as web:
        task = added(web, "report", project="shop", rules={"on_missed": "offer"})
        web.ask("PUT", "/limits/gpu", json={"n": 3})
        run, question = asking(web, added(web, "asks"))
        missed = offered(web, task, datetime(2026, 3, 1, 8, tzinfo=UTC))
        yield web, {"tasks": task, "runs": run, "questions": question, "missed": missed, "limits": "gpu"}


def operations(web: Web) -> list[Any]:
    loaded: Any = schemathesis.openapi.from_asgi("/openapi.json", make_app(web.house), headers={"Host": "localhost"})
    found = [one.ok() for one in loaded.get_all_operations()]
    assert len(found) > 50
    return [one for one in found if not one.path.endswith(ENDLESS)]


def requests_to(operation: Any, mode: Any, ask: Callable[[Any], None]) -> Callable[[], None]:
    """Requests of one kind to one route, each of them given to `ask`."""

    @settings(
        max_examples=EACH,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def each(case: Any) -> None:
        ask(case)

    return each


def test_whatever_is_asked_by_the_page_is_answered_as_it_says(lived: tuple[Web, Mapping[str, str]]) -> None:
    web, named = lived
    headers = {**web.as_(), "Host": "localhost"}
    asked: list[str] = []

    def ask(case: Any) -> None:
        asked.append(case.operation.label)
        noun = case.operation.path.removeprefix("/api/v1/").partition("/")[0]
        # What paths name is there in every second request: else all would end with "there is no such task".
        if noun in named and len(asked) % 2 and case.path_parameters:
            case.path_parameters = dict.fromkeys(case.path_parameters, named[noun])
        case.call_and_validate(headers=headers, excluded_checks=BEYOND_SCHEMAS)

    for operation in operations(web):
        # Only bodies can be wrong in ways worth their price; words of queries are tried by tests of their own.
        modes = BOTH if len(operation.body) else BOTH[:1]
        for mode in modes:
            with suppress(Unsatisfiable):  # a route that takes nothing cannot be asked wrongly
                requests_to(operation, mode, ask)()
    assert len(asked) > 70
    assert web.told == []
    assert verify(web.store) == []


def test_every_example_of_the_page_is_what_its_schema_says(lived: tuple[Web, Mapping[str, str]]) -> None:
    page = inner(lived[0].house).openapi()
    assert page["openapi"].startswith("3.1")
    schemas = page["components"]["schemas"]
    seen = 0
    for content in contents(page):
        if "example" in content:
            whole = {"$ref": content["schema"]["$ref"]} if "$ref" in content["schema"] else content["schema"]
            wanted = {**whole, "components": {"schemas": schemas}}
            jsonschema_rs.validator_for(wanted).validate(content["example"])
            seen += 1
    assert seen > 40


def contents(page: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Each body of the page, asked or answered."""
    for methods in page["paths"].values():
        for told in methods.values():
            yield from told.get("requestBody", {}).get("content", {}).values()
            for answer in told["responses"].values():
                yield from answer.get("content", {}).values()
