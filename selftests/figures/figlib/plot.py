# SPDX-License-Identifier: GPL-2.0
"""Pictures: a figure's panels by gnuplot, as SVG and PNG, and its data as CSV."""

import csv
import io
import shutil
import subprocess

from . import Trouble, store

# Told apart without colours (print) and by the colour-blind: Okabe and Ito's
# palette, and a shape each.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
SHAPES = (6, 2, 8, 4)
PANEL = (420, 320)
FONT = "DejaVu Sans"
KEY = "outside top center horizontal samplen 1.5 width -1"


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def tics(name, axis):
    if "names" in axis:
        where = ", ".join(f"{quote(n)} {i}" for i, n in enumerate(axis["names"]))
        return f"set {name}tics ({where}) scale 0\n" \
               f"set {name}range [-0.6:{len(axis['names']) - 0.4}]\n"
    where = ", ".join(f"{quote(t)} {at}"
                      for t, at in zip(axis["tics"], axis.get("at", axis["tics"])))
    # A little more, or a tic at the end of a logarithmic axis may be lost.
    scale, more = ("set", 1.001) if axis.get("log") else ("unset", 1)
    return f"{scale} logscale {name}\nset {name}tics ({where}) scale 0.5\n" \
           f"set {name}range [{axis['min'] / more}:{axis['max'] * more}]\n"


def style(series, i):
    colour = f'lc rgb "{COLOURS[i]}"'
    if series["style"] == "steps":
        return f"with steps lw 2 dt {i + 1} {colour}"
    if series["style"] == "linespoints":
        return f"with linespoints pt {SHAPES[i]} ps 1 lw 2 dt {i + 1} {colour}"
    return f"with points pt {SHAPES[i]} ps 0.7 lw 1.5 {colour}"


def points(series, panel):
    fx, fy = panel["x"].get("factor", 1), panel["y"]["factor"]
    rows = [f"{x * fx:.9g} {y * fy:.9g}" for x, y in series["points"]]
    return "\n".join(rows) + "\ne\n"


def boxes(panel):
    """Quartiles as boxes, the median as a line in them."""
    plots, data = [], []
    for i, box in enumerate(panel["boxes"]):
        plots.append(f"'-' using 1:3:2:6:5 with candlesticks whiskerbars 0.5 lw 1.5 "
                     f'lc rgb "{COLOURS[i]}" fs solid 0.25 notitle')
        plots.append(f"'-' using 1:4:4:4:4 with candlesticks lw 3 "
                     f'lc rgb "{COLOURS[i]}" notitle')
        values = " ".join(f"{box[k]:.9g}" for k in ("min", "p25", "median", "p75",
                                                    "p99"))
        data += [f"{i} {values}\ne\n"] * 2
    return "set boxwidth 0.5\nplot " + ", ".join(plots) + "\n" + "".join(data)


def lines(panel):
    plots = [f"'-' using 1:2 {style(s, i)} title {quote(s['label'])}"
             for i, s in enumerate(panel["series"])]
    return "plot " + ", ".join(plots) + "\n" + \
        "".join(points(s, panel) for s in panel["series"])


def draw(panel):
    text = f"set title {quote(panel['title'])}\n" + tics("x", panel["x"]) + \
        tics("y", panel["y"])
    text += f"set xlabel {quote(panel['x']['label'])}\n"
    text += f"set ylabel {quote(panel['y']['label'])}\n"
    many = len(panel["series"]) > 1
    text += f"set key {KEY}\n" if many else "unset key\n"
    return text + (boxes(panel) if "boxes" in panel else lines(panel))


def script(figure, terminal, target):
    columns = min(2, len(figure["panels"]))
    rows = -(-len(figure["panels"]) // columns)
    width, height = PANEL[0] * columns, PANEL[1] * rows
    body = "".join(draw(p) for p in figure["panels"])
    return (f"set terminal {terminal.format(width=width, height=height)}\n"
            f"set output {quote(str(target))}\n"
            "set encoding utf8\nset border 3\nset grid lc rgb \"#dddddd\" lw 0.5\n"
            "set xtics nomirror\nset ytics nomirror\n"
            f"set multiplot layout {rows},{columns}\n{body}unset multiplot\n")


TERMINALS = {
    "svg": f'svg size {{width}},{{height}} font "{FONT},12" enhanced '
           'background "white"',
    "png": f'pngcairo size {{width}},{{height}} font "{FONT},9" enhanced',
}


def table(figure):
    """One row a point or box, in the units that were measured."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    if any("boxes" in p for p in figure["panels"]):
        keys = ["n", "min", "p25", "median", "p75", "p99", "max", "mean"]
        rows.writerow(["panel", "series"] + keys)
        for panel in figure["panels"]:
            for box in panel["boxes"]:
                rows.writerow([panel["title"], box["label"]] + [box[k] for k in keys])
        return out.getvalue()
    rows.writerow(["panel", "series", "x", "y"])
    for panel in figure["panels"]:
        for series in panel["series"]:
            rows.writerows([panel["title"], series["label"], x, y]
                           for x, y in series["points"])
    return out.getvalue()


def plot(figure, folder):
    """figure-N.csv, .svg and .png."""
    if not shutil.which("gnuplot"):
        raise Trouble("gnuplot is not installed: make deps")
    base = folder / f"figure-{figure['id']}"
    store(base.with_suffix(".csv"), table(figure))
    for kind, terminal in TERMINALS.items():
        target = base.with_suffix("." + kind)
        done = subprocess.run(["gnuplot"], input=script(figure, terminal, target),
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode or not target.exists() or done.stdout.strip():
            raise Trouble(f"gnuplot could not draw {target}: {done.stdout}")
