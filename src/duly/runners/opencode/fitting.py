"""Whether a server has what a task asks for: its model, its profile, its variant; it costs nothing to ask."""

from collections.abc import Mapping
from typing import Any

from duly.runners.opencode.api import Api, Strange
from duly.runners.prompting import Unfit

SHOWN_MOST = 12


async def check(api: Api, model: str | None, profile: str | None, variant: str | None) -> None:
    """Raise Unfit where something of it is not there, with what is."""
    if profile is not None:
        names = sorted(str(one["name"]) for one in await api.objects("/agent") if one.get("name"))
        if profile not in names:
            raise Unfit("preflight", f"the agent has no profile {profile!r}; it has {_listed(names)}")
    if model is None and variant is None:
        return
    models, default = _models(await api.fields("/config/providers"))
    if model is not None and model not in models:
        raise Unfit("preflight", f"the agent knows no model {model!r}; it knows {_listed(sorted(models))}")
    if variant is not None:
        chosen = model or default
        variants = sorted(models.get(chosen or "", {}))
        if variant not in variants:
            raise Unfit("preflight", f"the model {chosen} has no variant {variant!r}; it has {_listed(variants)}")


def _models(told: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Any]], str | None]:
    """Give each model by provider/model with its variants, and the one that is taken where none is named."""
    providers = told.get("providers")
    if not isinstance(providers, list):
        raise Strange("the server does not say which models it has")
    models: dict[str, Mapping[str, Any]] = {}
    for provider in providers:
        its = provider.get("models") if isinstance(provider, Mapping) else None
        for name, one in its.items() if isinstance(its, Mapping) else ():
            variants = one.get("variants") if isinstance(one, Mapping) else None
            models[f"{provider.get('id')}/{name}"] = variants if isinstance(variants, Mapping) else {}
    default = told.get("default")
    first = next(iter(default.items()), None) if isinstance(default, Mapping) else None
    return models, None if first is None else f"{first[0]}/{first[1]}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_MOST]) or "none"
    return shown if len(names) <= SHOWN_MOST else f"{shown} and {len(names) - SHOWN_MOST} more"
