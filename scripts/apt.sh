# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016
# Packages of any Debian suite, without installing and without a mirror's name:
# the address comes from apt's own configuration.  To be sourced after lib.sh.
# (SC2016: $(CODENAME) and the like are apt's format, not the shell's.)

# suite_known SUITE: does apt on this machine read that suite?
suite_known() {
	grep -qxF -- "$1" <<<"$(apt-get indextargets --format '$(CODENAME)' 'Created-By: Packages')"
}

# mirror_uri: where the main archive of Debian is for this machine.
mirror_uri() {
	local uri
	uri=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' \
		'Created-By: Packages' 'Origin: Debian' 'Label: Debian' |
		awk '$2 !~ /-/ && !seen++ { print $1 }')
	[ -n "$uri" ] || die "apt is not configured with a Debian archive" \
		"apt-get update, and see sources.list(5)"
	printf '%s\n' "$uri"
}

# apt_conf SUITE: apt's configuration for a suite.  Empty for the machine's own;
# otherwise folders of ours, so that nothing on the machine changes.
apt_conf() {
	local dir base suites=$1
	if suite_known "$1"; then
		return 0
	fi
	dir=$BRUMM_CACHE/apt/$1
	# Lists that are some hours old may name files that the mirror has dropped.
	if [ -z "$(find "$dir/updated" -mmin -360 2>/dev/null)" ]; then
		base=${1%-backports}
		[ "$base" = "$1" ] || suites="$base $1"
		mkdir -p "$dir"/{lists/partial,cache/archives/partial,etc}
		: >"$dir/status"
		cat >"$dir/sources.list" <<-END
			$(for s in $suites; do
				echo "deb [signed-by=$(debian_keyring)] $(mirror_uri) $s main"
			done)
		END
		cat >"$dir/apt.conf" <<-END
			Dir::State "$dir";
			Dir::State::status "$dir/status";
			Dir::Cache "$dir/cache";
			Dir::Etc::sourcelist "$dir/sources.list";
			Dir::Etc::sourceparts "$dir/etc";
			Dir::Etc::preferencesparts "$dir/etc";
			APT::Sandbox::User "root";
			Acquire::Languages "none";
		END
		msg "reading the package lists of $1"
		APT_CONFIG=$dir/apt.conf apt-get -qq update >&2 ||
			die "the package lists of $1 cannot be read" \
				"check the network; the mirror is the one of apt's configuration"
		touch "$dir/updated"
	fi
	printf '%s\n' "$dir/apt.conf"
}

debian_keyring() {
	local k=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -e "$k" ] || die "$k is missing" "apt-get install debian-archive-keyring"
	printf '%s\n' "$k"
}

# suite_apt SUITE COMMAND...: run an apt command for that suite.
suite_apt() {
	local conf
	conf=$(apt_conf "$1")
	shift
	if [ -n "$conf" ]; then
		APT_CONFIG=$conf "$@"
	else
		"$@"
	fi
}

# newest_package SUITE REGEX: the package with the highest name that matches.
# Debian puts the ABI in the name, so the highest name is the newest kernel.
newest_package() {
	local name
	name=$(suite_apt "$1" apt-cache --names-only search "^$2\$" |
		awk '{ print $1 }' | grep -xE -- "$2" | sort -V | tail -n 1)
	[ -n "$name" ] || die "suite $1 has no package that matches $2" \
		"apt-get update; if it is still missing, correct lanes.list"
	printf '%s\n' "$name"
}

# package_version SUITE NAME
package_version() {
	suite_apt "$1" apt-cache show --no-all-versions "$2" |
		awk '$1 == "Version:" && !seen++ { print $2 }'
}

# package_depends SUITE NAME REGEX: its direct dependencies whose name matches.
package_depends() {
	suite_apt "$1" apt-cache show --no-all-versions "$2" |
		sed -n 's/^\(Pre-\)\?Depends: //p' | sed 's/[,|]/\n/g' |
		awk '{ print $1 }' | grep -xE -- "$3" | sort -u || true
}

# fetch_packages SUITE DIR NAME...: the .deb files into DIR.  apt checks them,
# and goes on where a run that was cut off stopped.
fetch_packages() {
	local suite=$1 dir=$2
	shift 2
	mkdir -p "$dir"
	(
		cd "$dir"
		suite_apt "$suite" apt-get -qq -o APT::Sandbox::User=root download "$@" >&2
	) || die "cannot download $*" "apt-get update, then the same command again"
}
