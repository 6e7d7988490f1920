# SPDX-License-Identifier: BSD-2-Clause
# Answers of the third tier: awk -f answers.awk -f torch.awk WHAT_TORCH_LOAD_PRINTED SUMS...   The names of the sums end in the work.
BEGIN { answer_max = 200 }
FNR == 1 {
	work = FILENAME
	sub(/.*\./, "", work)
}
$1 == "launches" { launches[$2] = $3; known_by[$2] = $4 }
$1 == "steps" { steps[$2] = $3 }
$1 == "graph" { nodes = $3; replays = $4 }
$1 == "bytes" { truth_bytes[$3] = $4 }
$1 == "wait" { waits = $3; wait_ns = $4 }
$1 == "kernel" { by_profiler[$2, $3] = $4; names[$2] = names[$2] (names[$2] ? "\t" : "") $3 }
$1 == "idle" { free_ms = $3; idle_ms = $4; rounds = $5 }
$1 == "without" { without[$2] = $3 }
$1 == "handle" { kinds[$3]++; handles[$2] }
$1 == "ready" { pid = $2; is_ready[$3] }

$1 == "types" {
	for (i = 2; i <= NF; i++)
		column[$i] = i + 5
	is_there[work]
}
$1 == "sum" && $2 == pid && "calls" in column {
	api[work, $3] += $column["calls"]
	wait[work] += $column["cuda_wait"]
	if ($5 != "-")
		bytes[work, $5] += $column["cuda_bytes"]
	if ($3 ~ /^cuLaunch/) {
		launched[work] += $column["calls"]
		if (!((work, $3) in is_by))
			by[work] = list(by[work], $3)
		is_by[work, $3]
		if (work == "eager" || work == "matmul" || work == "triton") {
			all += $column["calls"]
			if ($4 ~ /^kernel@/)
				unnamed += $column["calls"]
			else
				shown = list(shown, $4)
		}
		kernel[work, $4] += $column["calls"]
		kernels[work] = kernels[work] "\t" $4
	}
}
$1 == "comment" && $2 ~ ("(^| )pid=" pid " ") && work == "drained" && match($2, / drained=[0-9.]+/) {
	told_s += substr($2, RSTART + 9, RLENGTH - 9)
	is_told = 1
}

# The identifier of a demangled kernel: "void a::b<c>(d)" is b.
function identifier(name) {
	sub(/^void /, "", name)
	sub(/[<(].*/, "", name)
	sub(/.*::/, "", name)
	return name
}
function tell_launches(work, id) {
	if (work in without || !(work in is_there))
		answer(id, "none", "", "", work in without ? without[work] : "it gave no profile")
	else
		answer(id, launched[work] == launches[work] ? "ok" : "differs", launched[work] + 0 " of " launches[work] " launches" \
			(by[work] ? ", by " by[work] : ""), known_by[work], "")
}
function tell_graph(    is) {
	if (!("graph" in is_there)) {
		answer("U-1.11", "none", "", "", "graph" in without ? without["graph"] : "it gave no profile")
		return
	}
	is = launched["graph"] + 0
	answer("U-1.11", api["graph", "cuGraphLaunch"] == replays && (is == 0 || is == nodes * replays) ? "ok" : "differs", \
		api["graph", "cuGraphLaunch"] + 0 " of " replays " replays, " is " launches of kernels; the graph has " nodes, \
		"torch.cuda.CUDAGraph", "")
}
function tell_names() {
	if (all)
		answer("U-2.3", unnamed ? "differs" : "ok", all - unnamed " of " all " launches have names" (shown ? ": " shown : ""), \
			"all launched before, too", "")
	if (!unnamed && all)
		answer("U-2.4", "none", "", "", "every kernel has a name")
	else if (kinds["CUfunction"] + kinds["CUkernel"])
		answer("U-2.4", "ok", "taken as CUfunction " kinds["CUfunction"] + 0 ", as CUkernel " kinds["CUkernel"] + 0, \
			"cuFuncGetName, cuKernelGetName", "")
}
function tell_item(    off) {
	if (!("item" in is_there) || !waits) {
		answer("U-9.8", "none", "", "", "item" in without ? without["item"] : "it gave no profile")
		return
	}
	off = 100 * (wait["item"] / wait_ns - 1)
	# .item() is more than its wait.
	answer("U-9.8", off > -5 && off < 2 && bytes["item", "HtoD"] == truth_bytes["HtoD"] && \
		bytes["item", "DtoH"] == truth_bytes["DtoH"] ? "ok" : "differs", \
		sprintf("waits %.1f ms, in .item() %.1f ms: %+.2f %%; HtoD %d of %d bytes, DtoH %d of %d", wait["item"] / 1e6, wait_ns / 1e6, \
		off, bytes["item", "HtoD"], truth_bytes["HtoD"], bytes["item", "DtoH"], truth_bytes["DtoH"]), waits " of .item()", "")
}
function count_like(work, name,    n, i, part, sum, id) {
	id = identifier(name)
	n = split(kernels[work], part, "\t")
	for (i = 2; i <= n; i++)
		if (!((work, part[i], id) in counted) && index(part[i], id)) {
			counted[work, part[i], id]
			sum += kernel[work, part[i]]
		}
	return sum + 0
}
function tell_profiler(    w, n, i, name, wanted, is, wrong, right) {
	for (w in names) {
		n = split(names[w], name, "\t")
		for (i = 1; w in is_there && i <= n; i++) {
			wanted = by_profiler[w, name[i]] * steps[w]
			is = count_like(w, name[i])
			if (is == wanted)
				right++
			else
				wrong = list(wrong, identifier(name[i]) " " is " of " wanted)
		}
	}
	if (right || wrong)
		answer("U-9.9", wrong ? "differs" : "ok", right + 0 " kernels alike" (wrong ? "; " wrong : ""), \
			"torch.profiler, by identifier", "")
	else
		answer("U-9.9", "none", "", "", "torch.profiler tells no kernels")
}
function tell_drained() {
	if (!idle_ms || !is_told)
		answer("U-9.10", "none", "", "", idle_ms ? "this pyprofd tells no time that was drained" : "it gave no profile")
	else
		answer("U-9.10", told_s * 1e3 <= idle_ms + 1 && told_s * 1e3 >= free_ms - 1 ? "ok" : "differs", \
			sprintf("%.1f ms; the thread had nothing queued for %.1f ms, the device nothing to do for %.1f ms", told_s * 1e3, \
			free_ms, idle_ms), rounds " times; events of CUDA", "")
}
END {
	tell_launches("eager", "U-1.9")
	tell_launches("matmul", "U-1.10")
	tell_graph()
	tell_launches("triton", "U-1.12")
	tell_names()
	tell_item()
	tell_profiler()
	tell_drained()
}
