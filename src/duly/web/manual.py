"""The page that tells what can be asked: made here from the OpenAPI document, without a script or a network."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response

from duly.web.login import allowed

router = APIRouter()
STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto}"
    "code,pre{font:.9rem/1.4 ui-monospace,monospace}pre{overflow:auto;padding:.6rem;border:1px solid #8886}"
    "summary{cursor:pointer;padding:.35rem 0}details{border-bottom:1px solid #8884}h2{margin-top:2rem}"
    ".m{display:inline-block;min-width:4.5rem;font-weight:bold}.r{float:right;opacity:.75}th,td{text-align:left;"
    "padding:.1rem .8rem .1rem 0;vertical-align:top}"
)
POLICY = f"default-src 'none'; style-src {allowed(STYLE)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
METHODS = ("get", "post", "put", "patch", "delete")


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> Response:
    """Show all that can be asked."""
    text = getattr(request.app.state, "manual", None)
    if text is None:
        text = request.app.state.manual = written(request.app.openapi())
    return Response(text, media_type="text/html", headers={"Content-Security-Policy": POLICY})


def written(page: Mapping[str, Any]) -> str:
    """Write an OpenAPI document as a page."""
    groups: dict[str, list[str]] = {}
    for path, methods in page["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                tag = (operation.get("tags") or ["others"])[0]
                groups.setdefault(tag, []).append("".join(_operation(path, method, operation)))
    info = page["info"]
    parts = [f"<h2>{escape(tag)}</h2>{''.join(operations)}" for tag, operations in groups.items()]
    contents = " · ".join(escape(tag) for tag in groups)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(info['title'])}: what can be asked</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f'<p>{contents}</p><p>All of it as <a href="/openapi.json">OpenAPI {escape(page["openapi"])}</a>. Who asks'
        " says <code>Authorization: Bearer TOKEN</code>, of <code>duly token create NAME --rights read</code>.</p>"
        f"{''.join(parts)}</body></html>\n"
    )


def _operation(path: str, method: str, told: Mapping[str, Any]) -> Iterator[str]:
    right = next((one["token"][0] for one in told.get("security", []) if one.get("token")), None)
    yield f'<details><summary><span class="m">{method.upper()}</span> <code>{escape(path)}</code> '
    yield f"{escape(told.get('summary', ''))}"
    yield f'<span class="r">{escape(right)}</span>' if right else ""
    yield f"</summary><p>{escape(told.get('description', ''))}</p>"
    if told.get("parameters"):
        yield "<table><tr><th>parameter</th><th>in</th><th>kind</th></tr>"
        for one in told["parameters"]:
            kind = escape(_kind(one.get("schema", {})))
            yield f"<tr><td><code>{escape(one['name'])}</code></td><td>{escape(one['in'])}</td><td>{kind}</td></tr>"
        yield "</table>"
    for media, content in told.get("requestBody", {}).get("content", {}).items():
        yield f"<p>asked with <code>{escape(media)}</code></p>{_shown(content)}"
    errors = []
    for status, answer in told.get("responses", {}).items():
        if status.startswith(("4", "5")):
            errors.append(f"{status} {answer['description'].lower()}")
            continue
        yield f"<p>answered with {escape(status)} {escape(answer['description'].lower())}</p>"
        for content in answer.get("content", {}).values():
            yield _shown(content)
    yield f"<p>or {escape('; '.join(errors))}</p>" if errors else ""
    yield "</details>\n"


def _shown(content: Mapping[str, Any]) -> str:
    found = content.get("example", content.get("schema"))
    return "" if found is None else f"<pre>{escape(json.dumps(found, indent=2, ensure_ascii=False))}</pre>"


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    bounds = [f"{name} {schema[name]}" for name in ("minimum", "maximum", "default") if name in schema]
    return ", ".join([str(schema.get("type", "any")), *bounds])
