// SPDX-License-Identifier: GPL-2.0
/* Slots of the histogram that BPF fills and user space reads. */
#define _GNU_SOURCE
#include <linux/types.h>
#include <math.h>

#include "common.h"
#include "../../bpf/hist.h"

static void every_value_is_in_its_slot(void **state)
{
	uint64_t v = 0;

	(void)state;
	while (v < 1ULL << HIST_POWERS) {
		uint32_t slot = hist_slot(v);

		assert_in_range(slot, 0, HIST_SLOTS - 1);
		assert_true(hist_low(slot) <= v);
		assert_true(v < hist_low(slot + 1));
		v += v / 500 + 1;
	}
}

static void slots_follow_each_other(void **state)
{
	uint32_t slot;

	(void)state;
	for (slot = 0; slot < HIST_SLOTS; slot++) {
		assert_int_equal(hist_slot(hist_low(slot)), slot);
		assert_int_equal(hist_slot(hist_low(slot + 1) - 1), slot);
	}
	assert_true(hist_low(HIST_SLOTS) == 1ULL << HIST_POWERS);
}

static void the_middle_is_near(void **state)
{
	uint32_t slot;

	(void)state;
	for (slot = 0; slot < HIST_SLOTS; slot++) {
		double low = (double)hist_low(slot);
		double high = (double)hist_low(slot + 1) - 1;

		if (low)
			assert_true((high - low) / 2 / low <= 1.0 / 64);
	}
}

static void what_is_too_long_is_in_the_last(void **state)
{
	(void)state;
	assert_int_equal(hist_slot(1ULL << HIST_POWERS), HIST_SLOTS - 1);
	assert_int_equal(hist_slot(UINT64_MAX), HIST_SLOTS - 1);
}

static void logarithms(void **state)
{
	unsigned int bit;

	(void)state;
	for (bit = 0; bit < 64; bit++) {
		assert_int_equal(hist_log2(1ULL << bit), bit);
		assert_int_equal(hist_log2(UINT64_MAX >> (63 - bit)), bit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_is_in_its_slot),
		cmocka_unit_test(slots_follow_each_other),
		cmocka_unit_test(the_middle_is_near),
		cmocka_unit_test(what_is_too_long_is_in_the_last),
		cmocka_unit_test(logarithms),
	};

	return RUN_TAP("hist", tests);
}
