# SPDX-License-Identifier: BSD-2-Clause
# Answers without probes: awk -f answers.awk -f static.awk FILE...   The files are what programs printed; their names say which.
#   functions   gpu_check functions         kernel      gpu_check kernel
#   nvml.self, nvml.nobody   nvml_check     libraries   library_check, the last field the question's id
FNR == 1 {
	file = FILENAME
	sub(/.*\//, "", file)
}
$1 == "function" {
	functions++
	if ($3 == "yes") {
		exported++
		twins += $4 != "none"
		costs[$7]++
		if ($7 == "stepped")
			stepped = list(stepped, $2 " (" $8 ")")
	} else
		missing = list(missing, $2)
	for (flags = 5; flags <= 6; flags++) {
		same[flags] += $3 == "yes" && $flags == "same"
		if ($flags ~ /^other:/)
			others[flags] = list(others[flags], $2 " -> " substr($flags, 7))
	}
}
$1 == "host_ms" { host_ms = $2 }
$1 == "device_ms" { device_ms = $2 }
$1 == "ptx" { ptx = $2 }
$1 == "ask" && $2 !~ /Gpm|ProcessUtil/ {
	asked[file]++
	if ($3 == 0)
		answered[file]++
	else
		refused[file] = list(refused[file], $2 " (" $3 ")")
}
$1 == "ask" && file == "nvml.self" && $3 == 0 {
	us += $4
	if ($4 > dearest_us) {
		dearest_us = $4
		dearest = $2
	}
}
$1 == "ask" && $2 == "nvmlDeviceGetProcessUtilization" { use[file] = $3; rows[file] = $5 }
$1 == "ask" && $2 == "nvmlGpmQueryDeviceSupport" { gpm[file] = $3 ? "error " $3 : $5 ? "supported" : "not supported" }
$1 == "gpm" {
	metrics[file]++
	if ($3 == 0)
		there[file] = list(there[file], $2)
	has_metrics[file] += $3 == 0
}
# Two libraries of one name, as torch's and a package's, are told apart by their directories only in answers.tsv's source.
$1 == "library" {
	name = $2
	sub(/.*\//, "", name)
	line = name ": .symtab " $4 ($5 ? " with " $5 " stubs" : "") ($3 != "-" ? ", NEEDED " $3 : "") \
		($6 != "-" ? ", imports " $6 : "") ($7 == "inside" ? ", asks the driver itself" : "") ($8 != "-" ? ", begins " $8 : "")
	if (!((line, $9) in shown)) {
		shown[line, $9]
		libraries[$9] = libraries[$9] (libraries[$9] ? "; " : "") line
	}
	# A stub has no name but in .symtab; cudart, cuBLAS, cuDNN, NCCL and the driver have no stubs that count.
	if ($9 == "U-3.3" && $4 == "no")
		stripped = list(stripped, name)
}
function tell_process_use(as) { # 6: nothing used it of late, 3: not supported
	return use[as] == 0 ? rows[as] " rows" : use[as] == 6 ? "no rows" : "error " use[as]
}
END {
	by = "dlsym"
	if (functions) {
		answer("U-1.1", missing ? "differs" : "ok", exported " of " functions ", " twins " of them with a twin" \
			(missing ? "; not " missing : ""), by, missing ? "not exported" : "")
		by = "cuGetProcAddress_v2 at the driver's version, 12000 and 4000 or 7000"
		for (flags = 5; flags <= 6; flags++)
			answer(flags == 5 ? "U-1.2" : "U-1.3", same[flags] + 0 == 0 ? "none" : others[flags] ? "differs" : "ok", \
				same[flags] + 0 " of " exported " lead to exported entries" (others[flags] ? "; " others[flags] : ""), by, \
				same[flags] + 0 == 0 ? "the driver has no cuGetProcAddress_v2" : "")
		answer("U-1.4", stepped ? "differs" : "ok", "push or nop " costs["emulated"] + 0 ", long nop " costs["nop"] + 0 \
			", stepped " costs["stepped"] + 0 (stepped ? ": " stepped : ""), "the code in memory", \
			stepped ? "the kernel steps some" : "")
	}
	if (device_ms)
		answer("U-9.1", device_ms > 0.98 && device_ms < 1.1 ? "ok" : "differs", "1 ms of " ptx ": " device_ms \
			" ms by events, " host_ms " ms by the host", "100 launches", "")
	if (asked["nvml.self"]) {
		answer("U-5.1", refused["nvml.self"] ? "differs" : "ok", answered["nvml.self"] + 0 " of " asked["nvml.self"] \
			(refused["nvml.self"] ? "; not " refused["nvml.self"] : ""), "NVML, device 0", "")
		answer("U-5.3", has_metrics["nvml.self"] ? "ok" : "differs", gpm["nvml.self"] "; " has_metrics["nvml.self"] + 0 " of " \
			metrics["nvml.self"] (there["nvml.self"] ? ": " there["nvml.self"] : "") (asked["nvml.nobody"] ? "; as nobody " \
			has_metrics["nvml.nobody"] + 0 : ""), "two samples 0.2 s apart", "")
		answer("U-5.4", use["nvml.self"] == 0 || use["nvml.self"] == 6 ? "ok" : "differs", tell_process_use("nvml.self") \
			(asked["nvml.nobody"] ? "; as nobody " tell_process_use("nvml.nobody") : ""), "nvmlDeviceGetProcessUtilization", "")
		answer("U-5.5", "ok", sprintf("%.0f us for all; dearest %s: %.0f us", us, dearest, dearest_us), \
			"mean of 20 calls each", "")
	}
	if (asked["nvml.nobody"])
		answer("U-5.2", answered["nvml.nobody"] == answered["nvml.self"] ? "ok" : "differs", answered["nvml.nobody"] + 0 " of " \
			asked["nvml.nobody"] (refused["nvml.nobody"] ? "; not " refused["nvml.nobody"] : ""), "NVML, uid 65534", "")
	for (id in libraries)
		print id, id == "U-3.3" && stripped ? "differs" : "ok", libraries[id], "ELF file", \
			id == "U-3.3" && stripped ? "no .symtab: stubs have no names" : ""
}
