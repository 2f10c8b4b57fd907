# SPDX-License-Identifier: GPL-2.0
"""The bars: what has to be reached, what was measured, and whether it was."""

from . import CONFIGS
from .data import median, parts_of_unmap, per_call, predicted_p99, ratio

PAGE_RUNS = ("many_frames", "scattered", "range")


def bar(what, least, most, values, where, **more):
    """@values: one a sample; the one that is worst for the bar is not hidden."""
    values = [v for v in values if v is not None]
    value = more.pop("value", median(values))
    judged = more.pop("judged", [value] if value is not None else [])
    passed = None
    if judged:
        passed = all((least is None or v >= least) and (most is None or v <= most)
                     for v in judged)
    return {"what": what, "bar": {"least": least, "most": most}, "value": value,
            "n": len(values), "spread": [min(values), max(values)] if values else None,
            "lane": where["lane"], "mode": where["mode"],
            "noise": where["noise"], "pass": passed} | more


def calls(raw, config, bench):
    name = f"leaves-{config}"
    return [per_call(r["each_ns"], raw.where(name)["noise"]["clock"])
            for r in raw.results(name, bench)]


def one_call(raw, bench, what, most):
    """Used / disabled: the median call; the spread is that of the quartiles."""
    used, none = calls(raw, "used", bench)[0], calls(raw, "disabled", bench)[0]
    row = bar(what, None, most,
              [ratio(used[k], none[k]) for k in ("p25", "median", "p75")],
              raw.where("leaves-used"), value=ratio(used["median"], none["median"]))
    return row | {"n": used["n"]}


def large_unmap(raw):
    pairs = raw.same("random_map", [f"large-{c}" for c in CONFIGS])
    return bar("quota cost, large recursive unmap: used / disabled", None, 1.02,
               [ratio(t[2]["reclaim_ns"], t[0]["reclaim_ns"]) for t in pairs],
               raw.where("large-used"))


def predicted(raw):
    runs = raw.results("random-used", "random_map")
    ratios = [ratio(r["predicted_ns"], r["reclaim_ns"]) for r in runs]
    return bar("predicted (mean) / measured, Random Map, each run", 1.00, 1.15, ratios,
               raw.where("random-used"),
               judged=[v for v in ratios if v is not None])


def predicted_tail(raw):
    prices = raw.file("prices")
    runs = raw.results("random-used", "random_map")
    return bar("predicted (p99) / measured, Random Map", None, 1.6,
               [ratio(predicted_p99(prices, r), r["reclaim_ns"]) for r in runs],
               raw.where("random-used"))


def a_page(run):
    return run["reclaim_ns"] / run["pages"]


def page_ratios(raw, bench, baseline):
    """Per page, beside what Linux takes for as many pages in the same run."""
    ours = {r["repeat"]: a_page(r) for r in raw.results("linux", bench)}
    theirs = {r["repeat"]: a_page(r) for r in raw.results("linux", baseline)}
    return [ratio(ours[k], theirs[k]) for k in ours if k in theirs]


def against(raw, bench, baseline, what, most):
    return bar(what, None, most, page_ratios(raw, bench, baseline), raw.where("linux"))


# The bars are about munmap that leaves its pages to the memfd. That is as much as
# a revoke whose frames stay with their owner does; so there is no bar for those
# that free the pages, too.
BESIDE = (("free_memfd", "munmap of a memfd that goes with it"),
          ("punch_hole", "a hole punched into a memfd"),
          ("process_mrelease", "process_mrelease"))


def beside(raw):
    return [{"what": f"revoke of one-page mappings, {how} / {title}",
             "value": median(page_ratios(raw, bench, baseline))}
            for bench, how in (("many_frames", "contiguous"), ("scattered", "scattered"))
            for baseline, title in BESIDE]


def one_node(raw):
    runs = raw.results("node", "range")
    gone = [r["stat"]["map"] - r["stat_left"]["map"] for r in runs]
    return bar(f"{runs[0]['pages'] >> 8} MiB mapped and revoked: nodes", None, 1, gone,
               raw.where("node"))


# Two CPUs are two if a loop that touches nothing goes so much faster on them.
TWO = 1.8


def two_cpus(raw):
    """Not judged where there were not two CPUs, which a loop beside it tells."""
    runs = raw.results("parallel-used", "independent")
    by = {c: {r["repeat"]: r for r in runs if r["cpus"] == c} for c in (1, 2)}
    both = [k for k in by[1] if k in by[2]]
    given = median([2 * ratio(by[1][k]["spin_ns"], by[2][k]["spin_ns"]) for k in both])
    values = [ratio(by[1][k]["prepare_ns"], by[2][k]["prepare_ns"]) for k in both]
    row = bar("two CPUs mapping independently / one", 1.7, None, values,
              raw.where("parallel-used")) | {"given": given}
    if given is not None and given < TWO:
        row |= {"pass": None, "why": f"the host gave {given:.2f} CPUs, not two: "
                "run it where nothing else does"}
    return row


def late(phases):
    return sum(p["over"] for p in phases), sum(p["requests"] for p in phases)


def neighbour(raw):
    """The share of a neighbour's requests that are late, while others are killed.

    The noise is what is late before and after; where nothing is, as if the next
    one would have been."""
    rounds = raw.file("neighbour")["rounds"]
    where = raw.where("leaves-used")
    n = raw.file("neighbour")["processes"]
    over, requests = late([r[p] for r in rounds.values() for p in ("before", "after")])
    floor = max(over, 1) / requests
    share = {k: ratio(*late([r["during"]])) for k, r in rounds.items()}
    counts = {k: r["during"]["over"] for k, r in rounds.items()}
    bound = rounds["slo"]["bound_us"]
    kill = f"{n} processes killed, a neighbour's requests over {bound / 1000:g} ms"
    seen = {"late": counts, "took_ms": {k: r["took_ms"] for k, r in rounds.items()},
            "noise_share": floor, "noise_late": over, "noise_requests": requests}
    return [
        bar(f"{kill}: by --slo / noise", None, 2, [share["slo"] / floor], where) | seen,
        bar(f"{kill}: at once / noise", 10, None, [share["plain"] / floor], where) | seen,
        bar(f"{kill}: by --slo / with the least weight alone", None, 0.9,
            [counts["slo"] / max(counts["weight"], 1)], where) | seen]


def icount_rows(raw):
    return [
        one_call(raw, "leaf_map", "quota cost, map one page: used / disabled", 1.05),
        one_call(raw, "leaf_unmap", "quota cost, unmap one leaf: used / disabled", 1.02),
        large_unmap(raw), predicted(raw), predicted_tail(raw),
        against(raw, "many_frames", "munmap_memfd",
                "revoke of one-page mappings, contiguous / munmap of a memfd that stays", 0.35),
        against(raw, "scattered", "munmap_memfd",
                "revoke of one-page mappings, scattered / munmap of a memfd that stays", 0.8),
        against(raw, "range", "bare_zap",
                "revoke of a large range / bare zap of the same entries", 1.3),
        one_node(raw), *(neighbour(raw) if raw.has("neighbour") else [])]


def rows(raw, clock=True):
    """All, or without what is measured by the @clock."""
    return icount_rows(raw) + ([two_cpus(raw)] if clock else [])


def parts(raw):
    """Where the time of a revoke goes, to tell what a miss is about."""
    return parts_of_unmap(raw.file("parts")) if raw.has("parts") else None


def spell_parts(some, unit):
    return "a mapping's share of a revoke, in " + unit + ": " + \
        ", ".join(f"{part} {ns:.0f}" for part, ns in some.items())


def spell_beside(some):
    return "\n".join(f"      beside   {spell(r['value'])}  {r['what']}" for r in some)


def spell_bar(limits):
    least, most = limits["least"], limits["most"]
    if least is None:
        return f"<= {most:g}"
    if most is None:
        return f">= {least:g}"
    return f"{least:g} to {most:g}"


def spell(value):
    return "no sample" if value is None else f"{value:.3f}"


def table(some):
    """For people; a miss stands out."""
    lines = [("", "bar", "value", "spread", "n", "lane", "mode", "what")]
    for r in some:
        verdict = {True: "ok", False: "MISS", None: "?"}[r["pass"]]
        spread = "-".join(spell(v) for v in r["spread"]) if r["spread"] else ""
        lines.append((verdict, spell_bar(r["bar"]), spell(r["value"]), spread,
                      str(r["n"]), r["lane"], r["mode"],
                      r["what"] + (f" ({r['why']})" if "why" in r else "")))
    widths = [max(len(x[i]) for x in lines) for i in range(7)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(x, widths)) + "  " + x[7]
                     for x in lines)
