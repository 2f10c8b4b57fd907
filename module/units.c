// SPDX-License-Identifier: GPL-2.0
/*
 * Read and print times.
 *
 * Contract: a time is a decimal number, with or without decimals, and a
 * suffix: ns, us, ms or s; white space may stand around it and between the
 * two. It is read exactly or refused: -EINVAL is not a time, or finer than a
 * nanosecond; -ERANGE is one, but too large. What is printed for a limit is
 * read back as the same limit.
 *
 * No sign, no other base, no exponent, no byte 0. Portable: nothing here but
 * what os.h offers.
 */
#include "units.h"

static const struct {
	const char *suffix;
	u64 ns;
} units[] = {
	{ "ns", UNITS_NS },
	{ "us", UNITS_US },
	{ "ms", 1000 * UNITS_US },
	{ "s", 1000000 * UNITS_US },
};

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/**
 * units_next_word() - take the next word between white space
 * @s: where to look; moves behind the word
 * @end: end of the text
 * @word: out: the word
 * @len: out: its length
 *
 * Return: is there one?
 */
bool units_next_word(const char **s, const char *end, const char **word,
		     size_t *len)
{
	while (*s < end && is_space(**s))
		++*s;
	*word = *s;
	while (*s < end && !is_space(**s))
		++*s;
	*len = *s - *word;
	return *len > 0;
}

bool units_word_is(const char *word, size_t len, const char *what)
{
	return strlen(what) == len && !memcmp(word, what, len);
}

static bool suffix_ns(const char *word, size_t len, u64 *ns)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (units_word_is(word, len, units[i].suffix)) {
			*ns = units[i].ns;
			return true;
		}
	}
	return false;
}

/* Digits from @s on; saturates at U64_MAX. */
static u64 parse_digits(const char **s, const char *end)
{
	u64 n = 0;

	for (; *s < end && is_digit(**s); ++*s) {
		if (check_mul_overflow(n, (u64)10, &n) ||
		    check_add_overflow(n, (u64)(**s - '0'), &n))
			n = U64_MAX;
	}
	return n;
}

/* What stands behind the decimal point; @unit is a power of ten. */
static int parse_decimals(const char **s, const char *end, u64 unit, u64 *ns)
{
	if (*s == end || !is_digit(**s))
		return -EINVAL;
	for (*ns = 0; *s < end && is_digit(**s); ++*s) {
		unit /= 10;
		if (!unit && **s != '0')
			return -EINVAL;
		*ns += (**s - '0') * unit;
	}
	return 0;
}

/**
 * units_parse_time() - read a time
 * @s: the text
 * @len: its length
 * @unit: ns of a number without a suffix
 * @ns: out: the time; unchanged on failure
 *
 * Return: 0, -EINVAL not a time or finer than a ns, -ERANGE U64_MAX or more.
 */
int units_parse_time(const char *s, size_t len, u64 unit, u64 *ns)
{
	const char *end = s + len, *number, *suffix, *tail = s, *p;
	size_t number_len, suffix_len;
	u64 whole, decimals = 0, sum;

	if (!units_next_word(&tail, end, &number, &number_len))
		return -EINVAL;
	if (!is_digit(*number))
		return -EINVAL;

	/* A suffix is the rest of this word or the next one. */
	for (p = number; p < tail && (is_digit(*p) || *p == '.'); p++)
		;
	suffix = p;
	suffix_len = tail - p;
	if (suffix_len || units_next_word(&tail, end, &suffix, &suffix_len)) {
		if (!suffix_ns(suffix, suffix_len, &unit))
			return -EINVAL;
	}
	if (units_next_word(&tail, end, &suffix, &suffix_len))
		return -EINVAL;

	end = p;
	p = number;
	whole = parse_digits(&p, end);
	if (p < end) {
		p++;
		if (parse_decimals(&p, end, unit, &decimals) || p < end)
			return -EINVAL;
	}
	if (check_mul_overflow(whole, unit, &sum) ||
	    check_add_overflow(sum, decimals, &sum) || sum == UNITS_NO_LIMIT)
		return -ERANGE;
	*ns = sum;
	return 0;
}

/**
 * units_parse_limit() - read a time in us, or "max"
 * @s: the text
 * @len: its length
 * @ns: out: the limit; unchanged on failure
 *
 * Return: as units_parse_time().
 */
int units_parse_limit(const char *s, size_t len, u64 *ns)
{
	const char *tail = s, *word, *rest;
	size_t word_len, rest_len;

	if (units_next_word(&tail, s + len, &word, &word_len) &&
	    units_word_is(word, word_len, UNITS_MAX_WORD)) {
		if (units_next_word(&tail, s + len, &rest, &rest_len))
			return -EINVAL;
		*ns = UNITS_NO_LIMIT;
		return 0;
	}
	return units_parse_time(s, len, UNITS_US, ns);
}

/* Read 0 or 1. Return: 0, or -EINVAL. */
int units_parse_bool(const char *s, size_t len, bool *on)
{
	const char *tail = s, *word, *rest;
	size_t word_len, rest_len;

	if (!units_next_word(&tail, s + len, &word, &word_len) ||
	    units_next_word(&tail, s + len, &rest, &rest_len))
		return -EINVAL;
	if (word_len != 1 || (*word != '0' && *word != '1'))
		return -EINVAL;
	*on = *word == '1';
	return 0;
}

/* Whole us, rounded up, so that 0 means nothing at all. */
u64 units_us_up(u64 ns)
{
	return ns / UNITS_US + !!(ns % UNITS_US);
}

/**
 * units_print_limit() - print what units_parse_limit() reads
 * @buf: where to
 * @ns: the limit: us, with as many decimals as it needs, or "max"
 */
void units_print_limit(char buf[UNITS_TIME_BYTES], u64 ns)
{
	unsigned int rest = ns % UNITS_US;
	int len;

	if (ns == UNITS_NO_LIMIT) {
		snprintf(buf, UNITS_TIME_BYTES, UNITS_MAX_WORD);
		return;
	}
	len = snprintf(buf, UNITS_TIME_BYTES, "%llu",
		       (unsigned long long)(ns / UNITS_US));
	if (!rest)
		return;
	len += snprintf(buf + len, UNITS_TIME_BYTES - len, ".%03u", rest);
	while (buf[len - 1] == '0')
		buf[--len] = '\0';
}
