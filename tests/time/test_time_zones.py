"""Zones by name, and the stretches that the law is made of."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from zoneinfo import _zoneinfo as reference  # type: ignore[attr-defined]

import pytest
from hypothesis import given
from hypothesis import strategies as st
from time_draws import DRAWS

from duly import zones
from duly.core.wallclock import SAMPLE_BITS, SLACK, instant_of, offset_at, stretch_at
from duly.errors import Invalid

EARLY, LATE = datetime.fromisoformat("1800-01-01"), datetime.fromisoformat("2500-01-01")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        (" AMERICA/NEW_YORK ", "America/New_York"),
        ("Europe/Kiev", "Europe/Kiev"),
        ("utc", "UTC"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("US/Pacific", "US/Pacific"),
        ("EST", "EST"),
    ],
)
def test_a_zone_is_found_in_any_case_and_keeps_the_name_it_was_given(key: str, name: str) -> None:
    assert zones.canonical(key) == name
    assert zones.zone(key).key == name
    assert zones.zone(key) is zones.zone(name)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("CST", "Asia/Shanghai or America/Chicago or America/Havana"),
        ("cst", "Asia/Shanghai"),
        ("IST", "Asia/Kolkata"),
        ("Europe/Atlantis", "Europe/"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Europe/Berln", "Europe/Berlin"),
        ("UTC+2", "Etc/GMT-2"),
        ("+02:00", "Etc/GMT-2"),
        ("", "Europe/Berlin"),
        ("../../etc/passwd", ""),
        ("/etc/localtime", ""),
        ("Europe/../UTC", ""),
        ("Europe", "Europe/"),
        ("Factory", ""),
        ("posixrules", ""),
        ("right/UTC", ""),
        ("x" * 5000, ""),
        ("Europe/Berlin\x00", "Europe/Berlin"),
    ],
)
def test_an_unknown_zone_or_abbreviation_is_refused_with_the_names_that_may_be_meant(key: str, hint: str) -> None:
    with pytest.raises(Invalid) as refused:
        zones.zone(key)
    assert refused.value.field == "zone"
    assert refused.value.hint is not None
    assert hint in refused.value.hint


def test_names_without_summer_time_carry_a_warning_and_others_none() -> None:
    for name in ("EST", "MST", "HST"):
        assert "without summer time" in str(zones.warning(name))
    for name in ("UTC", "Etc/GMT-2", "Europe/Berlin", "EST5EDT", "GMT"):
        assert zones.warning(name) is None


def test_every_listed_name_loads_and_the_data_have_a_version() -> None:
    assert len(zones.names()) > 590
    for name in zones.names():
        assert datetime(2026, 1, 1, tzinfo=zones.zone(name)).utcoffset() is not None
    assert zones.zone_data_version() >= "2026a"


def test_zones_come_from_the_package_where_the_system_has_none() -> None:
    program = "from duly import zones; print(zones.zone('Asia/Gaza').key, len(zones.names()) > 590)"
    env = {"PYTHONTZPATH": "", "PATH": ""}
    run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["Asia/Gaza", "True"]


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("", "UTC"),
        ("UTC", "UTC"),
        ("EST5EDT", "EST5EDT"),
        ("CST", None),
        ("CET-1CEST", None),
        ("/tmp/somewhere", None),
    ],
)
def test_the_machines_zone_respects_tz_and_is_none_without_an_iana_name(
    monkeypatch: pytest.MonkeyPatch, wish: str, name: str | None
) -> None:
    monkeypatch.setenv("TZ", wish)
    assert zones.machine_zone() == name


def test_the_machines_zone_without_tz_is_a_name_we_know_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    name = zones.machine_zone()
    assert name is None or name in zones.names()


def test_no_stretch_in_the_zone_data_is_shorter_than_the_samples_that_find_them() -> None:
    shortest = timedelta(days=365)
    for name in zones.names():
        data = files("tzdata").joinpath("zoneinfo", *name.split("/"))
        if not data.is_file():
            continue
        zone = reference.ZoneInfo.from_file(BytesIO(data.read_bytes()), key=name)
        offsets = [zone._tti_before.utcoff, *(found.utcoff for found in zone._ttinfos)]
        real = [at for i, at in enumerate(zone._trans_utc) if offsets[i] != offsets[i + 1]]
        for left, right in pairwise(real):
            shortest = min(shortest, timedelta(seconds=right - left))
    assert shortest > timedelta(seconds=(1 << SAMPLE_BITS) + SLACK)


@given(st.sampled_from(zones.names()), st.datetimes(EARLY, LATE))
@DRAWS
def test_a_stretch_has_one_offset_all_along_and_another_beyond_its_ends(name: str, moment: datetime) -> None:
    zone, at = zones.zone(name), int(moment.replace(tzinfo=UTC).timestamp())
    start, end, offset, before, after = stretch_at(zone, at)
    assert start <= at < end

    def really(seconds: int) -> int:
        there = instant_of(seconds).astimezone(zone).utcoffset()
        assert there is not None
        return int(there.total_seconds())

    assert [really(seconds) for seconds in (start, at, end - 1)] == [offset] * 3
    assert (really(start - 1), really(end)) == (before, after)
    assert offset_at(zone, at) == offset
    if before == offset:
        assert at - start >= SLACK
    if after == offset:
        assert end - at >= SLACK
