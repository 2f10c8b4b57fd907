# SPDX-License-Identifier: GPL-2.0
# C selftests: each NAME.c of PROGRAMS with lib/ into
# build/selftests/<64|32>/<folder>/NAME. The includer sets TOP and PROGRAMS, and
# EXTRA for sources that all programs of the folder share.

LIB	:= $(TOP)/selftests/lib
SET	:= $(notdir $(CURDIR))
OUT	:= $(abspath $(TOP))/build/selftests
BITS	?= 64 32

CC	?= gcc
CFLAGS	?= -O2 -g

FLAGS	:= -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wno-missing-field-initializers \
	   -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 \
	   -I$(LIB) -pthread
SHARED	:= $(wildcard $(LIB)/*.c) $(EXTRA)
HEADERS	:= $(wildcard $(LIB)/*.h *.h) $(TOP)/module/uapi/brumm.h

all: $(foreach b,$(BITS),$(PROGRAMS:%=$(OUT)/$(b)/$(SET)/%))

define rules
$(OUT)/$(1)/$(SET)/obj/%.o: %.c $(HEADERS)
	@mkdir -p $$(@D)
	$$(CC) -m$(1) $$(FLAGS) $$(CFLAGS) -c -o $$@ $$<

$(OUT)/$(1)/$(SET)/obj/lib-%.o: $(LIB)/%.c $(HEADERS)
	@mkdir -p $$(@D)
	$$(CC) -m$(1) $$(FLAGS) $$(CFLAGS) -c -o $$@ $$<

$(PROGRAMS:%=$(OUT)/$(1)/$(SET)/%): $(OUT)/$(1)/$(SET)/%: \
		$(OUT)/$(1)/$(SET)/obj/%.o \
		$(patsubst %.c,$(OUT)/$(1)/$(SET)/obj/lib-%.o,$(notdir $(wildcard $(LIB)/*.c))) \
		$(patsubst %.c,$(OUT)/$(1)/$(SET)/obj/%.o,$(EXTRA))
	$$(CC) -m$(1) -pthread -o $$@ $$^
endef
$(foreach b,$(BITS),$(eval $(call rules,$(b))))

clean:
	rm -rf $(foreach b,$(BITS),$(OUT)/$(b)/$(SET))

.PHONY: all clean
.SECONDARY:
