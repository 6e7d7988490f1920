#!/usr/bin/awk -f
# SPDX-License-Identifier: BSD-2-Clause
# awk -f bundle.awk -v directory=DIR > flame_page.h    page.html, *.css and main.js with what it imports -> C strings:
# flame_page[], the page in parts between which the title and the data come.
# awk -f bundle.awk -v directory=DIR -v shared=DIR > serve_page.h    the same, apart: serve_page_html[], serve_page_css[]
# and serve_page_js[]; the styles that both pages have come from the other one's directory.
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
# A path without "x/..".
function straight(path) {
	while (sub(/[^\/]+\/\.\.\//, "", path))
		;
	return path
}
# Emits each module once, after those that it imports.
function module(path,    line, count, i, lines, part, status, where) {
	path = straight(path)
	if (path in seen)
		return
	seen[path] = 1
	where = path
	sub(/[^\/]*$/, "", where)
	while ((status = (getline line < path)) > 0)
		lines[++count] = line
	close(path)
	if (status < 0 || !count)
		fail(path ": cannot be read")
	for (i = 1; i <= count; i++) {
		if (lines[i] ~ /^import .* from "\.\.?\/[a-z_\/.]+\.js";$/) {
			split(lines[i], part, "\"")
			sub(/^\.\//, "", part[2])
			module(where part[2])
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
function style(path,    line, lines) {
	while ((getline line < path) > 0) {
		lines++
		if (line !~ /^\/\* SPDX/)
			emit(line)
	}
	close(path)
	if (!lines)
		fail(path ": cannot be read")
}
function script() {
	emit("(() => {")
	emit("\"use strict\";")
	module(directory "/main.js")
	emit("})();")
}
# What comes in the place of a line; returns whether it has one.
function placed(line) {
	if (line == "@STYLE@") {
		style(directory "/base.css")
		style(directory "/page.css")
	} else if (line == "@SCRIPT@") {
		script()
	} else {
		return 0
	}
	return 1
}
function one_page(page,    line, at, rest) {
	print "static const char *const flame_page[] = {"
	while ((getline line < page) > 0) {
		if (placed(line))
			continue
		if ((at = match(line, /@TITLE@|@DATA@/))) {
			# No line end of its own: what is put in comes right here.
			rest = substr(line, at + RLENGTH)
			printf "\t\"%s\",\n", quoted(substr(line, 1, at - 1))
			emit(rest)
		} else {
			emit(line)
		}
	}
	print "};"
}
function three_files(page,    line) {
	print "static const char serve_page_html[] ="
	while ((getline line < page) > 0)
		emit(line)
	print "\t;\nstatic const char serve_page_css[] ="
	style(shared "/base.css")
	style(directory "/page.css")
	print "\t;\nstatic const char serve_page_js[] ="
	script()
	print "\t;"
}
BEGIN {
	print "/* Made by bundle.awk. */"
	if (shared)
		three_files(directory "/page.html")
	else
		one_page(directory "/page.html")
	exit failed
}
