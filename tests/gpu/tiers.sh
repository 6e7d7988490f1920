# SPDX-License-Identifier: BSD-2-Clause
# What run.sh asks, in three tiers; sourced by it, with $here, $bin, $out, $head, $answers, $last_tier.
has_driver=
probes_why= # why there can be no probes; empty: there can
python=${PYTHON:-python3}
step_s=75 all_s=580

left() { # seconds for a step: of ten minutes in all
	local s=$((all_s - SECONDS))
	echo $((s < 1 ? 1 : s < step_s ? s : step_s))
}

say() { echo "$*"; }
note() { printf '%s\t%s\n' "$1" "$2" >> "$head"; } # KEY VALUE: above the table
no_tier() { # TIER REASON
	printf 'none\t%s\t%s\n' "$1" "$2" >> "$head"
	say "tier $1: not possible here: $2"
}
answer() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" >> "$answers"; } # ID VERDICT ANSWER HOW WHY

# ---------------------------------------------------------------- programs

# Programs that load the driver's libraries run with this machine's C library, or with the bundle's where that is too old.
loader=()
choose_loader() {
	"$bin/gpu_check" > /dev/null 2>&1
	[ $? = 2 ] && return
	loader=("$here"/lib/ld-linux*.so.* --library-path "$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
	note 'C library' "that of the bundle: this machine's is older"
}
pyprofd=$bin/pyprofd
choose_pyprofd() { "$pyprofd" --version > /dev/null 2>&1 || pyprofd=$bin/pyprofd-static; }
# Its files are root's, also under sudo.
clean=(env -u LD_LIBRARY_PATH -u SUDO_UID -u SUDO_GID -u SUDO_USER)
agent=
start_agent() { # EVENTS PIDS OUTPUT LOG: sets agent
	"${clean[@]}" "$pyprofd" --verbose --hz 997 --max-slowdown 100% --live no --events "$1" --pid "$2" -o "$3" > "$4" 2>&1 &
	agent=$!
}
end_agent() { # LOG
	local i
	kill -TERM $agent 2> /dev/null
	for ((i = 0; i < 400; i++)); do kill -0 $agent 2> /dev/null || break; sleep 0.05; done
	kill -KILL $agent 2> /dev/null
	wait $agent || say "pyprofd ended with an error: $(tail -n 1 "$1")"
}

# ask NAME PROGRAM ARGUMENT...: what it prints goes to $out/NAME, errors to $out/NAME.err.
ask() {
	local name=$1 program=$2
	shift 2
	timeout "$(left)" "${loader[@]}" "$bin/$program" "$@" > "$out/$name" 2> "$out/$name.err"
}
# Their paths in $out, of those that are there: awk stops at one that is not.
present() { local name; for name; do [ ! -e "$out/$name" ] || echo "$out/$name"; done; }
first_line() { head -n 1 "$1" 2> /dev/null | tr '\t' ' '; } # FILE

# ---------------------------------------------------------------- tier 1: the driver alone

tell_machine() {
	note date "$(date -u +%FT%TZ)"
	note pyprofd "$("$pyprofd" --version | awk '{ print $2 }')"
	note kernel "$(uname -sr) $(uname -m)"
	note CPUs "$(nproc)"
	note 'C library of this machine' "$(getconf GNU_LIBC_VERSION 2> /dev/null)"
}

tell_driver() {
	local key value
	while IFS=$'\t' read -r key value; do note "$key" "$value"; done < "$out/head"
	[ ! -r /proc/driver/nvidia/version ] || note 'kernel module' "$(head -n 1 /proc/driver/nvidia/version)"
}

ask_nvml() {
	local reason
	if ask nvml.self nvml_check; then
		note 'driver' "$(awk -F'\t' '$1 == "driver" { print $2 }' "$out/nvml.self")"
	else
		reason=$(first_line "$out/nvml.self.err")
		for id in U-5.1 U-5.3 U-5.4 U-5.5; do answer $id none '' '' "$reason"; done
	fi
	if [ "$(id -u)" != 0 ]; then
		answer U-5.2 none '' '' 'only root can become nobody'
	elif ! ask nvml.nobody nvml_check 65534; then
		answer U-5.2 none '' '' "$(first_line "$out/nvml.nobody.err")"
	fi
}

# Where such libraries lie: the loader's cache, CUDA's own directory, Python's packages.
library_directories() {
	local site
	ldconfig -p 2> /dev/null | awk '/=> / { print $NF }' | xargs -r -n 1 dirname | sort -u
	for site in ${LD_LIBRARY_PATH//:/ } /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib; do echo "$site"; done
	"$python" -c 'import site, sys
for path in {p for p in sys.path + site.getsitepackages() if p.endswith("-packages")}: print(path)' 2> /dev/null |
		while read -r site; do
			[ ! -d "$site/torch/lib" ] || echo "$site/torch/lib"
			[ ! -d "$site/nvidia" ] || find "$site/nvidia" -maxdepth 2 -name lib -type d
		done
}

libraries_of() { # GLOB...: each file once, by what it is
	local directory glob path
	while read -r directory; do
		for glob; do
			for path in "$directory"/$glob; do [ ! -f "$path" ] || realpath "$path"; done
		done
	done < "$out/directories" | sort -u
}

# The file that is mapped is asked about where a machine has several.
ask_libraries() {
	local id paths
	local -a globs
	library_directories 2> /dev/null | sort -u > "$out/directories"
	: > "$out/libraries"
	while read -ra globs; do
		id=${globs[0]}
		globs=("${globs[@]:1}")
		if [ $id = U-3.1 ]; then
			paths=$(awk -F'\t' '$1 == "library" { print $2 }' "$out/head" 2> /dev/null)
		else
			paths=$(libraries_of "${globs[@]}")
		fi
		[ -n "$paths" ] || { answer $id none '' '' 'no such file was found'; continue; }
		# shellcheck disable=SC2086
		"$bin/library_check" $paths 2>> "$out/libraries.err" | sed "s/\$/\t$id/" >> "$out/libraries"
	done <<- 'END'
		U-3.1 libcuda.so.1
		U-3.2 libcudart*.so*
		U-3.3 libtorch_cuda.so libc10_cuda.so
		U-3.4 libcublas.so* libcublasLt.so*
		U-3.5 libcudnn.so* libcudnn_*.so*
		U-3.6 libnccl.so*
	END
}

tier_1() {
	say 'tier 1: the driver alone'
	ask functions gpu_check functions
	if ! ask kernel gpu_check kernel; then answer U-9.1 none '' '' "$(first_line "$out/kernel.err")"; fi
	ask_nvml
	ask_libraries
	awk -f "$here/answers.awk" -f "$here/static.awk" $(present functions kernel nvml.self nvml.nobody libraries) >> "$answers"
}

# ---------------------------------------------------------------- tier 2: with BPF

# What --doctor says of a subject: "ok TEXT".
doctor() { awk -v subject="$1" '{ line = substr($0, 7) } index(line, subject) == 1 {
	print $1 " " substr(line, length(subject) + 1); exit }' "$out/doctor" | tr -s ' '; }

find_config() { # prints CONFIG_UPROBES=y and where it stands
	local file
	for file in /proc/config.gz "/boot/config-$(uname -r)" "/lib/modules/$(uname -r)/config"; do
		[ -r "$file" ] || continue
		zcat -f "$file" | grep -x 'CONFIG_UPROBES=.' && return
	done
	echo 'CONFIG_UPROBES not told'
}

# Sets probes_why.
ask_kernel() {
	local found needed='kernel|BTF|lockdown|capabilities|user namespace|pid namespace|locked memory|BPF|perf events'
	if [ "$(id -u)" != 0 ]; then
		probes_why='probes need root'
		return
	fi
	timeout "$(left)" "${clean[@]}" "$pyprofd" --doctor --events cpu,cuda -o "$out/doctor.d/" \
		> "$out/doctor" 2> "$out/doctor.err"
	found=$(grep -E "^fail +($needed)|^warn +BPF" "$out/doctor" | head -n 1 | tr -s ' ')
	[ -s "$out/doctor" ] || found="pyprofd --doctor says nothing: $(first_line "$out/doctor.err")"
	answer U-0.1 "$([ -n "$found" ] && echo differs || echo ok)" \
		"BTF $([ -r /sys/kernel/btf/vmlinux ] && echo there || echo missing), $(find_config), BPF: $(doctor BPF)" \
		'pyprofd --doctor' "$found"
	[ -z "$found" ] || { probes_why=$found; return; }
	found=$(doctor 'probes ' | head -n 1)
	answer U-0.2 "$([[ $found == *uprobe_multi*cookies*are\ there* ]] && echo ok || echo differs)" "${found##*; }" \
		'pyprofd --doctor' ''
	found=${found%;*}
	answer U-0.3 "$([[ $found == ok* ]] && echo ok || echo differs)" "${found#ok }" \
		'pyprofd --doctor, on functions of its own' ''
}

# await FILE PATTERN PID...: until such a line is there; an error when one of the processes ends before.
await() {
	local i file=$1 pattern=$2 pid
	shift 2
	for ((i = 0; i < step_s * 20; i++)); do
		! grep -Eq "^$pattern" "$file" || return 0
		for pid; do kill -0 "$pid" 2> /dev/null || { grep -Eq "^$pattern" "$file"; return; }; done
		sleep 0.05
	done
	return 1
}

# probed EVENTS OUTPUT NAME=ARGUMENTS...: runs gpu_check ARGUMENTS, which print to $out/NAME, all at once beside one pyprofd,
# from their `ready` to their `done`.  Whoever does not get so far says why in $out/NAME.err.
probed() {
	local events=$1 output=$2 one name pids=() names=() i
	shift 2
	for one; do
		name=${one%%=*}
		: > "$out/$name"
		# shellcheck disable=SC2086
		timeout "$(left)" "${loader[@]}" "$bin/gpu_check" ${one#*=} > "$out/$name" 2> "$out/$name.err" &
		names+=("$name") pids+=($!)
	done
	local targets=
	for i in "${!pids[@]}"; do
		await "$out/${names[i]}" ready "${pids[i]}" && targets+=,$(awk '$1 == "ready" { print $2 }' "$out/${names[i]}")
	done
	if [ -n "$targets" ]; then
		start_agent "$events" "${targets#,}" "$output" "${output%/}.log"
		for i in "${!pids[@]}"; do await "$out/${names[i]}" 'done' "${pids[i]}" $agent; done
		if ! kill -0 $agent 2> /dev/null; then
			kill "${pids[@]}" 2> /dev/null
			for name in "${names[@]}"; do tail -n 1 "${output%/}.log" > "$out/$name.err"; done
		fi
		end_agent "${output%/}.log"
	fi
	wait "${pids[@]}"
}

# What a profile has, or a directory: of that the sums of cpu, and the comments of both kinds.
sum_up() { # PROFILE|DIR/ FILE
	case $1 in
	*/)
		find "$1" -name '*cpu.pb.gz' -exec "$bin/profile_sums" {} + > "$2" 2> "$2.err"
		find "$1" -name '*cuda.pb.gz' -exec "$bin/profile_sums" {} + 2>> "$2.err" | grep '^comment' >> "$2"
		;;
	*) "$bin/profile_sums" "$1" > "$2" 2> "$2.err" ;;
	esac
}

why_of() { # NAME: why a program came to no end
	local reason
	reason=$(first_line "$out/$1.err")
	grep -q '^restored' "$out/$1" || echo "${reason:-it did not come to an end}"
}

tier_2() {
	local reason id
	say 'tier 2: with BPF'
	probed cuda "$out/calls.pb.gz" calls.name='calls name' calls.twin='calls twin' calls.address='calls address' \
		calls.address-twin='calls address-twin'
	sum_up "$out/calls.pb.gz" "$out/calls.sums"
	reason=$(why_of calls.name)
	[ -z "$reason" ] || for id in U-0.4 U-0.5 U-1.5 U-1.6 U-1.7 U-1.8 U-4.1; do answer $id none '' '' "$reason"; done
	awk -v mode=calls -f "$here/answers.awk" -f "$here/probed.awk" $(present calls.name calls.twin calls.address calls.address-twin calls.sums) >> "$answers"
	probed cuda "$out/truth.pb.gz" truth=truth
	sum_up "$out/truth.pb.gz" "$out/truth.sums"
	reason=$(why_of truth)
	[ -z "$reason" ] || for id in U-2.1 U-2.2 U-9.2 U-9.3 U-9.4 U-9.5; do answer $id none '' '' "$reason"; done
	awk -v mode=truth -f "$here/answers.awk" -f "$here/probed.awk" "$out/truth" "$out/truth.sums" >> "$answers"
	mkdir -p "$out/drained.d"
	probed cpu,cuda "$out/drained.d/" drained=drained
	sum_up "$out/drained.d/" "$out/drained.sums"
	reason=$(why_of drained)
	[ -z "$reason" ] || for id in U-9.6 U-9.7; do answer $id none '' '' "$reason"; done
	awk -v mode=drained -f "$here/answers.awk" -f "$here/probed.awk" "$out/drained" "$out/drained.sums" >> "$answers"
}

# ---------------------------------------------------------------- tier 3: with torch

# Sets torch_why: why torch cannot be asked.
find_torch() {
	torch_why=
	timeout "$(left)" "$python" -c 'import torch' > "$out/torch" 2> "$out/torch.err" && return
	torch_why="no torch in $python: $(tail -n 1 "$out/torch.err")"
}

# One pyprofd a work: the program says when it may come, and when it may go.
tier_3() {
	local work works='eager matmul graph triton item drained' pid program events output
	say 'tier 3: with torch'
	rm -f "$out/handles"
	# shellcheck disable=SC2086
	PYTHONDONTWRITEBYTECODE=1 timeout $((all_s - SECONDS)) "$python" "$here/torch_load.py" $works --handles "$out/handles" \
		> "$out/torch" 2> "$out/torch.err" &
	program=$!
	for work in $works; do
		await_work "$work" "$program" || continue
		pid=$(awk -v work="$work" '$1 == "ready" && $3 == work { print $2 }' "$out/torch")
		events=cuda output=$out/torch.$work.pb.gz
		[ "$work" != drained ] || { events=cpu,cuda output=$out/torch.drained.d/; mkdir -p "$output"; }
		start_agent $events "$pid" "$output" "$out/torch.$work.log"
		await "$out/torch" $'(done|without)\t'"$work" "$program"
		end_agent "$out/torch.$work.log"
		sum_up "$output" "$out/torch.sums.$work"
	done
	cat "$out"/torch.sums.* 2> /dev/null | awk -F'\t' '$1 == "sum" && $4 ~ /^kernel@0x/ { print substr($4, 8) }' |
		sed 's/[^0-9a-fx].*//' | sort -u > "$out/handles.new"
	mv "$out/handles.new" "$out/handles"
	wait $program || answer U-2.4 none '' '' "torch_load.py ended with an error: $(tail -n 1 "$out/torch.err")"
	note torch "$(awk -F'\t' '$1 == "torch" { print $2 ", CUDA " $3 }' "$out/torch")"
	awk -f "$here/answers.awk" -f "$here/torch.awk" "$out/torch" $(present torch.sums.eager torch.sums.matmul torch.sums.graph torch.sums.triton \
		torch.sums.item torch.sums.drained) >> "$answers"
}
# Until the work is ready, or is left out.
await_work() { # WORK PID
	await "$out/torch" $'(ready\t[0-9]*|without)\t'"$1" "$2" && grep -q $'^ready\t[0-9]*\t'"$1" "$out/torch"
}

# ---------------------------------------------------------------- all

ask_all() {
	choose_loader
	choose_pyprofd
	tell_machine
	if ask head gpu_check head; then
		has_driver=1
	else
		no_tier 1 "$(first_line "$out/head.err")"
	fi
	tell_driver
	tier_1
	[ "$last_tier" -ge 2 ] || { no_tier 2 '--tier 1'; no_tier 3 '--tier 1'; return; }
	ask_kernel
	if [ -z "$has_driver" ]; then
		no_tier 2 "$(first_line "$out/head.err")"
	elif [ -n "$probes_why" ]; then
		no_tier 2 "$probes_why"
	elif [ $SECONDS -gt $((all_s / 2)) ]; then
		no_tier 2 "ten minutes are not enough: $SECONDS s have gone"
	else
		tier_2
	fi
	[ "$last_tier" -ge 3 ] || { no_tier 3 '--tier 2'; return; }
	find_torch
	if [ -n "$torch_why" ]; then
		no_tier 3 "$torch_why"
	elif [ -z "$has_driver" ] || [ -n "$probes_why" ]; then
		no_tier 3 "${probes_why:-$(first_line "$out/head.err")}"
	elif [ $SECONDS -gt $((all_s - step_s)) ]; then
		no_tier 3 "ten minutes are not enough: $SECONDS s have gone"
	else
		tier_3
	fi
}
