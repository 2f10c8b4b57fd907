// SPDX-License-Identifier: GPL-2.0
/* Times as the knobs spell them. */
#include "units.h"
#include "world.h"
#include <tap.h>

struct parse_case {
	const char *text;
	int err;
	u64 ns;
};

static void limits(void)
{
	static const struct parse_case list[] = {
		{ "0", 0, 0 }, { "1", 0, 1000 }, { "5000", 0, 5000000 },
		{ "5000\n", 0, 5000000 }, { "  7us  ", 0, 7000 },
		{ "7 us", 0, 7000 }, { "7ns", 0, 7 }, { "7ms", 0, 7000000 },
		{ "7s", 0, 7000000000ULL }, { "1.5", 0, 1500 },
		{ "0.001", 0, 1 }, { "1.500000s", 0, 1500000000 },
		{ "1.2500", 0, 1250 }, { "max", 0, U64_MAX },
		{ "max\n", 0, U64_MAX }, { " max ", 0, U64_MAX },
		{ "007", 0, 7000 }, { "18446744073709551614ns", 0, U64_MAX - 1 },
		{ "18446744073709551.614", 0, U64_MAX - 1 },
		{ "18446744073.709551614s", 0, U64_MAX - 1 },
		{ "18446744073709551615ns", -ERANGE },
		{ "18446744073709551616ns", -ERANGE },
		{ "18446744073709551.615", -ERANGE },
		{ "18446744073709552", -ERANGE }, { "99999999999999999999", -ERANGE },
		{ "340282366920938463463374607431768211456", -ERANGE },
		{ "18446744074s", -ERANGE },
		{ "", -EINVAL }, { " ", -EINVAL }, { "\n", -EINVAL },
		{ "-1", -EINVAL }, { "+1", -EINVAL }, { "0x10", -EINVAL },
		{ "1e3", -EINVAL }, { "1.", -EINVAL }, { ".5", -EINVAL },
		{ "1.2.3", -EINVAL }, { "1.0001", -EINVAL }, { "0.1ns", -EINVAL },
		{ "1.0ns", 0, 1 }, { "1m", -EINVAL }, { "1 s s", -EINVAL },
		{ "1 2", -EINVAL }, { "max 1", -EINVAL }, { "maximum", -EINVAL },
		{ "MAX", -EINVAL }, { "us", -EINVAL }, { "1 us2", -EINVAL },
		{ "1us.", -EINVAL }, { "1 .5", -EINVAL }, { "nan", -EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(list); i++) {
		u64 ns = 12345;
		int err = units_parse_limit(list[i].text, strlen(list[i].text),
					    &ns);

		if (err != list[i].err || (!err && ns != list[i].ns) ||
		    (err && ns != 12345))
			tap_fail(__FILE__, __LINE__, "'%s' gives %s, %llu",
				 list[i].text, tap_result(err), ns);
	}
	/* A byte 0 is no white space, and the text need not end in one. */
	CHECK_RET(units_parse_limit("1\0", 2, &(u64){ 0 }), -EINVAL);
	CHECK_OK(units_parse_limit("12", 1, &(u64){ 0 }));
}

static void round_trip(void)
{
	char text[UNITS_TIME_BYTES];
	u64 i, ns, back;
	struct rnd r;

	rnd_seed(&r, tap_seed());
	for (i = 0; i < 200000; i++) {
		ns = ((u64)rnd(&r, 1U << 31) << 33 ^ rnd(&r, 1U << 31)) >>
		     rnd(&r, 64);
		if (!rnd(&r, 20))
			ns = U64_MAX - rnd(&r, 3);
		units_print_limit(text, ns);
		if (units_parse_limit(text, strlen(text), &back) || back != ns)
			tap_fail(__FILE__, __LINE__, "%llu is printed as '%s'",
				 ns, text);
		CHECK(units_us_up(ns) == ns / 1000 + (ns % 1000 > 0));
		STOP_IF_FAILED();
	}
}

static void printed(void)
{
	static const struct {
		u64 ns;
		const char *text;
	} list[] = {
		{ 0, "0" }, { 1, "0.001" }, { 1000, "1" }, { 1500, "1.5" },
		{ 1050, "1.05" }, { U64_MAX, "max" },
		{ U64_MAX - 1, "18446744073709551.614" },
	};
	char text[UNITS_TIME_BYTES];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(list); i++) {
		units_print_limit(text, list[i].ns);
		if (strcmp(text, list[i].text))
			tap_fail(__FILE__, __LINE__, "%llu is printed as '%s'",
				 list[i].ns, text);
	}
}

static void bools(void)
{
	static const struct parse_case list[] = {
		{ "0", 0, 0 }, { "1", 0, 1 }, { " 1\n", 0, 1 },
		{ "2", -EINVAL }, { "", -EINVAL }, { "01", -EINVAL },
		{ "1 1", -EINVAL }, { "true", -EINVAL }, { "-1", -EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(list); i++) {
		bool on = false;
		int err = units_parse_bool(list[i].text, strlen(list[i].text),
					   &on);

		CHECK_RET(err, list[i].err);
		CHECK_EQ(on, list[i].ns);
	}
}

/* Whatever is written, nothing is read beyond it (AddressSanitizer looks on). */
static void any_bytes(void)
{
	static const char bytes[] = "0123456789.. usnm\n\tmax-+e\0\377";
	struct rnd r;
	u64 i, ns, n;

	rnd_seed(&r, tap_seed());
	for (i = 0; i < 300000; i++) {
		size_t len = rnd(&r, 12), k;
		char *text = malloc(len ?: 1);
		bool on;

		for (k = 0; k < len; k++)
			text[k] = bytes[rnd(&r, sizeof(bytes) - 1)];
		ns = n = 77;
		if (units_parse_limit(text, len, &ns))
			CHECK_EQ(ns, 77);
		if (units_parse_time(text, len, UNITS_NS, &n))
			CHECK_EQ(n, 77);
		units_parse_bool(text, len, &on);
		free(text);
	}
}

static const struct tap_case cases[] = {
	{ "limits are read exactly or refused", limits },
	{ "what is printed is read back", round_trip },
	{ "limits are printed in us", printed },
	{ "0 and 1", bools },
	{ "any bytes", any_bytes },
};

TAP_MAIN(cases)
