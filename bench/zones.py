"""`bench zones`: EventCloud's experiment on load balancing, with its rules and with ours, over the same tweets.

Tweets are skewed as real ones are: few users write most of them, few topics are in most of them, ids and times grow,
and nearly all IRIs begin alike. A tweet is an event of nine quads, and a tenth with their number, which EventCloud
stores with every event.
"""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from random import Random
from statistics import mean, stdev
from typing import Any

import pyarrow as pa
from rich.console import RenderableType

from bench.harness import Report, Say, describe_machine, make_entries
from bench.plots import BLUE, GREY, RED, SILVER, draw_line, draw_rect, draw_sheet, draw_text, draw_titles
from bench.tables import list_rows
from triplewire.model.terms import RDF_TYPE, TW, XSD
from triplewire.rdf import N_QUADS, decode
from triplewire.sparql import explode, to_sql
from triplewire.storage.lake.balance import BalanceSettings, LoadCriterion, ZoneLoad
from triplewire.storage.lake.data_files import connect_duckdb
from triplewire.storage.lake.keys import KEYED, QuadPoint, row_points
from triplewire.storage.lake.rebalancing import ZONE_SAMPLE, plan_rebalance
from triplewire.storage.lake.zones import ZoneLayout, zone_expression

QUADS = 10
BATCH = 500
"""Tweets that come in at once while zones are balanced in between."""

_TWITTER, _SIOC, _DC = "http://twitter.com/", "http://rdfs.org/sioc/ns#", "http://purl.org/dc/terms/"
_USERS, _TOPICS, _WORDS = 3_000, 800, 2_000
_SYLLABLES = ("ka", "ri", "to", "me", "lu", "sha", "ne", "dor", "vi", "pa", "st", "en", "go", "ya", "fi", "ber")
_LANGUAGES = ("en", "ja", "es", "pt", "id", "ar", "fr", "tr", "ru", "ko")
_PLACES = ("London", "São Paulo", "東京", "New York", "Jakarta", "Paris", "Istanbul", "Москва", "Los Angeles", "Nice")
_EVENT = "".join(
    f"<{_TWITTER}{{user}}/status/{{id}}> {predicate} {obj} <{_TWITTER}{{user}}#{{stamp}}-{{id}}> .\n"
    for predicate, obj in (
        (RDF_TYPE, f"<{_SIOC}MicroblogPost>"),
        (f"<{_SIOC}has_creator>", f"<{_TWITTER}{{user}}>"),
        (f"<{_SIOC}content>", '"{content}"@{language}'),
        (f"<{_DC}created>", f'"{{time:%Y-%m-%dT%H:%M:%SZ}}"^^<{XSD}dateTime>'),
        (f"<{_DC}language>", '"{language}"'),
        (f"<{_SIOC}topic>", f"<{_TWITTER}search?q=%23{{topic}}>"),
        (f"<{_TWITTER}ns#followers>", f'"{{followers}}"^^<{XSD}integer>'),
        (f"<{_TWITTER}ns#retweets>", f'"{{retweets}}"^^<{XSD}integer>'),
        (f"<{_TWITTER}ns#place>", '"{place}"'),
        (f"<{TW}quads>", f'"{QUADS - 1}"^^<{XSD}integer>'),
    )
)
_EXPLODED = to_sql(explode("entries", KEYED), "duckdb")


def write_tweets(count: int, size: int) -> Iterator[bytes]:
    """Yield the N-Quads of so many tweets, at most `size` in a body. They are always the same."""
    tweets = _write_tweets(count)
    for first in range(0, count, size):
        yield "".join(next(tweets) for _ in range(min(size, count - first))).encode()


def _write_tweets(count: int) -> Iterator[str]:
    random, at = Random(32), datetime(2013, 6, 1, 12, tzinfo=UTC)
    users, topics, words = (
        ["".join(random.choices(_SYLLABLES, k=random.randint(2, 4))) for _ in range(names)]
        for names in (_USERS, _TOPICS, _WORDS)
    )
    for number in range(count):
        at += timedelta(seconds=random.expovariate(1.0))
        yield _EVENT.format(
            user=_draw_zipf(random, users),
            id=340_000_000_000_000_000 + number * 4_194_304_000 + random.randrange(4_096),
            stamp=int(at.timestamp()),
            content=" ".join(_draw_zipf(random, words) for _ in range(random.randint(4, 14))),
            language=_draw_zipf(random, _LANGUAGES),
            topic=_draw_zipf(random, topics),
            time=at,
            followers=int(random.lognormvariate(5.5, 1.8)),
            retweets=int(random.paretovariate(1.1)) - 1,
            place=_draw_zipf(random, _PLACES),
        )


def _draw_zipf(random: Random, names: Sequence[str]) -> str:
    """Draw the second half as often as the first, the third a third as often, and so on."""
    weights = _sum_harmonics(len(names))
    return names[bisect(weights, random.random() * weights[-1])]


@cache
def _sum_harmonics(count: int) -> Sequence[float]:
    return [*accumulate(1 / number for number in range(1, count + 1))]


def _explode_tweets(count: int, size: int) -> Iterator[pa.Table]:
    """Yield rows of the lake for each body of tweets, as `store` makes them."""
    duck = connect_duckdb()
    for body in write_tweets(count, size):
        events = enumerate(decode(body, N_QUADS))
        rows = ({"position": at, "stream": "tweets", "event": each.id, "text": each.text} for at, each in events)
        duck.register("entries", make_entries(rows))
        yield pa.table(duck.sql(_EXPLODED))


class ZonedTable:
    """Quads in a table of DuckDB, each with its zone, kept even by the pipeline's planner."""

    def __init__(self, settings: BalanceSettings) -> None:
        self.zones = ZoneLayout(order=settings.transformation)
        self.moved = 0
        """Quads that went from one zone to another."""
        self._settings, self._duck, self._made = settings, connect_duckdb(), False

    def insert(self, rows: pa.Table) -> None:
        verb, self._made = "INSERT INTO quads" if self._made else "CREATE TABLE quads AS", True
        zone = to_sql(zone_expression(self.zones), "duckdb")
        self._duck.register("rows", rows)
        self._duck.execute(f"{verb} SELECT {', '.join(KEYED)}, {zone} AS zone FROM rows")
        self._duck.unregister("rows")

    def balance(self) -> None:
        """Follow the plan: quads of zones that go move to those that replace them."""
        loads = self.count_quads()
        found = plan_rebalance(
            self.zones, {zone: ZoneLoad(count) for zone, count in loads.items()}, self._sample(), self._settings
        )
        gone = [zone.id for move in found.moves for zone in move.gone]
        self.zones = found.after
        if gone:
            self.moved += sum(loads.get(zone, 0) for zone in gone)
            zone = to_sql(zone_expression(self.zones), "duckdb")
            self._duck.execute(f"UPDATE quads SET zone = {zone} WHERE zone IN (SELECT unnest($1))", [gone])

    def count_quads(self) -> dict[str, int]:
        """Return the quads by zone; zones without any are left out."""
        return dict(self._duck.execute("SELECT zone, count(*) FROM quads GROUP BY zone").fetchall())

    def _sample(self) -> dict[str, list[QuadPoint]]:
        """Return some quads of each zone, in all as many as the pipeline looks at."""
        sql = f"SELECT * FROM quads USING SAMPLE reservoir({ZONE_SAMPLE} ROWS) REPEATABLE (7)"
        found, samples = pa.table(self._duck.sql(sql)), dict[str, list[QuadPoint]]()
        for zone, point in zip(found["zone"].to_pylist(), row_points(found), strict=True):
            samples.setdefault(zone, []).append(self.zones.placed(point))
        return samples


def deviation(loads: Sequence[float]) -> float:
    """Return the relative standard deviation of a sample, in per cent: with 32 zones, 566 where one has everything."""
    return 100 * stdev(loads) / mean(loads) if len(loads) > 1 and any(loads) else 0.0


@dataclass(frozen=True)
class ZoneExperiment:
    """Settings, whether all data is there from the beginning, and the figure of the thesis with such settings."""

    name: str
    title: str
    settings: BalanceSettings
    static: bool
    thesis: float | None = None


def make_experiments(quads: int, zones: int) -> tuple[ZoneExperiment, ...]:
    """Return those of the thesis first, which cuts dimensions in turn and never merges."""
    once, damped, both = (
        (LoadCriterion("quads", 1.0, 0.0),),
        (LoadCriterion("quads", 1.1, 0.0),),
        (LoadCriterion("quads", 1.2, 0.8),),
    )

    def theirs(
        strategy: str, criteria: tuple[LoadCriterion, ...], cut: str, estimates: tuple[float, ...] = ()
    ) -> BalanceSettings:
        return BalanceSettings(strategy, zones, criteria, estimates, cut, "turn", smallest=1)

    absolute = theirs("absolute", once, "centroid", (quads / zones,))
    return (
        ZoneExperiment("middle", "static, middle", theirs("static", once, "middle"), True, 559.4),
        ZoneExperiment("centroid", "static, centroid", theirs("static", once, "centroid"), True, 69.5),
        ZoneExperiment("absolute", "dynamic, absolute", absolute, False, 119.75),
        ZoneExperiment("relative", "dynamic, relative", theirs("relative", damped, "centroid"), False, 96.57),
        ZoneExperiment("static", "static, quantile, best", BalanceSettings("static", zones, once, smallest=1), True),
        ZoneExperiment(
            "dynamic", "dynamic, quantile, best", BalanceSettings("relative", zones, both, smallest=1), False
        ),
    )


def run(events: int, zones: int, say: Say, batch: int = BATCH) -> Report:
    """Measure all experiments, one after the other."""
    say(f"making {events:,} tweets")
    batches, found = [*_explode_tweets(events, batch)], {}
    for experiment in make_experiments(events * QUADS, zones):
        say(experiment.title)
        found[experiment.name] = _measure(experiment, batches, zones)
    quads = sum(each.num_rows for each in batches)
    return {"events": events, "quads": quads, "zones": zones, "experiments": found, "machine": describe_machine()}


def _measure(experiment: ZoneExperiment, batches: Sequence[pa.Table], zones: int) -> Report:
    """Return the loads that an experiment ends with, and the worst deviation after any batch but the first."""
    began = time.perf_counter()
    lake, between = ZonedTable(experiment.settings), []
    for batch in [pa.concat_tables(batches)] if experiment.static else batches:
        lake.insert(batch)
        lake.balance()
        held = [*lake.count_quads().values()]
        loads = held + [0] * (zones - len(held))
        between.append(deviation(loads))
    return {
        "title": experiment.title,
        "thesis_rsd": experiment.thesis,
        "rsd": round(between[-1], 2),
        "worst_rsd": round(max(between[1:], default=between[0]), 2),
        "used": sum(load > 0 for load in loads),
        "moved": lake.moved,
        "seconds": round(time.perf_counter() - began, 2),
        "loads": sorted(loads, reverse=True),
    }


def make_tables(report: Report) -> list[RenderableType]:
    title = f"{report['quads']:,} quads in {report['zones']} zones: relative standard deviation, %"
    columns = {"title": "strategy, cut", "thesis_rsd": "thesis", "rsd": "measured", "worst_rsd": "worst on the way"}
    columns |= {"used": "zones with quads", "moved": "quads moved"}
    return [list_rows(title, columns, report["experiments"].values())]


def draw(report: Mapping[str, Any]) -> str:
    """Draw the loads of zones in each experiment, the fullest first; a bar above twice the ideal is cut off there."""
    left, top, row, high, bar = 190, 56, 62, 44, 15
    right, ideal = left + report["zones"] * bar, report["quads"] / report["zones"]
    title = f"{report['quads']:,} quads of {report['events']:,} tweets in {report['zones']} zones"
    below = "dashed: all the same; grey: rules of the thesis; blue: ours"
    parts = draw_titles(f"{title}: quads in each, the fullest first", below)
    for number, each in enumerate(report["experiments"].values()):
        base, theirs = top + number * row + high, each["thesis_rsd"]
        parts.append(draw_text(left - 10, base - 16, each["title"], "end", size=12))
        for at, load in enumerate(each["loads"]):
            tall = round(min(load / ideal, 2) * high / 2, 1)
            parts.append(draw_rect(left + at * bar, base - tall, bar - 2, tall, BLUE if theirs is None else SILVER))
        middle, style = base - high / 2, ' stroke-dasharray="4 3" opacity="0.6"'
        parts.append(draw_line(left, middle, right, middle, RED, style))
        parts.append(draw_text(right + 8, base - 18, f"RSD {each['rsd']:g} %", size=12))
        if theirs is not None:
            parts.append(draw_text(right + 8, base - 4, f"thesis {theirs:g} %", colour=GREY, size=10))
    return draw_sheet(right + 130, top + len(report["experiments"]) * row + 10, parts)
