"""Time zones by their IANA names: from the tzdata package first, the system's data where those know more.

Zones are loaded once and shared: the same name gives the same object.
"""

import os
from functools import lru_cache
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import tzdata  # type: ignore[import-untyped]

from duly.errors import Invalid

PACKAGE = Path(tzdata.__file__).parent
MAX_NAME = 100
SPELLINGS_KEPT = 1024
SUGGESTIONS = 3
NOT_ZONES = frozenset({"Factory", "localtime", "posixrules"})
"""Names in the database that stand for no place."""
STANDING = frozenset({"UTC", "GMT", "UCT", "Zulu", "Universal", "Greenwich", "GMT0", "GMT+0", "GMT-0"})
FIXED = {"EST": "UTC-5", "MST": "UTC-7", "HST": "UTC-10"}
MEANT = {
    "AEDT": ("Australia/Sydney",),
    "AEST": ("Australia/Sydney", "Australia/Brisbane"),
    "AKST": ("America/Anchorage",),
    "AST": ("America/Halifax", "America/Puerto_Rico", "Asia/Riyadh"),
    "BST": ("Europe/London", "Asia/Dhaka", "Pacific/Bougainville"),
    "CDT": ("America/Chicago", "America/Havana"),
    "CEST": ("Europe/Berlin", "Europe/Paris"),
    "CST": ("Asia/Shanghai", "America/Chicago", "America/Havana"),
    "EAT": ("Africa/Nairobi",),
    "ECT": ("Europe/Paris", "America/Guayaquil"),
    "EDT": ("America/New_York",),
    "EEST": ("Europe/Helsinki", "Europe/Kyiv"),
    "GST": ("Asia/Dubai", "Atlantic/South_Georgia"),
    "HKT": ("Asia/Hong_Kong",),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "JST": ("Asia/Tokyo",),
    "KST": ("Asia/Seoul",),
    "MDT": ("America/Denver",),
    "MSK": ("Europe/Moscow",),
    "NST": ("America/St_Johns",),
    "NZDT": ("Pacific/Auckland",),
    "NZST": ("Pacific/Auckland",),
    "PDT": ("America/Los_Angeles",),
    "PST": ("America/Los_Angeles", "Asia/Manila", "Pacific/Pitcairn"),
    "SGT": ("Asia/Singapore",),
    "SST": ("Pacific/Pago_Pago", "Asia/Singapore"),
    "WEST": ("Europe/Lisbon",),
    "WIB": ("Asia/Jakarta",),
}
"""Abbreviations that the database does not know as names, and the zones people mean by them."""


@lru_cache(maxsize=SPELLINGS_KEPT)
def zone(key: str) -> ZoneInfo:
    """Give the zone of an IANA name in any case; Invalid (field `zone`) with what may be meant if there is none."""
    return _load(canonical(key))


def canonical(key: str) -> str:
    """Give the name as the database spells it; Invalid (field `zone`) if it has none such."""
    name = _spelled().get(key.strip(" \t\r\n").lower())
    if name is None:
        raise _unknown(key.strip(" \t\r\n"))
    return name


def stands_still(key: str) -> bool:
    """Tell whether a zone has one offset by whatever data: it stands for no place."""
    return key in STANDING or key.startswith("Etc/")


def warning(key: str) -> str | None:
    """Say what surprises about a zone's name, or None: EST, MST and HST know no summer time."""
    name = canonical(key)
    if name not in FIXED:
        return None
    places = {"EST": "America/New_York", "MST": "America/Denver", "HST": "Pacific/Honolulu"}
    return f"{name} is {FIXED[name]} all year, without summer time; name a place for it, such as {places[name]}"


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Every name that `zone` knows, sorted."""
    listed = (PACKAGE / "zones").read_text(encoding="ascii").split()
    folder = _system_folder()
    system = _system_names(folder) if folder else ()
    return tuple(sorted({*listed, *system} - NOT_ZONES))


@lru_cache(maxsize=1)
def zone_data_version() -> str:
    """Give the release of the zone data in use, such as `2026f`."""
    return max(str(tzdata.IANA_VERSION), _system_version())


def machine_zone() -> str | None:
    """Give the IANA name of this machine's zone (or of `TZ`), or None where it has none."""
    wish = os.environ.get("TZ")
    if wish is None:
        wish = _asked_of_the_system()
    if wish is None:
        return None
    name = wish.removeprefix(":")
    if name.startswith("/"):
        name = name.partition("zoneinfo/")[2]
    elif not name:
        return "UTC"  # an empty TZ is UTC, says POSIX
    return _spelled().get(name.lower())


def _asked_of_the_system() -> str | None:
    """Ask tzlocal, which reads the system's files; whatever it cannot read has no name for us."""
    import warnings

    import tzlocal

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return tzlocal.get_localzone_name()
        except (KeyError, ValueError, OSError):
            return None


def _unknown(key: str) -> Invalid:
    shown = key[:MAX_NAME]
    meant = MEANT.get(key.upper())
    if meant:
        message = f"`{shown}` is an abbreviation, not the name of a zone"
        return Invalid(message, field="zone", text=shown, at=0, hint=" or ".join(meant))
    if key[:1] in "+-" or key[:3].upper() in ("UTC", "GMT"):
        hint = "Europe/Berlin for a place, UTC, or Etc/GMT-2 for two hours ahead of UTC all year"
    else:
        hint = " or ".join(_nearest(shown)) or "an IANA name such as Europe/Berlin"
    return Invalid(f"`{shown}` is not the name of a zone", field="zone", text=shown, at=0, hint=hint)


def _nearest(key: str) -> list[str]:
    import difflib

    wanted = key.lower().replace(" ", "_")
    last = wanted.rpartition("/")[2]
    spelled = _spelled()
    exact = [name for lower, name in spelled.items() if last and lower.rpartition("/")[2] == last]
    near = [spelled[lower] for lower in difflib.get_close_matches(wanted, spelled, SUGGESTIONS)]
    cities = {lower.rpartition("/")[2]: name for lower, name in spelled.items()}
    alike = [cities[city] for city in difflib.get_close_matches(last, cities, SUGGESTIONS)]
    return list(dict.fromkeys([*exact, *near, *alike]))[:SUGGESTIONS]


@lru_cache(maxsize=1)
def _spelled() -> dict[str, str]:
    return {name.lower(): name for name in names()}


@lru_cache(maxsize=1024)
def _load(name: str) -> ZoneInfo:
    """Load a name of `names()`; only those reach the file system, so no path can be smuggled in."""
    folder = _system_folder()
    packaged = PACKAGE / "zoneinfo" / name
    newer = folder is not None and _system_version() > tzdata.IANA_VERSION
    path = packaged
    if folder is not None and (not packaged.is_file() or (newer and (folder / name).is_file())):
        path = folder / name
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=1)
def _system_folder() -> Path | None:
    return next((Path(folder) for folder in TZPATH if (Path(folder) / "tzdata.zi").is_file()), None)


@lru_cache(maxsize=1)
def _system_version() -> str:
    """Release of the system's data, or nothing: without `tzdata.zi` they do not tell, and the package is taken."""
    folder = _system_folder()
    if folder is None:
        return ""
    with (folder / "tzdata.zi").open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    return first.removeprefix("# version ").strip() if first.startswith("# version ") else ""


def _system_names(folder: Path) -> tuple[str, ...]:
    listed = folder / "tzdata.zi"
    names = []
    with listed.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if line.startswith("Z "):
                names.append(words[1])
            elif line.startswith("L "):
                names.append(words[2])
    return tuple(name for name in names if (folder / name).is_file())
