#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_kinds.sh   The man page names what include/pyprofd/kinds.h lists; docs/pyprof.md has each
# fact that window_facts.c writes, and each reason of stops.h.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
failed=0

names() { # TABLE: the names of its rows
	awk -v table="#define $1(" '
		index($0, table) { inside = 1; next }
		inside && /^\t[XY]\(/ && match($0, /"[^"]*"/) { print substr($0, RSTART + 1, RLENGTH - 2) }
		inside && !/\\$/ { exit }' include/pyprofd/kinds.h
}
bad() {
	echo "$1: $2"
	failed=1
}
# The entry of an option in a man page: from its .TP to the next one that is not indented below it.
entry() { # PAGE OPTION
	sed 's/\\-/-/g' "$1" | awk -v option="$2" '
		/^\.RS/ { depth++ }
		/^\.RE/ { depth-- }
		!depth && /^\.(TP|SH|SS)/ { inside = 0; first = 1; next }
		first { inside = $0 ~ "^\\.B[IR]* " option "([^a-z-]|$)"; first = 0 }
		inside'
}

kinds=$(names PP_PROFILES | tr '\n' ' ')
events=$(names PP_CAPTURES | tr '\n' ' ')
[ -n "$kinds" ] && [ -n "$events" ] || bad include/pyprofd/kinds.h 'no table of kinds found'
for kind in $kinds; do
	grep -qw "$kind" docs/man/pyprofd.1 || bad docs/man/pyprofd.1 "the kind $kind is missing"
done
for event in $events; do
	entry docs/man/pyprofd.1 --events | grep -qw "$event" || bad docs/man/pyprofd.1 "--events: $event is missing"
done

# The names of a table of stops.h: the second word of its rows, whose text may stand on the next line.
reasons() { # TABLE
	awk -v table="#define $1(" '
		index($0, table) { inside = 1; next }
		inside && /X\(/ && match($0, /"[^"]*"/) { print substr($0, RSTART + 1, RLENGTH - 2) }
		inside && !/\\$/ { exit }' include/pyprofd/stops.h
}
page=docs/pyprof.md
[ "$(reasons PP_LOSSES | wc -l)" -gt 20 ] || bad include/pyprofd/stops.h 'no table of losses found'
# Walks that end so are whole.
for reason in $(reasons PP_LOSSES) $(reasons PP_STOPS | grep -vxE 'none|root|no_user|finished'); do
	grep -q "^| \`$reason\` |" $page || bad $page "the reason $reason is missing"
done
facts=userspace/agent/window_facts.c
for fact in $(grep -oE '[a-z_]+=%|put\(out, "", "[a-z_]+"' $facts | sed 's/=%//; s/.*"\(.*\)"/\1/'); do
	grep -q "^| .*\`$fact\`.* |" $page || bad $page "the fact $fact is missing"
done
exit $failed
