# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# For tests of commands: TAP results from exit codes, messages and JSON. The
# includer sets tmp (a folder), n=0 and failed=0.
# shellcheck disable=SC2034,SC2154

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
		sed 's/^/# /' "$tmp/out" "$tmp/err"
	fi
}

# run CODE COMMAND...: for check: output, messages and exit code
run() {
	want=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err"
	code=$?
	[ "$code" = "$want" ]
}

# exits CODE TEXT COMMAND...: exit code, and TEXT in its output or messages
exits() {
	local text=$2 ok=0
	run "$1" "${@:3}" || { ok=1; echo "exit code $code, not $1" >>"$tmp/err"; }
	[[ "$(<"$tmp/out") $(<"$tmp/err")" = *"$text"* ]] || ok=1
	result $ok "${*:3} ($1)"
}

# json FILTER CODE COMMAND...: its output is JSON for which FILTER is true
json() {
	local ok=0
	run "$2" "${@:3}" || { ok=1; echo "exit code $code, not $2" >>"$tmp/err"; }
	jq -e "$1" "$tmp/out" >/dev/null 2>>"$tmp/err" || ok=1
	result $ok "${*:3}: $1"
}

# hold FILE...: each line of the input is a name, a tab, and a filter that has to
# be true for the JSON in the files. One process for all: they cost in a guest.
hold() {
	local name filter program='' verdict text
	while IFS=$'\t' read -r name filter; do
		[ -z "$name" ] || program+="${program:+, }[\"$name\", (try ($filter) catch .)]"
	done
	jq -r "$program | if .[1] == true then \"0\" else \"1\" end + \" \" + .[0], \"got \\(.[1])\"" \
		"$@" >"$tmp/held" 2>"$tmp/err" || { result 1 "jq: $program"; return; }
	while read -r verdict name && read -r text; do
		echo "$text" >"$tmp/out"
		result "$verdict" "$name"
	done <"$tmp/held"
}

until_true() {
	local _
	for _ in {1..100}; do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}
