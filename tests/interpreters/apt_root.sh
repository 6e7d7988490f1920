# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced: a private apt root, so that packages of any Debian suite can be fetched and nothing on the
# machine changes.  The mirror is the one that the machine's own sources name.

# Prints the mirror: $DEBIAN_MIRROR, or the first URI that ends in /debian in the sources of apt below $APT_DIRECTORY.  A
# source may name a file with mirrors, one a line (mirror+file:).
apt_root_mirror() {
	local uri directory=${APT_DIRECTORY:-/etc/apt}
	if [ -n "${DEBIAN_MIRROR:-}" ]; then
		echo "$DEBIAN_MIRROR"
		return
	fi
	cat "$directory"/sources.list "$directory"/sources.list.d/*.list "$directory"/sources.list.d/*.sources 2>/dev/null |
		sed -n -e 's/^URIs:[ \t]*//p' -e 's/^deb\(-src\)\{0,1\} \(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\3/p' | tr -s ' \t' '\n\n' |
		while read -r uri; do
			case $uri in
			mirror+file:*)
				uri=${uri#mirror+file:}
				sed 's/#.*//; s/[ \t].*//' "/${uri#"${uri%%[!/]*}"}" 2>/dev/null
				;;
			*) echo "$uri" ;;
			esac
		done | sed -n 's/^\([a-z]*:\/\/*[^ ]*\/debian\)\/*$/\1/p' | head -n 1
}

# apt_root_new DIR SUITE...  Makes DIR a private root that sees only these suites, and updates its
# lists.  A suite whose name ends in -security lies below MIRROR-security.
apt_root_new() {
	local root=$1 mirror keyring file suite base # dash, busybox and bash know `local`
	shift
	mirror=$(apt_root_mirror)
	if [ -z "$mirror" ]; then
		echo "no Debian mirror in the sources of apt (set DEBIAN_MIRROR)" >&2
		return 1
	fi
	keyring=
	for file in /usr/share/keyrings/debian-archive-keyring.pgp /usr/share/keyrings/debian-archive-keyring.gpg; do
		[ ! -f "$file" ] || keyring=$file
	done
	mkdir -p "$root/etc/preferences.d" "$root/state/lists/partial" "$root/cache/archives/partial"
	: > "$root/status"
	for suite in "$@"; do
		base=$mirror
		case $suite in *-security) base=$mirror-security ;; esac
		echo "deb [${keyring:+signed-by=$keyring }arch=$(dpkg --print-architecture)] $base $suite main"
	done > "$root/etc/sources.list"
	cat > "$root/conf" <<CONF
Dir::Etc "$root/etc"; Dir::Etc::main "/dev/null"; Dir::Etc::parts "/dev/null";
Dir::State "$root/state"; Dir::State::status "$root/status"; Dir::Cache "$root/cache";
APT::Sandbox::User "root"; APT::Install-Recommends "false"; Acquire::Languages "none";
Acquire::Check-Valid-Until "false"; Acquire::Check-Date "false"; Acquire::Retries "3";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false"; Acquire::PDiffs "false";
CONF
	# An index that fails leaves the others usable; a root without any is an error.
	apt-get -c "$root/conf" update -qq > "$root/update.log" 2>&1 || true
	if ! ls "$root"/state/lists/*_Packages* > /dev/null 2>&1; then
		tail -n 3 "$root/update.log" >&2
		return 1
	fi
}

# apt_root_get ROOT PACKAGE...  Downloads into ROOT/deb.
apt_root_get() {
	mkdir -p "$1/deb"
	(
		root=$1
		shift
		cd "$root/deb" && apt-get -c "$root/conf" download -qq "$@" > "$root/get.log" 2>&1
	) || {
		tail -n 3 "$1/get.log" >&2
		return 1
	}
}

# apt_root_show ROOT PACKAGE FIELD  Prints the candidate's field.
apt_root_show() {
	apt-cache -c "$1/conf" show --no-all-versions "$2" 2>/dev/null | sed -n "s/^$3: //p" | head -n 1
}

# apt_root_closure ROOT PACKAGE...  Prints PACKAGE=VERSION of all that would be installed on an empty
# machine.
apt_root_closure() {
	local root=$1
	shift
	apt-get -c "$root/conf" install -s -y "$@" 2> "$root/closure.log" |
		sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p'
}
