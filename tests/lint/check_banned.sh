#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_banned.sh   Calls and words that have a safer form, and who may use them all the same.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
failed=0

# ban REASON PATTERN FILE...   Comments and strings do not count.
ban() {
	reason=$1 pattern=$2
	shift 2
	awk -v pattern="$pattern" -v reason="$reason" '
		{
			line = $0
			gsub(/\\"/, "", line)
			gsub(/"[^"]*"/, "\"\"", line)
			if (FNR == 1)
				inside = 0
			if (inside) {
				if (!sub(/^.*\*\//, "", line))
					next
				inside = 0
			}
			gsub(/\/\*[^*]*(\*[^\/][^*]*)*\*\//, "", line)
			if (sub(/\/\*.*/, "", line))
				inside = 1
		}
		line ~ pattern { printf "%s:%d: %s (%s)\n", FILENAME, FNR, $0, reason; failed = 1 }
		END { exit failed }' "$@" || failed=1
}

all=$(find bpf include userspace -name '*.[ch]')
user=$(find userspace -name '*.[ch]')
quiet=$(find userspace -name '*.[ch]' | grep -vE '^userspace/(agent|processes|windows|probes|gpu|doctor|store)/|^userspace/base/log\.')
silent=$(find userspace -name '*.[ch]' | grep -vE '^userspace/(agent|doctor|reader)/|^userspace/(serve|collectors)/main\.c|^userspace/base/log\.')
word='(^|[^A-Za-z0-9_>.])'
# shellcheck disable=SC2086
{
	ban 'no bound on what is written' "$word(strcpy|strcat|sprintf|vsprintf|gets|stpcpy)[ ]*\\(" $all
	ban 'errors cannot be seen: strtoul, or option_number()' "$word(atoi|atol|atoll|atof)[ ]*\\(" $all
	ban 'hidden state: strsep, strtok_r, localtime_r, ...' \
		"$word(strtok|gmtime|localtime|ctime|asctime|rand|srand|tmpnam|mktemp)[ ]*\\(" $all
	ban 'a shell between us and the program' "$word(system|popen)[ ]*\\(" $all
	ban 'no bound on the stack' "$word(alloca)[ ]*\\(" $all
	ban 'owners release themselves: base/cleanup.h' "${word}goto[ \t]" $user
	ban 'return -errno' 'return -1;' $user
	ban 'comments are /* */' '(^|[ \t;{}])//' $all
	ban 'only the rooms of the agent log above debug' "$word(log_error|log_warn|log_info|log_error_errno|log_warn_errno|perror)[ ]*\\(" $quiet
	ban 'only agent/, doctor/, reader/ and the main.c of serve/ and collectors/ print' "$word(printf|puts|putchar|vprintf)[ ]*\\(|$word(fprintf|fputs)\\([^;]*std(err|out)" $silent
}

for file in $all $(find tests -name '*.[ch]' -o -name '*.sh' -o -name '*.py'); do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: ' || {
		echo "$file: no SPDX-License-Identifier in its first lines"
		failed=1
	}
done
for file in $(find bpf include -name '*.[ch]'); do
	head -n 1 "$file" | grep -q 'GPL-2.0-only OR BSD-2-Clause' || {
		echo "$file: the kernel side is GPL-2.0-only OR BSD-2-Clause"
		failed=1
	}
done
exit $failed
