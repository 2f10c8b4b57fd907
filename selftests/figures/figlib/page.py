# SPDX-License-Identifier: GPL-2.0
"""One page of all figures, self-contained.

Whatever is a number on it stands in the JSON: figures are shown by path, and
words that hold numbers come from there, too. check-page verifies that.
"""

import html
import re


STYLE = """
body { font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em;
  color: #111; background: #fff }
table { border-collapse: collapse; margin: 1em 0; font-size: 90% }
th, td { border-bottom: 1px solid #bbb; padding: .2em .8em; text-align: left }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto }
.where { color: #444; font-size: 90% }
.miss { font-weight: bold }
section { border-top: 1px solid #bbb; margin-top: 2em }
@media print { section { page-break-inside: avoid } }
"""


class Page:
    """HTML of a document, by paths into it."""

    def __init__(self, doc):
        self.doc = doc

    def at(self, path):
        value = self.doc
        for key in path.split("/"):
            value = value[int(key) if isinstance(value, list) else key]
        return value

    def text(self, path):
        return html.escape(str(self.at(path)))

    def number(self, path, digits=0):
        value = self.at(path)
        if value is None:
            return "no sample"
        return f'<data value="{value!r}" data-path="{path}">{value:,.{digits}f}</data>'

    def where(self, path):
        unit = self.text(f"{path}/unit")
        return (f'<p class="where">Lane {self.text(path + "/lane")}, kernel '
                f'{self.text(path + "/release")}, mode {self.text(path + "/mode")}, '
                f'{self.number(path + "/samples")} samples. Noise: reading the clock '
                f'{self.number(path + "/noise/clock")} {unit} (spread '
                f'{self.number(path + "/noise/clock_spread")}), empty ioctl '
                f'{self.number(path + "/noise/ioctl")} {unit} (spread '
                f'{self.number(path + "/noise/ioctl_spread")}).</p>')

    def compare(self, path):
        rows = []
        for i, row in enumerate(self.at(path + "/compare")):
            at = f"{path}/compare/{i}"
            paper = "" if row["paper"] is None else \
                self.number(at + "/paper", row["digits"])
            rows.append(f'<tr><td>{self.text(at + "/what")}</td>'
                        f'<td class="n">{paper}</td>'
                        f'<td class="n">{self.number(at + "/ours", row["digits"])}</td>'
                        f'<td>{self.text(at + "/unit")}</td></tr>')
        return ('<table><tr><th></th><th class="n">paper</th><th class="n">brumm</th>'
                '<th>unit here</th></tr>' + "".join(rows) + "</table>")

    def figure(self, i, picture):
        path = f"figures/{i}"
        return (f'<section id="figure-{self.at(path + "/id")}">'
                f'<h2>{self.text(path + "/title")}</h2><p>{self.text(path + "/what")}</p>'
                f'<figure>{picture}</figure>{self.where(path)}{self.compare(path)}'
                '</section>')

    def bar(self, i):
        path, row = f"bars/{i}", self.at(f"bars/{i}")
        limits = [f"{sign} {self.number(f'{path}/bar/{key}', 2)}"
                  for key, sign in (("least", "≥"), ("most", "≤"))
                  if row["bar"][key] is not None]
        spread = " to ".join(self.number(f"{path}/spread/{k}", 3) for k in (0, 1)) \
            if row["spread"] else ""
        verdict = {True: "reached", False: '<span class="miss">missed</span>',
                   None: "not judged" if "why" in row else "no sample"}[row["pass"]]
        return (f'<tr><td>{self.text(path + "/what")}</td><td>{", ".join(limits)}</td>'
                f'<td class="n">{self.number(path + "/value", 3)}</td>'
                f'<td class="n">{spread}</td>'
                f'<td class="n">{self.number(path + "/n")}</td>'
                f'<td>{self.text(path + "/lane")}</td><td>{self.text(path + "/mode")}</td>'
                f'<td>{verdict}</td></tr>')

    def bars(self):
        return ('<section id="bars"><h2>Bars</h2><table><tr><th>ratio</th><th>bar</th>'
                '<th class="n">median</th><th class="n">spread</th><th class="n">n</th>'
                '<th>lane</th><th>mode</th><th></th></tr>'
                + "".join(self.bar(i) for i in range(len(self.doc["bars"])))
                + "</table></section>")


def inline(svg):
    """A picture without what only a file of its own needs, or only gnuplot."""
    return re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<title>.*?</title>|<desc>.*?</desc>",
                  "", svg, flags=re.DOTALL).strip()


def page(doc, folder):
    made = Page(doc)
    body = [f'<h1>{made.text("title")}</h1><p>{made.text("what")}</p>'
            f'<p class="where">{made.text("made")}. The paper: '
            f'{made.text("paper/source")}.</p>']
    for i, figure in enumerate(doc["figures"]):
        svg = (folder / f"figure-{figure['id']}.svg").read_text(encoding="utf-8")
        body.append(made.figure(i, inline(svg)))
    body.append(made.bars())
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<title>{made.text("title")}</title><style>{STYLE}</style></head>\n<body>\n'
            + "\n".join(body) + "\n</body></html>\n")
