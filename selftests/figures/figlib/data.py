# SPDX-License-Identifier: GPL-2.0
"""What was measured, by run: results of brumm bench, and what stands beside."""

import math
import statistics

from . import Trouble, load


class Raw:
    """The files of one lane."""

    def __init__(self, folder):
        self.folder = folder
        self.loaded = {}

    def has(self, name):
        return (self.folder / f"{name}.json").exists()

    def file(self, name):
        path = self.folder / f"{name}.json"
        if name not in self.loaded:
            if not path.exists():
                raise Trouble(f"{path} is missing: measure first (make figures)")
            self.loaded[name] = load(path)
        return self.loaded[name]

    def results(self, name, bench, **where):
        """Results of a benchmark, base lines too, in order of size and repeat."""
        doc = self.file(name)
        found = [r for r in doc["results"] + doc["baselines"]
                 if r["bench"] == bench
                 and all(r[k] == v for k, v in where.items())]
        if not found:
            raise Trouble(f"{name}.json has no result of {bench}: "
                          f"left out were {doc.get('left_out') or 'none'}")
        return sorted(found, key=lambda r: (r["size"], r["cpus"], r["repeat"]))

    def same(self, bench, names):
        """By configuration, results of the same trees; in order of the first."""
        tables = [{(r["size"], r["seed"]): r for r in self.results(name, bench)}
                  for name in names]
        keys = [k for k in tables[0] if all(k in t for t in tables)]
        if not keys:
            raise Trouble(f"{', '.join(names)} have no tree in common")
        return [[t[k] for t in tables] for k in keys]

    def where(self, name):
        """Lane, mode and noise, as they stand beside every figure."""
        doc = self.file(name)
        machine = doc["machine"]
        return {
            "lane": machine["lane"], "mode": machine["mode"],
            "release": machine["release"],
            "noise": {"clock": doc["noise"]["clock_ns"]["median"],
                      "clock_spread": spread_of(doc["noise"]["clock_ns"]),
                      "ioctl": doc["noise"]["ioctl_ns"]["median"],
                      "ioctl_spread": spread_of(doc["noise"]["ioctl_ns"])},
        }


Z99 = 2.326     # of a normal distribution


def predicted_p99(prices, run):
    """As brumm predict: what varies together, and what varies each for itself."""
    common = prices["cover"]["p99"]
    if run["predicted_ns"] is None or common is None:
        return None
    spread = sum(n * (prices["terms"][kind]["sd"] or 0) ** 2
                 for kind, n in run["counts"].items())
    return run["predicted_ns"] * max(common, 1) + Z99 * math.sqrt(spread)


def sum_of_p99(prices, run):
    """As the paper: each term at its p99; None where a term has none."""
    terms = {kind: prices["terms"][kind]["p99"] for kind in ("syscall", *run["counts"])}
    if None in terms.values():
        return None
    return terms["syscall"] + sum(n * terms[k] for k, n in run["counts"].items())


PARTS = ("lookup", "zap", "remove", "rest")


def parts_of_unmap(probe):
    """What of a revoke is spent where, for each mapping that goes; or None."""
    whole = probe["ops"]["unmap"]
    if not whole["n"] or not whole["nodes"]:
        return None
    sums = {part: probe["ops"][part]["in_unmap"] for part in PARTS[:-1]}
    sums["rest"] = whole["sum"] - sum(sums.values())
    return {"unmap": whole["sum"] / whole["nodes"]} | \
        {part: some / whole["nodes"] for part, some in sums.items()}


def spread_of(distribution):
    return distribution["p99"] - distribution["min"]


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def percentile(ordered, share):
    """Of values in order, between two neighbours by the way there."""
    if not ordered:
        return None
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def ratio(a, b):
    return a / b if a is not None and b else None


def per_call(each, clock):
    """A call by itself: the clock was read once more than it should count."""
    return {k: each[k] - clock for k in ("min", "p25", "median", "p75", "p99",
                                         "max", "mean")} | {"n": each["n"]}
