#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [OPTION...]   What `make run` runs: pyprofd with the page over HTTP on this machine, whose address, with a token of its
# own, is printed as soon as somebody answers there.  OPTIONs are pyprofd's, and go before those given here.
set -u
build=${BUILD:-build}
token_file=$build/run-token
listens() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }
answers() { # PORT
	local line
	{ exec 3<> "/dev/tcp/127.0.0.1/$1"; } 2> /dev/null || return
	printf 'GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
	read -r -t 5 line <&3
	exec 3>&-
	[[ $line == *' 200 '* ]]
}

umask 077
[ -s "$token_file" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > "$token_file" || exit
umask 022
for ((port = 4041; port < 4141; port++)); do listens $port || break; done
echo 'pyprofd: Ctrl-C ends it'
# $$ is pyprofd's, later.  ARGS may have it serve elsewhere, or not at all.
(
	for ((i = 0; i < 100; i++)); do
		sleep 0.3
		kill -0 $$ 2> /dev/null || exit
		if answers $port; then
			echo "pyprofd: the page: http://127.0.0.1:$port/?token=$(< "$token_file")"
			exit
		fi
	done
) &
exec "$build/pyprofd" --hz 99 --set "http.listen=127.0.0.1:$port" --set "http.token-file=$(realpath "$token_file")" "$@"
