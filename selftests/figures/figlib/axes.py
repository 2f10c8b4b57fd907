# SPDX-License-Identifier: GPL-2.0
"""Axes: their range, and tics at round figures."""

import math

TICS = 5


def step_for(span, tics=TICS):
    """The round step that gives about as many tics."""
    if span <= 0:
        return 1.0
    base = 10 ** math.floor(math.log10(span / tics))
    for factor in (1, 2, 5, 10):
        if span / (base * factor) <= tics:
            return base * factor
    return base * 10


def decimals(step):
    return max(0, -math.floor(math.log10(step) + 1e-9))


def spell(decade):
    """1, 10, 100, 1k ..."""
    return str(10 ** (decade % 3)) + ("", "k", "M", "G")[decade // 3]


def log_axis(what, low, high):
    """Whole decades."""
    label, unit, factor = what
    first = math.floor(math.log10(max(low * factor, 1)))
    last = max(math.ceil(math.log10(max(high * factor, 1)) + 1e-9), first + 1)
    return {"label": f"{label} ({unit})" if unit else label, "factor": factor, "log": True,
            "min": 10 ** first, "max": 10 ** last,
            "at": [10 ** k for k in range(first, last + 1)],
            "tics": [spell(k) for k in range(first, last + 1)]}


def axis(what, values, zero=True):
    """@what: label, unit, factor from what is stored to what is shown."""
    label, unit, factor = what
    shown = [v * factor for v in values] or [0]
    lo = 0.0 if zero else min(shown)
    hi = max(shown)
    step = step_for((hi - lo) or abs(hi) or 1.0)
    if label in ("CPUs",):
        step = max(1.0, round(step))
    low = math.floor(lo / step + 1e-9) * step
    # A point on the edge is half a point.
    top = math.ceil(hi / step + 0.02) * step
    if top <= low:
        top = low + step
    if not zero and low == min(shown):
        low -= step
    count = round((top - low) / step)
    digits = decimals(step)
    return {"label": f"{label} ({unit})" if unit else label, "factor": factor,
            "min": low, "max": top,
            "tics": [f"{low + i * step:.{digits}f}" for i in range(count + 1)]}
