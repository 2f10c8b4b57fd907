# SPDX-License-Identifier: GPL-2.0
"""Figure 7: how the times of the sub-operations are distributed."""

from .axes import axis, log_axis
from .data import parts_of_unmap, percentile
from .figures import figure, line, panel, row, unit_of

# Sub-operation, what it is per, title, key of the paper's.
PARTS = (("lookup", None, "lookup, a batch", "lookup"),
         ("zap", "pages", "page-table entries, a page", "pt"),
         ("remove", "nodes", "removal from the tree, a mapping", "map"))
POINTS = 200
QUANTILES = (("min", 0.0), ("p25", 0.25), ("median", 0.5), ("p75", 0.75), ("p99", 0.99),
             ("max", 1.0))


def samples_of(doc, op, per):
    """What each took, without the probe itself."""
    probe = (doc.get("probe_ns") or {}).get("inside") or {}
    own = probe.get("p50") or 0
    return sorted(max(0, s["ns"] - own) / ((s[per] if per else 1) or 1)
                  for s in doc["samples"] if s["op"] == op)


def cdf(values):
    """At round quantiles, so that a picture holds no more than it shows."""
    if not values:
        return []
    return [[percentile(values, k / POINTS), k / POINTS] for k in range(POINTS + 1)]


def cdf_panel(title, unit, label, points):
    made = panel(title, ("latency", unit, 1), ("share", "", 1),
                 [line(label, points, "steps")])
    if not points:
        return made
    return made | {"x": log_axis(("latency", unit, 1), points[0][0], points[-1][0]),
                   "y": axis(("share", "", 1), [0.9])}


def compare7(title, values, paper, unit):
    last = values[-1] if values else None
    rows = [row(f"{title}: mean", paper["mean"],
                sum(values) / len(values) if values else None, unit, 0),
            row(f"{title}: p99", paper["p99"], percentile(values, 0.99), unit, 0)]
    return rows + [row(f"{title}: longest", paper.get("max"), last, unit, 0)]


def syscall(raw, name):
    """Of a call that does nothing the quantiles are known."""
    noise = raw.file(name)["noise"]["ioctl_ns"]
    return [[noise[key], q] for key, q in QUANTILES], noise


def shares(raw):
    return parts_of_unmap(raw.file("parts")) if raw.has("parts") else None


def figure7(raw, paper):
    where = raw.where("random-used")
    unit = unit_of(where["mode"])
    doc = raw.file("probe")
    call, noise = syscall(raw, "random-used")
    panels = [cdf_panel("system call, empty", unit, "empty ioctl", call)]
    compare = [row("system call: mean", paper["7"]["syscall"]["mean"], noise["mean"], unit, 0),
               row("system call: p99", paper["7"]["syscall"]["p99"], noise["p99"], unit, 0),
               row("system call: longest", paper["7"]["syscall"]["max"], noise["max"],
                   unit, 0)]
    total = noise["n"]
    for op, per, title, key in PARTS:
        values = samples_of(doc, op, per)
        total += len(values)
        panels.append(cdf_panel(title, unit, op, cdf(values)))
        compare += compare7(title, values, paper["7"][key], unit)
    compare += [row(f"revoke, a mapping: {part}", None, ns, unit, 0)
                for part, ns in (shares(raw) or {}).items()]
    return figure("7", "how long the sub-operations take",
                  "From the probes, during Random Map. A sub-operation works on a batch "
                  "of mappings: what it takes is shown per page and per mapping, the "
                  "lookup per batch. What the probe itself takes is taken out.",
                  where, total, panels, compare)
