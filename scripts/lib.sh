# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Common to the build scripts: messages, the cache, the lanes of lanes.list.
# To be sourced, after `set -euo pipefail`.

BRUMM_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
BRUMM_CACHE=${BRUMM_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or BRUMM_CACHE}/.cache}/brumm}
LANES_LIST=${BRUMM_LANES:-$BRUMM_TOP/lanes.list}

msg() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# die WHAT [REMEDY]: an error without a remedy leaves the reader alone.
die() {
	printf '%s: error: %s\n' "${0##*/}" "$1" >&2
	if [ $# -gt 1 ]; then
		printf '%s: remedy: %s\n' "${0##*/}" "$2" >&2
	fi
	exit 1
}

# need COMMAND...: one clear line, not "command not found" far inside a build.
need() {
	local c
	for c in "$@"; do
		command -v "$c" >/dev/null || die "$c is not installed" "make deps"
	done
}

lanes_all() { awk '!/^[[:space:]]*(#|$)/ { print $1 }' "$LANES_LIST"; }
lanes_stock() { awk '!/^[[:space:]]*(#|$)/ && $6 == "stock" { print $1 }' "$LANES_LIST"; }

# lane_field LANE COLUMN
lane_field() {
	local column
	case $2 in
	image) column=2 ;; headers) column=3 ;; suite) column=4 ;;
	compiler) column=5 ;; kind) column=6 ;;
	*) die "lane_field: no column $2" ;;
	esac
	awk -v lane="$1" -v column="$column" \
		'!/^[[:space:]]*(#|$)/ && $1 == lane { print $column }' "$LANES_LIST"
}

lane_check() {
	grep -qxF -- "$1" <<<"$(lanes_all)" ||
		die "no lane '$1'" "one of: $(lanes_all | tr '\n' ' ')(lanes.list)"
}

lane_dir() { printf '%s/lanes/%s\n' "$BRUMM_CACHE" "$1"; }
lane_ready() { [ -s "$(lane_dir "$1")/release" ]; }

# with_lock NAME FUNCTION [ARG...]: one run at a time makes a thing; a second
# one waits and then finds it done.  The lock goes away with its holder.
with_lock() {
	local name=$1
	shift
	mkdir -p "$BRUMM_CACHE/lock"
	(
		exec 9>"$BRUMM_CACHE/lock/$name"
		if ! flock -n 9; then
			msg "$name: waiting for another run"
			flock 9
		fi
		"$@"
	)
}

# fresh_dir PATH: an empty folder, whatever a run that was killed left there.
fresh_dir() {
	rm -rf -- "$1"
	mkdir -p -- "$1"
}

# replace_dir NEW PATH: put a complete folder in place by one rename.
replace_dir() {
	local old=$2.old.$$
	mkdir -p -- "$(dirname "$2")"
	if [ -e "$2" ] || [ -L "$2" ]; then
		mv -T -- "$2" "$old"
	fi
	mv -T -- "$1" "$2"
	rm -rf -- "$old"
}
