/* SPDX-License-Identifier: GPL-2.0 */
/* Instructions that do nothing, and that no compiler makes: nopl 0x....(%rax). */
#ifndef BRUMM_SELFTESTS_MARK_H
#define BRUMM_SELFTESTS_MARK_H

/* What the loop of the check takes. */
#define STEPS_LOOP	2000000

#define MARK_BYTES	7
#define MARK_BEGIN	"\x0f\x1f\x80\x01mrb"
#define MARK_END	"\x0f\x1f\x80\x02mrb"
#define MARK_NEXT	"\x0f\x1f\x80\x03mrb"

#define MARK_BEGIN_ASM	".byte 0x0f, 0x1f, 0x80, 0x01, 'm', 'r', 'b'"
#define MARK_END_ASM	".byte 0x0f, 0x1f, 0x80, 0x02, 'm', 'r', 'b'"
#define MARK_NEXT_ASM	".byte 0x0f, 0x1f, 0x80, 0x03, 'm', 'r', 'b'"

#endif /* BRUMM_SELFTESTS_MARK_H */
