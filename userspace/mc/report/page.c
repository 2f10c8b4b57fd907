// SPDX-License-Identifier: GPL-2.0
/*
 * The page. A number on it is put there by its path in the document, and says
 * which; any other word that holds a digit is a string of the document.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static const char style[] =
	"body{font:16px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;"
	"color:#111;background:#fff}"
	"table{border-collapse:collapse;margin:1em 0;font-size:88%}"
	"th,td{border-bottom:1px solid #bbb;padding:.2em .7em;text-align:left;"
	"vertical-align:top}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
	".i{color:#555;font-size:90%;white-space:nowrap}"
	".wide{overflow-x:auto}figure{margin:1em 0}svg{max-width:100%;height:auto}"
	".small{color:#444;font-size:90%}.bad{font-weight:bold}"
	"section{border-top:1px solid #bbb;margin-top:2em}"
	"@media print{section{page-break-inside:avoid}}";

struct page {
	const json_t *doc;
	FILE *f;
};

static const json_t *at(const json_t *j, const char *path)
{
	char *copy = strdup(path), *rest = copy, *key;

	while (copy && j && (key = strsep(&rest, "/")))
		j = json_is_array(j) ? json_array_get(j, strtoul(key, NULL, 10)) :
			json_object_get(j, key);
	free(copy);
	return j;
}

static void escape(FILE *f, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '&':
			fputs("&amp;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*s, f);
		}
	}
}

/* The path of what is told, printf-like. */
#define PATH_OF(p, fmt)							\
	char p[256];							\
	va_list ap;							\
									\
	va_start(ap, fmt);						\
	vsnprintf(p, sizeof(p), fmt, ap);				\
	va_end(ap)

static void text(struct page *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void text(struct page *w, const char *fmt, ...)
{
	const char *s;

	PATH_OF(path, fmt);
	s = json_string_value(at(w->doc, path));
	escape(w->f, s ?: "not known");
}

/* Three digits that mean something, without an exponent. */
static void number(struct page *w, double scale, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void number(struct page *w, double scale, const char *fmt, ...)
{
	const json_t *j;
	double v;
	int digits;

	PATH_OF(path, fmt);
	j = at(w->doc, path);
	if (!json_is_number(j)) {
		fputs("–", w->f);
		return;
	}
	v = json_number_value(j) * scale;
	digits = v == 0 || json_is_integer(j) ? 0 : 2 - (int)floor(log10(fabs(v)));
	if (json_is_integer(j) && scale != 1)
		digits = 2;
	digits = digits < 0 ? 0 : digits > 9 ? 9 : digits;
	fprintf(w->f, "<data data-path=\"%s\" data-scale=\"%g\">%.*f</data>", path,
		scale, digits, v);
}

/* "0.12 (0.10 to 0.15)". */
static void with_interval(struct page *w, double scale, const char *value,
			  const char *interval)
{
	number(w, scale, "%s", value);
	if (!json_is_array(at(w->doc, interval)))
		return;
	fputs(" <span class=\"i\">(", w->f);
	number(w, scale, "%s/0", interval);
	fputs(" to ", w->f);
	number(w, scale, "%s/1", interval);
	fputs(")</span>", w->f);
}

static void cell_of(struct page *w, double scale, const char *base,
		    const char *value, const char *interval)
{
	char v[256], i[256];

	snprintf(v, sizeof(v), "%s/%s", base, value);
	snprintf(i, sizeof(i), "%s/%s", base, interval);
	fputs("<td class=\"n\">", w->f);
	with_interval(w, scale, v, i);
	fputs("</td>", w->f);
}

static size_t count(struct page *w, const char *path)
{
	return json_array_size(at(w->doc, path));
}

/* ---- tables --------------------------------------------------------------- */

/* Thresholds that are columns: the least, the one nearest to 1 ms, the last. */
static size_t columns(struct page *w, size_t cell, size_t which[3])
{
	size_t n = 0, i, all, near = 0;
	char path[64];
	double t;

	snprintf(path, sizeof(path), "cells/%zu/figures/thresholds", cell);
	all = count(w, path);
	for (i = 0; i < all; i++) {
		snprintf(path, sizeof(path), "cells/%zu/figures/thresholds/%zu/t_ns",
			 cell, i);
		t = json_number_value(at(w->doc, path));
		if (t <= 1e6)
			near = i;
	}
	if (!all)
		return 0;
	which[n++] = 0;
	if (near)
		which[n++] = near;
	if (all - 1 > near)
		which[n++] = all - 1;
	return n;
}

static bool has_runs(struct page *w, size_t cell)
{
	char path[64];

	snprintf(path, sizeof(path), "cells/%zu/runs", cell);
	return json_integer_value(at(w->doc, path)) > 0;
}

static size_t first_cell(struct page *w)
{
	size_t i, n = count(w, "cells");

	for (i = 0; i < n && !has_runs(w, i); i++)
		;
	return i;
}

static void label_of_threshold(struct page *w, size_t cell, size_t t)
{
	text(w, "cells/%zu/figures/thresholds/%zu/label", cell, t);
}

static void cells_row(struct page *w, size_t c)
{
	char base[96];
	size_t which[3], n = columns(w, c, which), i;

	fputs("<tr><td>", w->f);
	text(w, "cells/%zu/label", c);
	fputs("</td><td class=\"n\">", w->f);
	number(w, 1, "cells/%zu/runs", c);
	fputs("</td><td class=\"n\">", w->f);
	number(w, 1, "cells/%zu/figures/requests", c);
	fputs("</td>", w->f);
	for (i = 0; i < n; i++) {
		snprintf(base, sizeof(base), "cells/%zu/figures/thresholds/%zu", c,
			 which[i]);
		cell_of(w, 100, base, "op", "op_interval");
	}
	snprintf(base, sizeof(base), "cells/%zu/figures/thresholds/%zu/throughput", c,
		 which[n > 1]);
	cell_of(w, 1, base, "valid_per_s", "none");
	fputs("<td class=\"n\">", w->f);
	number(w, 1e-3, "cells/%zu/figures/tail/3/percentile/ns", c);
	fputs("</td><td class=\"n\">", w->f);
	number(w, 1e-3, "cells/%zu/figures/tail/3/mean_beyond/ns", c);
	fputs("</td></tr>\n", w->f);
}

static void cells_table(struct page *w)
{
	size_t first = first_cell(w), which[3], n, i, all = count(w, "cells");

	if (first == all)
		return;
	n = columns(w, first, which);
	fputs("<section id=\"cells\"><h2>All cells</h2><div class=\"wide\"><table><tr><th>cell</th>"
	      "<th class=\"n\">runs</th><th class=\"n\">requests</th>", w->f);
	for (i = 0; i < n; i++) {
		fputs("<th class=\"n\">op, %, t = ", w->f);
		label_of_threshold(w, first, which[i]);
		fputs("</th>", w->f);
	}
	fputs("<th class=\"n\">valid requests a second, ", w->f);
	label_of_threshold(w, first, which[n > 1]);
	fputs("</th><th class=\"n\">", w->f);
	text(w, "words/percentile");
	fputs("</th><th class=\"n\">", w->f);
	text(w, "words/mean_beyond");
	fputs("</th></tr>\n", w->f);
	for (i = 0; i < all; i++) {
		if (has_runs(w, i))
			cells_row(w, i);
	}
	fputs("</table></div></section>\n", w->f);
}

static void service_table(struct page *w)
{
	size_t first = first_cell(w), all = count(w, "cells"), i, k, n;
	char base[128];

	if (first == all)
		return;
	snprintf(base, sizeof(base), "cells/%zu/figures/thresholds/0/service/targets", first);
	n = count(w, base);
	fputs("<section id=\"service\"><h2>What that means for a service</h2><p>", w->f);
	text(w, "words/service");
	fputs(" Here: ", w->f);
	text(w, "words/scale");
	fputs(".</p><div class=\"wide\"><table><tr><th>cell</th><th class=\"n\">op of the service, %, t = ", w->f);
	label_of_threshold(w, first, 0);
	fputs("</th>", w->f);
	for (k = 0; k < n; k++) {
		fputs("<th class=\"n\">factor for ", w->f);
		number(w, 100, "%s/%zu/target", base, k);
		fputs(" %</th>", w->f);
	}
	fputs("<th class=\"n\">slowest of K: measured, %</th>"
	      "<th class=\"n\">if independent, %</th></tr>\n", w->f);
	for (i = 0; i < all; i++) {
		if (!has_runs(w, i))
			continue;
		fputs("<tr><td>", w->f);
		text(w, "cells/%zu/label", i);
		fputs("</td>", w->f);
		snprintf(base, sizeof(base), "cells/%zu/figures/thresholds/0/service", i);
		cell_of(w, 100, base, "op", "op_interval");
		for (k = 0; k < n; k++) {
			snprintf(base, sizeof(base),
				 "cells/%zu/figures/thresholds/0/service/targets/%zu", i, k);
			cell_of(w, 1, base, "reduction", "reduction_interval");
		}
		fputs("<td class=\"n\">", w->f);
		number(w, 100, "cells/%zu/figures/thresholds/0/fanout/empirical_op", i);
		fputs("</td><td class=\"n\">", w->f);
		number(w, 100, "cells/%zu/figures/thresholds/0/fanout/independent_op", i);
		fputs("</td></tr>\n", w->f);
	}
	fputs("</table></div></section>\n", w->f);
}

static void phases_row(struct page *w, size_t c, size_t t)
{
	char base[128];
	size_t k;

	fputs("<tr><td>", w->f);
	text(w, "cells/%zu/label", c);
	fputs("</td><td class=\"n\">", w->f);
	label_of_threshold(w, c, t);
	fputs("</td>", w->f);
	for (k = 0; k < 3; k++) {
		snprintf(base, sizeof(base), "cells/%zu/phases/%zu/phases/%zu", c, t, k);
		cell_of(w, 100, base, "op", "op_interval");
	}
	fputs("<td class=\"n\">", w->f);
	number(w, 1, "cells/%zu/phases/%zu/phases/1/seconds", c, t);
	fputs("</td><td class=\"n\">", w->f);
	number(w, 1e-6, "cells/%zu/neighbours/0/reap/wall_ns", c);
	fputs("</td></tr>\n", w->f);
}

static void phases_table(struct page *w)
{
	size_t i, k, n, which[3], all = count(w, "cells");
	bool begun = false;
	char path[64];

	for (i = 0; i < all; i++) {
		snprintf(path, sizeof(path), "cells/%zu/phases", i);
		if (!count(w, path))
			continue;
		if (!begun)
			fputs("<section id=\"phases\"><h2>Beside a neighbour</h2><div class=\"wide\"><table>"
			      "<tr><th>cell</th><th class=\"n\">t</th><th class=\"n\">op before, %</th>"
			      "<th class=\"n\">during, %</th><th class=\"n\">after, %</th>"
			      "<th class=\"n\">during, s in all runs</th>"
			      "<th class=\"n\">teardown took, ms (first run)</th></tr>\n", w->f);
		begun = true;
		n = columns(w, i, which);
		for (k = 0; k < n; k++)
			phases_row(w, i, which[k]);
	}
	if (begun)
		fputs("</table></div></section>\n", w->f);
}

static void left_table(struct page *w)
{
	size_t i, k, n, all = count(w, "cells");
	bool begun = false;
	char path[64];

	for (i = 0; i < all; i++) {
		snprintf(path, sizeof(path), "cells/%zu/left", i);
		n = count(w, path);
		for (k = 0; k < n; k++) {
			if (!begun)
				fputs("<section id=\"left\"><h2>Cells without a result</h2><div class=\"wide\"><table>"
				      "<tr><th>cell</th><th></th><th>why</th></tr>\n", w->f);
			begun = true;
			fputs("<tr><td>", w->f);
			text(w, "%s/%zu/cell", path, k);
			fputs("</td><td>", w->f);
			text(w, "%s/%zu/status", path, k);
			fputs("</td><td>", w->f);
			text(w, "%s/%zu/reason", path, k);
			fputs("</td></tr>\n", w->f);
		}
	}
	if (begun)
		fputs("</table></div></section>\n", w->f);
}

static void warnings(struct page *w)
{
	size_t i, k, n, all = count(w, "cells");
	bool begun = false;
	char path[64];

	for (i = 0; i < all; i++) {
		snprintf(path, sizeof(path), "cells/%zu/warnings", i);
		n = count(w, path);
		for (k = 0; k < n; k++) {
			if (!begun)
				fputs("<section id=\"warnings\"><h2>Take care</h2><p>Runs of which a gate failed: "
				      "their figures may be those of the client or the machine. And those "
				      "of which not all could be told that was asked.</p><div class=\"wide\"><table>\n", w->f);
			begun = true;
			fputs("<tr><td>", w->f);
			text(w, "cells/%zu/label", i);
			fputs("</td><td class=\"bad\">", w->f);
			text(w, "%s/%zu", path, k);
			fputs("</td></tr>\n", w->f);
		}
	}
	if (begun)
		fputs("</table></div></section>\n", w->f);
}

static void machine(struct page *w, const char *lane, json_t *m)
{
	const char *key, *at_key;
	json_t *v;

	fputs("<h3>Lane ", w->f);
	escape(w->f, lane);
	fputs("</h3><div class=\"wide\"><table>\n", w->f);
	json_object_foreach(m, key, v) {
		if (!json_is_string(v))
			continue;
		fprintf(w->f, "<tr><td>");
		for (at_key = key; *at_key; at_key++)
			fputc(*at_key == '_' ? ' ' : *at_key, w->f);
		fputs("</td><td>", w->f);
		escape(w->f, json_string_value(v));
		fputs("</td></tr>\n", w->f);
	}
	fputs("</table></div>\n", w->f);
}

static void machines(struct page *w)
{
	json_t *all = json_object_get(w->doc, "machines"), *m;
	const char *lane;

	fputs("<section id=\"machines\"><h2>Where</h2>\n", w->f);
	json_object_foreach(all, lane, m)
		machine(w, lane, m);
	fputs("</section>\n", w->f);
}

static void figure(struct page *w, size_t i, const char *svg)
{
	fputs("<section><h2>", w->f);
	text(w, "figures/%zu/title", i);
	fputs("</h2><p>", w->f);
	text(w, "figures/%zu/what", i);
	fputs("</p><figure>", w->f);
	fputs(svg, w->f);
	fputs("</figure>", w->f);
	if (json_integer_value(json_object_get(json_array_get(json_object_get(
			w->doc, "figures"), i), "left_out"))) {
		fputs("<p class=\"small\">", w->f);
		number(w, 1, "figures/%zu/left_out", i);
		fputs(" cells had no room in the picture; they are in the table.</p>", w->f);
	}
	fputs("</section>\n", w->f);
}

int page_write(const json_t *doc, char *const *svg, FILE *f)
{
	struct page w = { doc, f };
	size_t i, n = json_array_size(json_object_get(doc, "figures"));

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	      "<meta name=\"viewport\" content=\"width=device-width\"><title>", f);
	text(&w, "title");
	fprintf(f, "</title><style>%s</style></head>\n<body>\n<h1>", style);
	text(&w, "title");
	fputs("</h1>", f);
	if (json_is_string(at(doc, "what"))) {
		fputs("<p>", f);
		text(&w, "what");
		fputs("</p>", f);
	}
	fputs("<p class=\"small\">", f);
	text(&w, "made");
	fputs("; the study is ", f);
	text(&w, "status");
	fputs(". ", f);
	text(&w, "intervals");
	fputs("</p>\n", f);
	warnings(&w);
	for (i = 0; i < n; i++)
		figure(&w, i, svg[i]);
	phases_table(&w);
	cells_table(&w);
	service_table(&w);
	left_table(&w);
	machines(&w);
	fputs("</body></html>\n", f);
	return ferror(f) ? -EIO : 0;
}
