#!/usr/bin/awk -f
# SPDX-License-Identifier: BSD-2-Clause
# awk -f bundle.awk -v directory=DIR > flame_page.h    page.html, *.css and main.js with what it imports -> C strings:
# flame_page[], the page in parts between which the title and the data come.
# A module is ES2022 with its imports in lines of their own; all modules share one scope, so a name of the
# outermost level is declared once.
function fail(why) {
	print "bundle.awk: " why > "/dev/stderr"
	failed = 1
	exit 1
}
# As in a C string.  By hand: what gsub() makes of backslashes differs between awks.
function quoted(line,    done, at, mark) {
	while ((at = match(line, /[\\"\t]/))) {
		mark = substr(line, at, 1)
		done = done substr(line, 1, at - 1) "\\" (mark == "\t" ? "t" : mark)
		line = substr(line, at + 1)
	}
	return done line
}
function emit(line) {
	printf "\t\"%s\\n\"\n", quoted(line)
}
# Emits each module once, after those that it imports.
function module(name,    path, line, count, i, lines, part, status) {
	if (name in seen)
		return
	seen[name] = 1
	path = directory "/" name
	while ((status = (getline line < path)) > 0)
		lines[++count] = line
	close(path)
	if (status < 0 || !count)
		fail(path ": cannot be read")
	for (i = 1; i <= count; i++) {
		if (lines[i] ~ /^import .* from "\.\/[a-z_]+\.js";$/) {
			split(lines[i], part, "\"")
			module(substr(part[2], 3))
		} else if (lines[i] ~ /^import/) {
			fail(path ":" i ": an import that this script does not know")
		}
	}
	for (i = 1; i <= count; i++) {
		if (lines[i] ~ /^import/ || lines[i] ~ /^\/\* SPDX/)
			continue
		if (tolower(lines[i]) ~ /<\/script|<!--/)
			fail(path ":" i ": would end the script in the page")
		sub(/^export /, "", lines[i])
		declared(path ":" i, lines[i])
		emit(lines[i])
	}
}
function declared(where, line,    part) {
	if (line !~ /^(async )?(function|class|const|let) [A-Za-z_]/)
		return
	sub(/^async /, "", line)
	split(line, part, /[ (=;]+/)
	if (part[2] in names)
		fail(where ": " part[2] " is declared at " names[part[2]] " too")
	names[part[2]] = where
}
function style(name,    path, line) {
	path = directory "/" name
	while ((getline line < path) > 0)
		if (line !~ /^\/\* SPDX/)
			emit(line)
	close(path)
}
BEGIN {
	page = directory "/page.html"
	print "/* Made by bundle.awk. */"
	print "static const char *const flame_page[] = {"
	while ((getline line < page) > 0) {
		if (line == "@STYLE@") {
			style("theme.css")
			style("page.css")
			style("table.css")
			style("print.css")
		} else if (line == "@SCRIPT@") {
			emit("(() => {")
			emit("\"use strict\";")
			module("main.js")
			emit("})();")
		} else if ((at = match(line, /@TITLE@|@DATA@/))) {
			# No line end of its own: what is put in comes right here.
			rest = substr(line, at + RLENGTH)
			printf "\t\"%s\",\n", quoted(substr(line, 1, at - 1))
			emit(rest)
		} else {
			emit(line)
		}
	}
	print "};"
	exit failed
}
