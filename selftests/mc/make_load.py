# SPDX-License-Identifier: GPL-2.0
"""Results of brumm mc load from known latencies, for tests of what reads them.

Written from Documentation/abi/mc-json.md alone: each count is made by counting the
latencies, so that figures can be compared with what they have to be.
"""

import random

THRESHOLDS = [100_000 * i for i in range(1, 11)] + [10_000_000]
BITS = 9


def slot_low(ns):
    shift = max(0, ns.bit_length() - BITS - 1)
    return ns >> shift << shift


def hist(values):
    slots = {}
    for v in values:
        low = slot_low(v)
        slots[low] = slots.get(low, 0) + 1
    ordered = sorted(values)

    def rank(percent):
        if not ordered:
            return None
        return slot_low(ordered[-(-len(ordered) * percent // 1000) - 1])

    return {"n": len(values), "sum_ns": sum(values),
            "min_ns": ordered[0] if ordered else None,
            "max_ns": ordered[-1] if ordered else None, "over": 0, "bits": BITS,
            "slots": [[low, n] for low, n in sorted(slots.items())],
            "p50_ns": rank(500), "p90_ns": rank(900), "p99_ns": rank(990),
            "p999_ns": rank(999)}


def tally(latencies, timed_out, thresholds):
    """@timed_out: how many were given up on, after 2 s each."""
    n = len(latencies) + timed_out
    return {"census": {"requests": n, "answered": len(latencies), "failed": 0,
                       "timed_out": timed_out, "in_flight": 0},
            "failed": {"refused": 0, "lost": 0, "protocol": 0, "unsent": 0},
            "answers": {"hits": len(latencies), "misses": 0, "stored": 0},
            "thresholds": [{"t_ns": t, "over": sum(v > t for v in latencies),
                            "over_send": sum(v > t for v in latencies), "over_lag": 0,
                            "censored_over": timed_out, "censored_under": 0}
                           for t in thresholds],
            "intended": hist(latencies), "send": hist(latencies), "lag": hist([])}


def load_doc(legs, *, window_s, start_ns=0, interval_ns=100_000_000, timed_out=0,
             status="valid", thresholds=None):
    """@legs: by server, latencies in order of intended time, evenly spread.

    A request goes to all servers, and takes as long as its slowest leg.
    """
    thresholds = thresholds or THRESHOLDS
    slowest = [max(some) for some in zip(*legs)]
    n, window = len(slowest), round(window_s * 1e9)
    slices = -(-window // interval_ns)
    per, over = [0] * slices, [[0] * slices for _ in thresholds]
    for i, latency in enumerate(slowest):
        at = i * window // n // interval_ns
        per[at] += 1
        for k, t in enumerate(thresholds):
            over[k][at] += latency > t
    per[-1] += timed_out
    for some in over:
        some[-1] += timed_out
    return {
        "schema": "brumm-mc-load/1", "status": status,
        "reasons": [] if status == "valid" else ["gate lag: for the test"],
        "config": {"fanout": len(legs), "rate": n / window_s, "loop": "open",
                   "thresholds_ns": thresholds, "interval_ns": interval_ns},
        "machine": {"release": "test"},
        "time": {"start_ns": start_ns, "start_realtime_ns": 0, "window_ns": window,
                 "grace_ns": 0},
        "total": tally(slowest, timed_out, thresholds),
        "servers": [{"address": f"tcp:127.0.0.1:{21211 + i}",
                     **tally(some, timed_out, thresholds)}
                    for i, some in enumerate(legs)],
        "timeline": {"interval_ns": interval_ns, "requests": per,
                     "censored": [0] * (slices - 1) + [timed_out],
                     "over": over, "over_upper": over},
        "gates": [],
    }


def latencies(n, seed, *, base=60_000, stalls=()):
    """Exponential about @base; stalls (from, to) as shares of the run: 5 ms more."""
    rng = random.Random(seed)
    out = [int(rng.expovariate(1 / base)) + 20_000 for _ in range(n)]
    for low, high in stalls:
        for i in range(int(low * n), int(high * n)):
            out[i] += 5_000_000
    return out
