# SPDX-License-Identifier: BSD-2-Clause
# awk -v head=FILE -v json=FILE -f table.awk questions.tsv answers.tsv   Prints the table, and writes it as JSON.
#   head          lines `key TAB value`: what stands above the table
#   answers.tsv   id, verdict (ok, differs, none), answer, how, why; the first one of an id counts
# A question without an answer is one that this machine cannot be asked.
BEGIN {
	FS = "\t"
	while ((getline line < head) > 0) {
		split(line, part, "\t")
		if (part[1] == "none")
			why_tier[part[2]] = part[3]
		else {
			key[++keys] = part[1]
			value[keys] = part[2]
		}
	}
}
FNR == 1 { file++ }
/^#/ { next }
file == 1 {
	id[++ids] = $1
	tier[$1] = $2
	question[$1] = $3
}
file == 2 && !($1 in verdict) {
	verdict[$1] = $2
	answer[$1] = $3
	how[$1] = $4
	why[$1] = $5
}
function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	gsub(/[\001-\037]/, " ", text)
	return "\"" text "\""
}
function cell(text) {
	gsub(/\|/, "\\|", text)
	return text
}
function said(i) { # how it ended, in words
	return verdict[i] == "none" ? "not possible here: " why[i] : verdict[i] (why[i] ? ": " why[i] : "")
}
END {
	for (n = 1; n <= ids; n++) {
		i = id[n]
		if (!(i in verdict)) {
			verdict[i] = "none"
			why[i] = tier[i] in why_tier ? why_tier[tier[i]] : "it gave no answer"
		}
		count[verdict[i]]++
	}
	for (k = 1; k <= keys; k++)
		printf "%s: %s\n", key[k], value[k]
	print ""
	print "| id | question | answer | how | |"
	print "|---|---|---|---|---|"
	printf "{\"head\": {" > json
	for (k = 1; k <= keys; k++)
		printf "%s%s: %s", (k > 1 ? ", " : ""), quoted(key[k]), quoted(value[k]) > json
	printf "},\n\"rows\": [" > json
	for (n = 1; n <= ids; n++) {
		i = id[n]
		printf "| %s | %s | %s | %s | %s |\n", i, cell(question[i]), cell(answer[i]), cell(how[i]), cell(said(i))
		printf "%s\n{\"id\": %s, \"tier\": %s, \"question\": %s, \"answer\": %s, \"how\": %s, \"verdict\": %s, \"why\": %s}", \
			(n > 1 ? "," : ""), quoted(i), tier[i], quoted(question[i]), quoted(answer[i]), quoted(how[i]), \
			quoted(verdict[i] == "none" ? "not possible here" : verdict[i]), quoted(why[i]) > json
	}
	printf "]}\n" > json
	printf "\n%d ok, %d differ, %d not possible here\n", count["ok"], count["differs"], count["none"]
}
