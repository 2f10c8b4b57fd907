# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# For the scripts of selftests/teardown/. The includer sets what lib/cli.sh
# wants, and cg, the name of a cgroup that is made here and removed at the end.
# shellcheck disable=SC2154

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
PATH=$top/build/user:$top/build/selftests/64/teardown:$PATH
. "$top/selftests/lib/cli.sh"

cleanup() {
	local pid
	set +e
	for pid in $(jobs -p); do
		kill -9 "$pid" 2>/dev/null
	done
	if [ -d "/sys/fs/cgroup/$cg" ]; then
		echo 1 >"/sys/fs/cgroup/$cg/cgroup.kill"
		until_true grep -q 'populated 0' "/sys/fs/cgroup/$cg/cgroup.events"
		find "/sys/fs/cgroup/$cg" -mindepth 1 -depth -type d -exec rmdir {} +
		rmdir "/sys/fs/cgroup/$cg"
	fi
	wait 2>/dev/null
	! mountpoint -q "$tmp/fs" || umount -l "$tmp/fs"
	rm -rf "$tmp"
}
trap cleanup EXIT

# is WANT GOT WHAT
is() {
	[ "$1" = "$2" ] || echo "is '$2', not '$1'" >>"$tmp/err"
	result $(("$(test "$1" = "$2"; echo $?)")) "$3"
}

# group NAME: make it below ours
group() {
	mkdir -p "/sys/fs/cgroup/$cg/$1"
}

# inside NAME COMMAND...: in the background, in that cgroup; without the
# descriptor 9, which tells an actor to end.
inside() {
	(echo 0 >"/sys/fs/cgroup/$cg/$1/cgroup.procs"; exec "${@:2}" 9>&-) &
}

# processes NAME: how many in it and below
processes() {
	find "/sys/fs/cgroup/$cg/$1" -name cgroup.procs -exec cat {} + 2>/dev/null | wc -l
}

gone() {
	[ ! -e "/sys/fs/cgroup/$1" ]
}

mkdir -p "/sys/fs/cgroup/$cg"
for c in cpu memory pids; do
	echo +$c >"/sys/fs/cgroup/cgroup.subtree_control"
	echo +$c >"/sys/fs/cgroup/$cg/cgroup.subtree_control"
done 2>/dev/null
