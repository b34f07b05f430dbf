"""Whether a function is where it is said to be: read from its module's source, of which nothing is run.

Only what is certain is told. A module whose names cannot be known without running it is believed; its own process
has the last word.
"""

import ast
import importlib
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

SOURCE_MOST = 4 * 1024 * 1024
MODULES_KEPT = 100
UNKNOWABLE = frozenset({"globals", "vars", "setattr", "exec", "eval", "locals", "__import__"})
"""Who calls one of these at a module's top may make names that no reader sees."""


def fault(function: str, path: Sequence[str], *, here: bool) -> str | None:
    """Say what is wrong with `package.module:function`, looked for along this path; None where nothing is known to be.

    `here`: it will be called in this process, so that a module which is loaded is asked itself.
    """
    module, _, name = function.partition(":")
    if here and module in sys.modules and not _is_being_imported(module):
        return _loaded_fault(module, name)
    try:
        spec = _find(module, path)
    except _Missing as missing:
        return f"there is no module {missing}"
    except Exception:  # noqa: BLE001 - finders of others may do anything; what cannot be looked up is believed
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    try:
        stamp = Path(spec.origin).stat()
        names = _names(spec.origin, stamp.st_mtime_ns, stamp.st_size)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    return None if names is None else _absent(module, name, names)


class _Missing(Exception):
    """The module, or a package it lies in, is nowhere."""


def _is_being_imported(module: str) -> bool:
    """Whether another thread is still at it: its names come one by one, and what it lacks now it may have soon."""
    return bool(getattr(getattr(sys.modules[module], "__spec__", None), "_initializing", False))


def _loaded_fault(module: str, name: str) -> str | None:
    found: object = sys.modules[module]
    for word in name.split("."):
        try:
            found = getattr(found, word)
        except AttributeError:
            return f"{module} has no {name}" + _near(word, dir(found))
    return None if callable(found) else f"{module}:{name} cannot be called: it is of type {type(found).__name__}"


def _find(module: str, path: Sequence[str]) -> ModuleSpec | None:
    """Find a module's place, package by package, without importing any; None where that cannot be told."""
    locations: Sequence[str] | None = None
    whole = ""
    spec = None
    for word in module.split("."):
        whole = f"{whole}.{word}" if whole else word
        spec = _spec(whole, locations, path)
        if spec is None:
            importlib.invalidate_caches()  # a file that came this instant may not be seen yet
            spec = _spec(whole, locations, path)
        if spec is None:
            raise _Missing(whole)
        inside = spec.submodule_search_locations
        # The live list of a namespace package looks at its parent, which nobody has imported.
        locations = None if inside is None else list(getattr(inside, "_path", inside))
        if locations is None and whole != module:
            raise _Missing(f"{module}: {whole} is no package")
    return spec


def _spec(name: str, locations: Sequence[str] | None, path: Sequence[str]) -> ModuleSpec | None:
    for finder in sys.meta_path:
        if finder is PathFinder:
            spec = _on_path(name, locations if locations is not None else path)
        else:
            spec = finder.find_spec(name, locations)
        if spec is not None:
            return spec
    return None


def _on_path(name: str, path: Sequence[str]) -> ModuleSpec | None:
    try:
        return PathFinder.find_spec(name, path)
    except KeyError:
        # A namespace inside of a package: only where that was imported can the finder make its live list.
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [
            str(inside) for one in path if (inside := Path(one, name.rpartition(".")[2])).is_dir()
        ]
        return spec


@lru_cache(maxsize=MODULES_KEPT)
def _names(origin: str, _mtime_ns: int, size: int) -> dict[str, bool] | None:
    """Give the names that a module has at its top, and whether each may be called; None where that cannot be told."""
    if size > SOURCE_MOST:
        return None
    tree = ast.parse(Path(origin).read_bytes())
    names: dict[str, bool] = {}
    for node in _top(tree.body):
        for name, may in _bound(node):
            names[name] = names.get(name, False) or may
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNKNOWABLE:
            return None
        if isinstance(node, ast.Global):
            names |= dict.fromkeys(node.names, True)
    return None if {"*", "__getattr__"} & names.keys() else names


def _top(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Give every statement and expression of a module that is not inside a function or class."""
    ahead: list[ast.AST] = list(body)
    while ahead:
        node = ahead.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            ahead += ast.iter_child_nodes(node)


def _bound(node: ast.AST) -> Iterator[tuple[str, bool]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, True
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            for alias in aliases:
                yield (alias.asname or alias.name).split(".")[0], True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
            yield name, False
        case ast.Assign(targets=targets):
            for target in targets:
                yield from ((one.id, True) for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            yield name, not isinstance(value, ast.Constant | None)
        case ast.NamedExpr(target=ast.Name(id=name)):
            yield name, True
        case ast.Name(id=name, ctx=ast.Store()):
            yield name, False  # also met within the assignments above, which say more
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
            yield name, True


def _absent(module: str, name: str, names: dict[str, bool]) -> str | None:
    first = name.split(".", maxsplit=1)[0]
    if first not in names:
        return f"{module} has no {first}" + _near(first, [one for one, may in names.items() if may])
    return None if names[first] else f"{module}:{first} cannot be called: it is a constant"


def _near(word: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, names, n=1)
    return f"; it has {near[0]}" if near else ""
