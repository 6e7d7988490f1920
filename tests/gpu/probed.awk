# SPDX-License-Identifier: BSD-2-Clause
# Answers from what pyprofd counted and what programs know themselves: awk -v mode=calls|truth|drained -f answers.awk -f probed.awk FILE...
# The files are what gpu_check and profile_sums printed; names of the first end in the way in which functions were called.
BEGIN {
	question["name"] = "U-1.5"
	question["twin"] = "U-1.6"
	question["address"] = "U-1.7"
	question["address-twin"] = "U-1.8"
}
function percent(got, wanted) { return wanted ? 100 * (got / wanted - 1) : 0 }
FNR == 1 {
	way = FILENAME
	sub(/.*\./, "", way)
}

# ---- what programs know
$1 == "expect" {
	way_of[$2] = way
	calls[way, $3] += $4
	bytes[way, $3] += $5
	labels[way] = labels[way] (labels[way] ~ ("(^|\t)" $3 "(\t|$)") ? "" : (labels[way] ? "\t" : "") $3)
	if (way == "name")
		called[$4] = list(called[$4], $3)
}
$1 == "uncalled" { uncalled[$2] }
$1 == "skipped" { uncalled[$2] }
$1 == "launch" { before_ns[way] = $2; probed_ns[way] = $3 }
$1 == "sites" { sites[way] = $2; sites_all[way] = $3; on_ms[way] = $4 }
$1 == "restored" { restored[way] = $2; restored_all[way] = $3; off_ms[way] = $4 }
$1 == "kernel" { kernels[$3] += $4; truth_pid = $2 }
$1 == "late" { late = "kernel@" $3 }
$1 == "bytes" { copy[++copies] = $3; copied[$3] = $5 }
$1 == "wait" { waits = $4; wait_ns = $5; wait_api = $3 }
$1 == "graph" { graph_kernel = $3; recorded = $4; graph_launches = $5 }
$1 == "state" { state_pid = $2; queued_ns = $3; drained_ns = $5; free_ms = $6; idle_ms = $7; rounds = $8 }

# ---- what pyprofd knows
$1 == "types" {
	for (i = 2; i <= NF; i++)
		column[$i] = i + 5
}
$1 == "sum" && mode == "calls" {
	got[way_of[$2], $3] += $column["calls"]
	got_bytes[way_of[$2], $3] += $column["cuda_bytes"]
}
$1 == "sum" && mode == "truth" && $2 == truth_pid {
	by_api[$3] += $column["calls"]
	by_api_bytes[$3] += $column["cuda_bytes"]
	by_api_wait[$3] += $column["cuda_wait"]
	if ($3 ~ /^cuLaunch/) {
		by_kernel[$4] += $column["calls"]
		if ($4 != graph_kernel)
			launches += $column["calls"]
	}
}
$1 == "sum" && mode == "drained" && $2 == state_pid && "cpu" in column {
	cpu_ns[$6] += $column["cpu"]
	samples[$6] += $column["samples"]
}
$1 == "comment" && $2 ~ ("(^| )pid=" state_pid " ") && match($2, / drained=[0-9.]+/) {
	told_s += substr($2, RSTART + 9, RLENGTH - 9)
	is_told = 1
}

# ---- ways to the functions
function tell_way(way, id,    n, i, label, is, wrong, sum, sum_bytes, excess) {
	n = split(labels[way], label, "\t")
	for (i = 1; i <= n; i++) {
		is = got[way, label[i]] + 0
		sum += calls[way, label[i]]
		sum_bytes += bytes[way, label[i]]
		if (is != calls[way, label[i]])
			wrong = list(wrong, label[i] " " is " of " calls[way, label[i]])
		else if (got_bytes[way, label[i]] + 0 != bytes[way, label[i]])
			wrong = list(wrong, label[i] " " got_bytes[way, label[i]] + 0 " bytes of " bytes[way, label[i]])
	}
	if (!n)
		return
	answer(id, wrong ? "differs" : "ok", n " functions, " sum " calls, " sum_bytes " bytes: " \
		(wrong ? wrong : "all exact"), "pyprofd --events cuda; no two are called equally often", "")
}
function tell_inner(    n, i, label, excess, inner) {
	n = split(labels["name"], label, "\t")
	for (i = 1; i <= n; i++) {
		excess = got["name", label[i]] - calls["name", label[i]]
		if (excess > 0)
			inner = list(inner, label[i] " " excess " too many" \
				(excess in called ? ", as many as calls of " called[excess] : ""))
	}
	if (n)
		answer("U-4.1", inner ? "differs" : "ok", inner ? inner : "none of " n " functions, each called 1,000 times and more", \
			"counts beyond the program's own", "")
}
function tell_calls(    w, names) {
	for (w in question)
		tell_way(w, question[w])
	tell_inner()
	for (w in uncalled)
		names = list(names, w)
	if ("name" in sites) {
		answer("U-0.4", "ok", sprintf("%.2f us without, %.2f us with a probe: %.2f us", before_ns["name"] / 1e3, \
			probed_ns["name"] / 1e3, (probed_ns["name"] - before_ns["name"]) / 1e3), \
			"cuLaunchKernel, the best of 10 times 200" (names ? "; not called: " names : ""), "")
		answer("U-0.5", sites["name"] == sites_all["name"] && restored["name"] == restored_all["name"] ? "ok" : "differs", \
			sites["name"] " of " sites_all["name"] " places, the last " on_ms["name"] " ms behind the first; off in " \
			off_ms["name"] " ms, " restored["name"] " as before", "the program looks at its own code", "")
	}
}

# ---- a program that knows what it does
function tell_truth(    text, kernel, total, wrong, is, off) {
	by = "pyprofd --events cuda beside the program's own figures"
	for (kernel in kernels) {
		total += kernels[kernel]
		if (kernel == "pyprofd_late")
			continue
		if (by_kernel[kernel] + 0 != kernels[kernel])
			wrong = 1
		text = list(text, kernel " " by_kernel[kernel] + 0 " of " kernels[kernel])
	}
	answer("U-2.1", wrong ? "differs" : "ok", text, "cuModuleGetFunction and cuLibraryGetKernel seen", "")
	text = ""
	for (kernel in by_kernel)
		if (kernel == "pyprofd_late" || index(kernel, late) == 1) {
			text = list(text, by_kernel[kernel] " of " kernels["pyprofd_late"] " as " kernel)
			is += by_kernel[kernel]
		}
	answer("U-2.2", is == kernels["pyprofd_late"] ? "ok" : "differs", text ? text : "nothing of theirs", by, "")
	answer("U-9.2", launches == total ? "ok" : "differs", launches + 0 " of " total, by, "")
	wrong = text = ""
	for (i = 1; i <= copies; i++) {
		text = list(text, copy[i] " " by_api_bytes[copy[i]] + 0 " of " copied[copy[i]])
		if (by_api_bytes[copy[i]] + 0 != copied[copy[i]])
			wrong = 1
	}
	answer("U-9.3", wrong ? "differs" : "ok", text, by, "")
	off = percent(by_api_wait[wait_api], wait_ns)
	answer("U-9.4", by_api[wait_api] == waits && off > -2 && off < 2 ? "ok" : "differs", \
		sprintf("%.3f ms in %d of %d calls, the program %.3f ms: %+.2f %%", by_api_wait[wait_api] / 1e6, by_api[wait_api], waits, \
		wait_ns / 1e6, off), by, "")
	# A graph's kernels may be counted with its launches, never its recording.
	is = by_kernel[graph_kernel] + 0
	answer("U-9.5", (is == 0 || is == recorded * graph_launches) && by_api["cuGraphLaunch"] == graph_launches ? "ok" : "differs", \
		recorded " recorded, " graph_launches " launches of the graph; counted: " is " of its kernel, " \
		by_api["cuGraphLaunch"] + 0 " launches", by, "")
}
# To 5 %, and the error of so many samples.
function is_near(off, count) { return (off < 0 ? -off : off) < 5 + (count ? 100 / sqrt(count) : 0) }
function tell_drained(    all, off_drained, off_queued) {
	all = cpu_ns["drained"] + cpu_ns["queued"]
	if (!all) {
		answer("U-9.6", "none", "", "", "this pyprofd writes no label gpu")
	} else {
		off_drained = percent(cpu_ns["drained"], drained_ns)
		off_queued = percent(cpu_ns["queued"], queued_ns)
		answer("U-9.6", is_near(off_drained, samples["drained"]) && is_near(off_queued, samples["queued"]) ? "ok" : "differs", \
			sprintf("drained %.0f ms, the program %.0f; queued %.0f ms, the program %.0f; waits %.0f ms", \
			cpu_ns["drained"] / 1e6, drained_ns / 1e6, cpu_ns["queued"] / 1e6, queued_ns / 1e6, cpu_ns["wait"] / 1e6), \
			"samples of the CPU", "")
	}
	if (!is_told) {
		answer("U-9.7", "none", "", "", "this pyprofd tells no time that was drained")
		return
	}
	# The thread knows of the end after pyprofd does, and launches before; the device the other way round.
	answer("U-9.7", told_s * 1e3 <= idle_ms + 1 && told_s * 1e3 >= free_ms - 1 ? "ok" : "differs", \
		sprintf("%.1f ms; the thread had nothing queued for %.1f ms, the device nothing to do for %.1f ms", told_s * 1e3, free_ms, \
		idle_ms), rounds " times; events of CUDA", "")
}
END {
	if (mode == "calls")
		tell_calls()
	else if (mode == "truth" && truth_pid)
		tell_truth()
	else if (mode == "drained" && state_pid)
		tell_drained()
}
