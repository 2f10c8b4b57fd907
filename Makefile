# SPDX-License-Identifier: GPL-2.0
# User targets only; `make help` lists them.  Objects and flags of the module
# are in Kbuild, the work is done by scripts/.

# Which kernel: a lane of lanes.list, or the build folder of a kernel, or (with
# neither) the running one.
LANE	?=
KDIR	?=
# Quiet unless V=1, as in the kernel's own build.
V	?= 0

SHELL	:= /bin/bash
MAKEFLAGS += --no-print-directory
# 0: leave the accounting out, as the base line for measurements; the module is
# then built in build/<release>-noquota/.
QUOTA	?= 1
kernel	:= $(if $(LANE),-k $(LANE),$(if $(KDIR),-K $(KDIR)))
lanes	= $(shell awk '!/^[[:space:]]*(\#|$$)/ && $$6 == "$(1)" { print $$1 }' lanes.list)
has	= $(wildcard $(1)/Makefile)

# User space first: it builds everywhere, the module only with headers.
all: ## build everything (nothing is installed); LANE= or KDIR= choose the kernel
	@$(MAKE) user
	@$(MAKE) module

module: ## build brumm.ko into build/<release>/
	@scripts/build-module $(kernel) $(if $(filter 0,$(QUOTA)),-q) modules V=$(V)

bpf: ## build the BPF objects into build/bpf/
	@$(if $(call has,bpf),$(MAKE) -C bpf,scripts/build-bpf)

user: bpf ## build libbrumm and the tools
	@$(if $(call has,userspace),$(MAKE) -C userspace,:)

deps: ## install the Debian packages that are missing
	@scripts/deps

kernels: ## fetch the kernels under test into the cache (LANE=: only that one)
	@scripts/fetch-kernels $(LANE)

modules-all: kernels ## build brumm.ko for all lanes but debug
	@set -e; for lane in $(call lanes,stock); do scripts/build-module -k $$lane modules V=$(V); done

check: deps kernels ## unit tests, and all selftests on the lanes (LANE=: only that one)
	@scripts/check $(or $(LANE),none $(call lanes,stock))

check-debug: deps ## the selftests on the debug kernel, which is built first
	@scripts/fetch-kernels debug
	@scripts/check debug

demo: deps ## show what it does, on a kernel under test
	@scripts/demo $(LANE)

figures: deps ## measure and draw the paper's figures (LANE=): out/figures/index.html
	@scripts/fetch-kernels $(or $(LANE),6.12)
	@selftests/figures/run --lane $(or $(LANE),6.12)

bars: deps ## measure what has to be reached; exit code 2 if a bar is missed (LANE=)
	@scripts/fetch-kernels $(or $(LANE),6.12)
	@selftests/figures/bars --lane $(or $(LANE),6.12)

lint: deps ## static checks; no output means no finding
	@scripts/lint

install: ## install module and tools (DESTDIR=, PREFIX=)
	@scripts/install-module $(kernel)
	@$(if $(call has,userspace),$(MAKE) -C userspace install,:)

uninstall: ## undo install
	@scripts/install-module -u $(kernel)
	@$(if $(call has,userspace),$(MAKE) -C userspace uninstall,:)

clean: ## remove build/ and out/ (the cache of kernels stays)
	@rm -rf build out

help: ## this list
	@echo 'make [TARGET] [LANE=lane | KDIR=folder] [QUOTA=0] [V=1] [W=1]'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
	@echo
	@echo 'lanes: $(call lanes,stock) $(call lanes,built)   cache: $${BRUMM_CACHE:-~/.cache/brumm}'

.PHONY: all module bpf user deps kernels modules-all check check-debug demo figures bars lint \
	install uninstall clean help
.DEFAULT_GOAL := all
