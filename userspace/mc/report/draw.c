// SPDX-License-Identifier: GPL-2.0
/* Pictures, by gnuplot. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../brumm/cli.h"
#include "report.h"

/* Okabe and Ito's palette: told apart by the colour-blind, and in print. */
static const char *const colours[] = {
	"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000",
	"#888888",
};

static const int shapes[] = { 7, 9, 5, 11, 6, 8, 4, 2 };

enum { COLOURS = ARRAY_SIZE(colours), WIDTH = 470, HEIGHT = 330, ROOM_FOR_KEY = 18,
       ROOM_FOR_NAME = 34 };

static double number(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *text(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key)) ?: "";
}

static void quote(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		fputc(*s, f);
	}
	fputc('"', f);
}

/* ---- axes ----------------------------------------------------------------- */

/* The first on top. */
static void set_names(FILE *f, const json_t *names)
{
	const json_t *name;
	size_t i;

	fputs("unset logscale y\nset ytics (", f);
	json_array_foreach(names, i, name) {
		fputs(i ? ", " : "", f);
		quote(f, json_string_value(name));
		fprintf(f, " %zu", i);
	}
	fprintf(f, ") scale 0\nset yrange [%zu.6:-0.6]\n", json_array_size(names) - 1);
}

static void set_axis(FILE *f, char which, const json_t *axis)
{
	const json_t *at = json_object_get(axis, "at"), *tic;
	bool log = json_is_true(json_object_get(axis, "log"));
	/* A little more, or a tic at the end of a logarithmic axis may be lost. */
	double more = log ? 1.001 : 1;
	size_t i;

	if (json_object_get(axis, "names")) {
		set_names(f, json_object_get(axis, "names"));
	} else {
		fprintf(f, "%s logscale %c\nset %ctics (", log ? "set" : "unset",
			which, which);
		json_array_foreach(json_object_get(axis, "tics"), i, tic) {
			fputs(i ? ", " : "", f);
			quote(f, json_string_value(tic));
			fprintf(f, " %.9g", json_number_value(json_array_get(at, i)));
		}
		fprintf(f, ") scale 0.5 norotate\nset %crange [%.9g:%.9g]\n", which,
			number(axis, "min") / more, number(axis, "max") * more);
	}
	fprintf(f, "set %clabel ", which);
	quote(f, text(axis, "label"));
	fputc('\n', f);
}

/* ---- what is in them ------------------------------------------------------ */

static void plot_series(FILE *f, const json_t *series, size_t i)
{
	const char *style = text(series, "style"), *label = text(series, "label");
	const char *colour = colours[i % COLOURS];
	int shape = shapes[i % COLOURS];

	if (!strcmp(style, "steps"))
		fprintf(f, "'-' using 1:2 with steps lw 2 dt %zu lc rgb \"%s\"",
			i % 5 + 1, colour);
	else if (!strcmp(style, "impulses"))
		fprintf(f, "'-' using 1:2 with impulses lw 2 lc rgb \"%s\"", colour);
	else if (!strcmp(style, "stack"))
		fprintf(f, "'-' using (($2+$3)/2):1:(($3-$2)/2):(0.35) with boxxyerror fs %s noborder lc rgb \"%s\"",
			i < COLOURS ? "solid 0.9" : "pattern 2", colour);
	else if (!strcmp(style, "across"))
		fprintf(f, "'-' using 2:1:3:4 with xerrorbars pt %d ps 1 lw 1.5 lc rgb \"%s\"",
			shape, colour);
	else
		fprintf(f, "'-' using 1:2:3:4 with yerrorlines pt %d ps 0.8 lw 1.5 dt %zu lc rgb \"%s\"",
			shape, i % 5 + 1, colour);
	fputs(" title ", f);
	quote(f, label);
}

/* What is not on a logarithmic axis is at its edge. */
static void put_points(FILE *f, const json_t *series, const json_t *y)
{
	bool log = json_is_true(json_object_get(y, "log"));
	const json_t *p;
	double v[4];
	size_t i, k;

	json_array_foreach(json_object_get(series, "points"), i, p) {
		for (k = 0; k < 4; k++) {
			const json_t *c = json_array_get(p, k);

			v[k] = json_is_number(c) ? json_number_value(c) : v[1];
		}
		for (k = 1; log && k < 4; k++)
			v[k] = fmax(v[k], number(y, "min"));
		fprintf(f, "%.9g %.9g %.9g %.9g\n", v[0], v[1], v[2], v[3]);
	}
	fputs("e\n", f);
}

static void put_marks(FILE *f, const json_t *marks, double most)
{
	const json_t *m;
	size_t i;

	fputs("unset arrow\nunset label\n", f);
	json_array_foreach(marks, i, m) {
		if (number(m, "x") > most)
			continue;
		fprintf(f, "set arrow from first %.9g, graph 0 to first %.9g, graph 1 nohead lc rgb \"#666666\" dt 3\n",
			number(m, "x"), number(m, "x"));
		if (!*text(m, "label"))
			continue;
		fputs("set label ", f);
		quote(f, text(m, "label"));
		fprintf(f, " at first %.9g, graph %.2f offset 0.4,0 textcolor rgb \"#444444\"\n",
			number(m, "x"), i % 2 ? 0.88 : 0.96);
	}
}

/* That of the second figure of a point: with names, the one across. */
static const json_t *value_axis(const json_t *panel)
{
	const json_t *y = json_object_get(panel, "y");

	return json_object_get(y, "names") ? json_object_get(panel, "x") : y;
}

/* The same name has the same colour in all panels. */
static size_t colour_of(json_t *labels, const json_t *series)
{
	const char *label = text(series, "label");
	json_t *known = json_object_get(labels, label);

	if (!known) {
		known = json_integer((json_int_t)json_object_size(labels));
		json_object_set_new(labels, label, known);
	}
	return (size_t)json_integer_value(known);
}

static void put_panel(FILE *f, const json_t *panel, json_t *labels)
{
	const json_t *list = json_object_get(panel, "series"), *s;
	const json_t *y = value_axis(panel);
	size_t i, seen = 0;

	fputs("set title ", f);
	quote(f, text(panel, "title"));
	fputc('\n', f);
	set_axis(f, 'x', json_object_get(panel, "x"));
	set_axis(f, 'y', json_object_get(panel, "y"));
	put_marks(f, json_object_get(panel, "marks"),
		  number(json_object_get(panel, "x"), "max"));
	if (json_array_size(list) > 1)
		fputs("set key outside bottom center horizontal samplen 1.5\n", f);
	else
		fputs("unset key\n", f);
	fputs("set boxwidth 0.6\nplot ", f);
	json_array_foreach(list, i, s) {
		if (!json_array_size(json_object_get(s, "points")))
			continue;
		fputs(seen++ ? ", " : "", f);
		plot_series(f, s, colour_of(labels, s));
	}
	/* An empty panel has its axes all the same. */
	fputs(seen ? "\n" : "NaN notitle\n", f);
	json_array_foreach(list, i, s) {
		/* gnuplot takes no series without any. */
		if (json_array_size(json_object_get(s, "points")))
			put_points(f, s, y);
	}
}

static size_t most_series(const json_t *panels)
{
	size_t i, n, most = 0;
	const json_t *p;

	json_array_foreach(panels, i, p) {
		n = json_array_size(json_object_get(p, "series"));
		most = n > most ? n : most;
	}
	return most;
}

static char *script(const json_t *figure)
{
	const json_t *panels = json_object_get(figure, "panels"), *p;
	size_t n = json_array_size(panels), columns = n > 1 ? 2 : 1, rows, i;
	bool wide = n == 1;
	size_t size = 0, height, names;
	char *s = NULL;
	FILE *f = open_memstream(&s, &size);
	json_t *labels;

	if (!f)
		return NULL;
	labels = json_object();
	rows = (n + columns - 1) / columns;
	height = rows * (HEIGHT + ROOM_FOR_KEY * (most_series(panels) / 2));
	names = json_array_size(json_object_get(json_object_get(
		json_array_get(panels, 0), "y"), "names"));
	if (names)
		height = 130 + names * ROOM_FOR_NAME;
	fprintf(f, "set terminal svg size %zu,%zu font \"sans-serif,12\" noenhanced background \"white\"\n"
		"set encoding utf8\nset border 3\nset grid lc rgb \"#dddddd\" lw 0.5\n"
		"set xtics nomirror\nset ytics nomirror\n"
		"set multiplot layout %zu,%zu\n",
		wide ? (size_t)WIDTH * 2 : WIDTH * columns, height, rows, columns);
	json_array_foreach(panels, i, p)
		put_panel(f, p, labels);
	fputs("unset multiplot\n", f);
	json_decref(labels);
	if (fclose(f)) {
		free(s);
		return NULL;
	}
	return s;
}

/* ---- gnuplot -------------------------------------------------------------- */

extern char **environ;

static pid_t start(int in, int out, int err_to)
{
	char *argv[] = { (char *)"gnuplot", NULL };
	posix_spawn_file_actions_t a;
	pid_t pid = -1;
	int err;

	posix_spawn_file_actions_init(&a);
	posix_spawn_file_actions_adddup2(&a, in, 0);
	posix_spawn_file_actions_adddup2(&a, out, 1);
	posix_spawn_file_actions_adddup2(&a, err_to, 2);
	err = posix_spawnp(&pid, argv[0], &a, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&a);
	errno = err;
	return err ? -1 : pid;
}

static char *read_file(FILE *f)
{
	long size = ftell(f);
	char *to = size < 0 ? NULL : calloc(1, (size_t)size + 1);

	rewind(f);
	if (to && fread(to, 1, (size_t)size, f) != (size_t)size) {
		free(to);
		to = NULL;
	}
	return to;
}

/* From <svg on: what is before is for a file of its own. */
static char *inside(char *svg)
{
	char *at = svg ? strstr(svg, "<svg") : NULL;

	if (at)
		memmove(svg, at, strlen(at) + 1);
	return at ? svg : NULL;
}

/* What gnuplot calls itself is no word of ours. */
static void cut(char *svg, const char *from, const char *to)
{
	char *at = svg, *end;

	while ((at = strstr(at, from)) && (end = strstr(at, to))) {
		end += strlen(to);
		memmove(at, end, strlen(end) + 1);
	}
}

static char *run(const char *program, int *status)
{
	FILE *in = tmpfile(), *out = tmpfile(), *said = tmpfile();
	char *svg = NULL, *why;
	int code = -1;
	pid_t pid;

	*status = EXIT_ERROR;
	if (!in || !out || !said || fputs(program, in) == EOF || fflush(in)) {
		cli_fail(errno, "temporary file");
		goto out;
	}
	rewind(in);
	pid = start(fileno(in), fileno(out), fileno(said));
	if (pid < 0) {
		cli_error("gnuplot cannot be run (%s); install gnuplot-nox",
			  strerror(errno));
		*status = EXIT_UNSUPPORTED;
		goto out;
	}
	while (waitpid(pid, &code, 0) < 0 && errno == EINTR)
		;
	fseek(out, 0, SEEK_END);
	svg = inside(read_file(out));
	if (!svg || code) {
		/* Otherwise it only warns, of what can be seen. */
		fseek(said, 0, SEEK_END);
		why = read_file(said);
		cli_error("gnuplot could not draw a figure: %s", why ?: "");
		free(why);
		free(svg);
		svg = NULL;
		goto out;
	}
	cut(svg, "<title>", "</title>");
	cut(svg, "<desc>", "</desc>");
	*status = EXIT_FINE;
out:
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	if (said)
		fclose(said);
	return svg;
}

char *draw_figure(const json_t *figure, int *status)
{
	char *program = script(figure), *svg;

	if (!program) {
		cli_fail(ENOMEM, "cannot draw");
		*status = EXIT_ERROR;
		return NULL;
	}
	svg = run(program, status);
	free(program);
	return svg;
}
