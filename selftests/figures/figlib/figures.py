# SPDX-License-Identifier: GPL-2.0
"""The paper's figures, with our system: panels to plot, figures to compare.

A figure holds all that is shown of it, the points in ns as they were measured;
plot.py and page.py add nothing.
"""

from . import CONFIGS
from .axes import axis
from .data import median, per_call, predicted_p99, ratio, sum_of_p99

TITLES = {"disabled": "Disabled", "available": "Available", "used": "Used"}
BENCHES = {"single_frame": "Single Frame", "many_frames": "Many Frames",
           "random_map": "Random Map"}
MIB = 1 << 20
ROOT = ("Available runs in the root cgroup, where the memory controller charges nobody "
        "for a node either: compare Used with Disabled.")


def unit_of(mode):
    return "instructions" if mode == "icount" else "ns"


def panel(title, x, y, series, **more):
    """@x, @y: label, unit, factor; @series: label and points each."""
    shown = [s for s in series if s["points"]]
    return {
        "title": title,
        "x": axis(x, [p[0] for s in shown for p in s["points"]]),
        "y": axis(y, [p[1] for s in shown for p in s["points"]]),
        "series": shown,
    } | more


def line(label, points, style="points"):
    return {"label": label, "style": style, "points": points}


def row(what, paper, ours, unit="", digits=2):
    return {"what": what, "paper": paper, "ours": ours, "unit": unit,
            "digits": digits}


def figure(number, title, what, where, samples, panels, compare):
    return {"id": number, "title": f"Figure {number}: {title}", "what": what,
            "samples": samples, "unit": unit_of(where["mode"]),
            "panels": panels, "compare": compare} | where


def million(mode):
    return ("million " + unit_of(mode), 1e-6)


# Figure 3

PROXIES = (("prepare_ns", "preparation time", None),
           ("map_calls", "map calls", ("thousands", 1e-3)),
           ("kernel_bytes", "kernel memory", ("MiB", 1 / MIB)),
           ("user_bytes", "user memory", ("MiB", 1 / MIB)))


def figure3(raw, paper):
    where = raw.where("frames")
    time = million(where["mode"])
    runs = {b: raw.results("frames", b) for b in ("single_frame", "many_frames")}
    panels = [panel(label, (label, *(unit or time)), ("reclamation", *time),
                    [line(BENCHES[b], [[r[key], r["reclaim_ns"]] for r in some
                                       if r[key] is not None])
                     for b, some in runs.items()])
              for key, label, unit in PROXIES]
    return figure("3", "four proxies against reclamation latency",
                  "Were reclamation a function of the proxy, both benchmarks would "
                  "lie on one line in each panel.",
                  where, sum(map(len, runs.values())), panels,
                  compare3(runs, paper["3"], unit_of(where["mode"])))


def compare3(runs, paper, unit):
    rows, both = [], {}
    for key, name in (("single", "single_frame"), ("many", "many_frames")):
        some, title = runs[name], BENCHES[name]
        call = median([r["reclaim_ns"] / r["map_calls"] for r in some])
        both[key] = call
        rows += [
            row(f"{title}: reclamation / preparation", paper[f"{key}_prepare_ratio"],
                median([r["reclaim_ns"] / r["prepare_ns"] for r in some])),
            row(f"{title}: reclamation per map call", paper[f"{key}_per_call"],
                call, unit, 0),
            row(f"{title}: reclamation per 4 MiB of kernel memory",
                paper[f"{key}_4m"] / 1e6,
                median([4 * MIB * r["reclaim_ns"] / r["kernel_bytes"] / 1e6
                        for r in some if r["kernel_bytes"]]),
                "million " + unit, 1)]
    rows.append(row("Many Frames / Single Frame, per map call",
                    paper["many_per_call"] / paper["single_per_call"],
                    ratio(both["many"], both["single"])))
    return rows


# Figure 8

def figure8(raw, paper):
    where = raw.where("random-used")
    time = million(where["mode"])
    prices = raw.file("prices")
    runs = {"random_map": raw.results("random-used", "random_map")}
    runs |= {b: raw.results("frames", b) for b in ("single_frame", "many_frames")}
    panels = [panel(BENCHES[b], ("runs by measured latency", "", 1),
                    ("latency", *time), predictions(some, prices))
              for b, some in runs.items()]
    return figure("8", "predicted and measured",
                  "Each run is a column of points: measured, and predicted from the "
                  "counts that were charged before. The same prices predict all "
                  "three benchmarks.",
                  where, sum(map(len, runs.values())), panels,
                  compare8(runs, prices, paper["8"], time))


def predictions(runs, prices):
    runs = sorted(runs, key=lambda r: r["reclaim_ns"])

    def points(value):
        return [[i + 1, value(r)] for i, r in enumerate(runs)
                if value(r) is not None]

    return [line("measured", points(lambda r: r["reclaim_ns"])),
            line("by mean", points(lambda r: r["predicted_ns"])),
            line("by p99", points(lambda r: predicted_p99(prices, r)))]


def compare8(runs, prices, paper, time):
    last = max(runs["random_map"], key=lambda r: r["reclaim_ns"])
    mean = last["predicted_ns"]
    rows = [row("Random Map, rightmost: measured", paper["measured"] * 1e-6,
                last["reclaim_ns"] * 1e-6, time[0]),
            row("Random Map, rightmost: predicted by mean", paper["mean"] * 1e-6,
                mean * 1e-6, time[0]),
            row("Random Map, rightmost: predicted by mean / measured",
                paper["mean_ratio"], ratio(mean, last["reclaim_ns"])),
            row("Random Map, rightmost: predicted by p99 / measured",
                paper["p99_ratio"],
                ratio(predicted_p99(prices, last), last["reclaim_ns"])),
            row("Random Map, rightmost: each term at its p99, as in the paper / measured",
                paper["p99_ratio"],
                ratio(sum_of_p99(prices, last), last["reclaim_ns"]))]
    for b, some in runs.items():
        ratios = [r["predicted_ns"] / r["reclaim_ns"] for r in some]
        rows += [row(f"{BENCHES[b]}: least predicted / measured", None, min(ratios)),
                 row(f"{BENCHES[b]}: most predicted / measured", None, max(ratios))]
    return rows


# Figure 9

CALLS = (("leaf_map", "map one page", "map"), ("leaf_unmap", "unmap one leaf", "unmap"))


def figure9(raw, paper):
    where = raw.where("leaves-used")
    unit, panels, compare, n = unit_of(where["mode"]), [], [], 0
    for bench, title, key in CALLS:
        boxes = {}
        for config in CONFIGS:
            name = f"leaves-{config}"
            each = raw.results(name, bench)[0]["each_ns"]
            boxes[config] = per_call(each, raw.where(name)["noise"]["clock"])
            n += each["n"]
        panels.append(box_panel(title, unit, boxes))
        compare += compare9(title, unit, boxes, paper["9"][key])
    return figure("9", "map and leaf unmap in three configurations",
                  "Each call of Random Map by itself. Boxes: quartiles and median; "
                  "whiskers: least and 99th percentile. What reading the clock takes "
                  "is taken out. " + ROOT,
                  where, n, panels, compare)


def box_panel(title, unit, boxes):
    values = [b[k] for b in boxes.values() for k in ("min", "p99")]
    return {"title": title,
            "x": {"label": "", "names": [TITLES[c] for c in boxes]},
            "y": axis((title, unit, 1), values, zero=False),
            "boxes": [{"label": TITLES[c]} | b for c, b in boxes.items()],
            "series": []}


def compare9(title, unit, boxes, paper):
    rows = [row(f"{title}: {TITLES[c]}, median", paper.get(c), boxes[c]["median"],
                unit, 0) for c in CONFIGS]
    base = boxes["disabled"]["median"]
    return rows + [row(f"{title}: Available / Disabled", None,
                       ratio(boxes["available"]["median"], base), digits=3),
                   row(f"{title}: Used / Disabled", paper["ratio"],
                       ratio(boxes["used"]["median"], base), digits=3)]


# Figure 10

def figure10(raw, paper):
    where = raw.where("random-used")
    time = million(where["mode"])
    same = raw.same("random_map", [f"random-{c}" for c in CONFIGS])
    same.sort(key=lambda trio: trio[0]["reclaim_ns"])
    series = [line(TITLES[c], [[i + 1, trio[k]["reclaim_ns"]]
                               for i, trio in enumerate(same)])
              for k, c in enumerate(CONFIGS)]
    return figure("10", "recursive unmap in three configurations",
                  "Each tree of Random Map is revoked in all three configurations; "
                  "trees are in the order of what that takes in Disabled. " + ROOT,
                  where, 3 * len(same),
                  [panel("recursive unmap", ("trees, sorted", "", 1),
                         ("reclamation", *time), series)],
                  compare10(same, paper["10"], time))


def compare10(same, paper, time):
    last = same[-1]
    rows = [row(f"a large tree: {TITLES[c]}", paper[c] * 1e-6,
                last[k]["reclaim_ns"] * 1e-6, time[0])
            for k, c in enumerate(CONFIGS)]
    return rows + [
        row("a large tree: Available / Disabled",
            paper["available"] / paper["disabled"],
            ratio(last[1]["reclaim_ns"], last[0]["reclaim_ns"]), digits=3),
        row("a large tree: Used / Disabled", paper["ratio"],
            ratio(last[2]["reclaim_ns"], last[0]["reclaim_ns"]), digits=3),
        row("all trees, median: Used / Disabled", None,
            median([t[2]["reclaim_ns"] / t[0]["reclaim_ns"] for t in same]), digits=3)]


# Figure 11

def figure11(raw, _paper):
    where = raw.where("parallel-used")
    panels, compare, n = [], [], 0
    for bench, title in (("independent", "Independent"), ("shared", "Shared")):
        series = []
        for config in ("disabled", "used"):
            runs = raw.results(f"parallel-{config}", bench)
            n += len(runs)
            cpus = sorted({r["cpus"] for r in runs})
            by = {c: median([r["total_ns"] for r in runs if r["cpus"] == c])
                  for c in cpus}
            series.append(line(TITLES[config], [[c, by[c]] for c in cpus],
                               "linespoints"))
            compare += [row(f"{title}, {TITLES[config]}, {c} CPUs / 1 CPU: time", None,
                            ratio(by[c], by[1])) for c in cpus if c > 1]
        panels.append(panel(title, ("CPUs", "", 1), ("map and unmap, all", "ms", 1e-6),
                            series))
    return figure("11", "one to n CPUs",
                  "The same number of mappings, split among the CPUs: a frame and a "
                  "process each (Independent), or threads on one frame (Shared). "
                  "Medians.", where, n, panels, compare)
