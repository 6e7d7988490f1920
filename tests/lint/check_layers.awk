# SPDX-License-Identifier: BSD-2-Clause
# awk -f check_layers.awk userspace/*/*.[ch]   A directory includes only what stands before it on the data
# path, and of that only what is listed.  agent/ wires all; base/ and <pyprofd/...> are for everybody.
BEGIN {
	allowed["peek"] = "child"
	allowed["discover"] = "child"
	allowed["identity"] = "discover" # docs/design/configuration.md
	allowed["unwind"] = "elf"
	allowed["python"] = "discover elf unwind"
	allowed["files"] = "child discover elf unwind python" # docs/design/files.md
	allowed["attach"] = "child discover files unwind python"
	allowed["drain"] = "python" # docs/design/agent.md
	allowed["symbolize"] = "discover files python drain"
	allowed["finish"] = "discover unwind python attach drain symbolize"
	allowed["profile"] = "symbolize"
	allowed["pprof"] = "profile"
	allowed["store"] = "child profile pprof options" # docs/design/profiles.md
	allowed["gauges"] = "child profile" # docs/design/gpu.md
	allowed["live"] = "child"
	allowed["timeline"] = "drain"
	allowed["ledger"] = "discover drain profile windows"
	allowed["options"] = "child config live"
	allowed["render"] = "profile pprof"
	allowed["export"] = "profile timeline render"
	allowed["diff"] = "profile pprof render"
	allowed["query"] = "child profile pprof store live render" # docs/design/serve.md
	allowed["collectors"] = "child profile pprof store config export" # docs/design/collectors.md
	allowed["serve"] = "child profile pprof store config live render query collectors" # docs/design/serve.md
	allowed["reader"] = "child profile pprof store render export diff live query"
	allowed["processes"] = "discover identity python files attach drain options"
	allowed["windows"] = "discover identity files attach drain profile pprof store live options processes"
	allowed["probes"] = "discover elf files attach drain options windows"
	allowed["gpu"] = "child discover files attach drain profile gauges live options processes windows probes"
	allowed["doctor"] = "child peek discover elf python files attach config options probes"
	allowed["agent"] = "child peek discover identity elf unwind python files attach drain symbolize finish profile pprof gauges config timeline live options store processes windows ledger probes gpu doctor"
	directories = "base child peek discover identity elf unwind python files attach drain symbolize finish profile pprof gauges config timeline live options store processes windows ledger probes gpu doctor render query export diff collectors serve reader agent"
	# What the build generates has no directory; who reads it.
	generated["pyprofd.skel.h"] = "attach"
	generated["pyprofd_probe.skel.h"] = "attach"
	generated["pyprofd_memory.skel.h"] = "attach" # of bpf/own; a new one: "agent"
	generated["pyprofd_calls.skel.h"] = "attach"
	generated["pyprofd_cuda.skel.h"] = "attach"
	generated["version.h"] = "options windows doctor agent query collectors serve reader"
	generated["flame_page.h"] = "render"
	generated["serve_page.h"] = "serve"
}
function has(list, word) { return index(" " list " ", " " word " ") }
function bad(why) {
	printf "%s:%d: %s: %s\n", FILENAME, FNR, $0, why
	failed = 1
}
FNR == 1 {
	split(FILENAME, part, "/")
	directory = part[2]
	if (!has(directories, directory))
		bad("directory '" directory "' has no place on the data path: list it here")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	name = $0
	sub(/^[^"]*"/, "", name)
	sub(/".*/, "", name)
	if (name in generated) {
		if (!has(generated[name], directory))
			bad("only " generated[name] " may read it")
	} else if (name ~ /\.\./) {
		bad("no ../")
	} else if (split(name, where, "/") != 2) {
		bad("write \"directory/file.h\"")
	} else if (where[1] != directory && where[1] != "base" && !has(allowed[directory], where[1])) {
		bad(directory "/ may not include " where[1] "/")
	}
}
/^[ \t]*#[ \t]*include[ \t]*<(\.\.|bpf\/bpf_helpers|bpf\/bpf_tracing)/ { bad("kernel side only") }
END { exit failed }
