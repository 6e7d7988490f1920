# SPDX-License-Identifier: BSD-2-Clause
# bash completion of pyprof.  Verbs and options are asked from the program, so that they are its own.

_pyprof_values() { # OPTION VERB
	case $2:$1 in
	diff:--by | diff:-b) echo 'function line stack'; return ;;
	diff:--sort | diff:-s) echo 'self total'; return ;;
	top:--sort | top:-s) echo 'cpu gil wait name'; return ;;
	tree:--by | tree:-b) echo 'function line'; return ;;
	export:--format) echo 'pprof speedscope folded perfetto chrome callgrind json otlp csv'; return ;;
	flame:--format) echo 'html svg'; return ;;
	calls:--format) echo 'dot pstats text csv json markdown sql'; return ;;
	diff:--format | lines:--format) echo 'text csv json markdown sql html'; return ;;
	calls:--sort | calls:-s) echo 'self total calls name'; return ;;
	esac
	case $1 in
	--by | -b) echo 'function line file module thread process comm thread-name container wait service_name app unit user namespace pod slurm_job rank local_rank world_size' ;;
	--sort | -s) echo 'self total name file' ;;
	--sample-type) echo 'first_touch cow faults alloc_space alloc_objects inuse_space inuse_objects' ;;
	--kind) "${COMP_WORDS[0]}" "$2" --help 2> /dev/null | awk '/--kind=/ { on = 1; next } / --/ { on = 0 } on' |
		sed 's/(default)//' | grep -oE '[a-z]+' ;;
	--group-by) echo 'process thread comm thread-name container wait service_name app unit user namespace pod slurm_job rank local_rank world_size' ;;
	--label) echo 'service_name app unit user namespace pod container slurm_job rank local_rank world_size comm' ;;
	--view) echo 'all syncs copies kernels collectives memory' ;;
	--format) echo 'text csv json markdown sql' ;;
	--for) echo '5 10 60' ;;
	--max-slowdown) echo '2x 5x 10x' ;;
	--since | --until) echo '1m 10m 1h 1d' ;;
	*) return 1 ;;
	esac
}

_pyprof() {
	local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local option values
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$program" --help 2> /dev/null |
			sed -n 's/^  \([a-z]*\)  *.*/\1/p') --help --version" -- "$word")
		return
	fi
	# "--by=fun" comes as three words.
	option=$before
	[ "$before" != = ] || option=${COMP_WORDS[COMP_CWORD - 2]}
	[ "$word" != = ] || { option=$before word=; }
	if values=$(_pyprof_values "$option" "${COMP_WORDS[1]}"); then
		mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
		return
	fi
	case $word in
	-*) mapfile -t COMPREPLY < <(compgen -W "$("$program" "${COMP_WORDS[1]}" --help 2> /dev/null |
		grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$word") ;;
	*) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	esac
}

complete -F _pyprof pyprof
