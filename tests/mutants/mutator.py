# SPDX-License-Identifier: BSD-2-Clause
"""Small changes to C code: operators, bounds, conditions, deleted statements.  Only lines of function bodies are changed,
formatted as clang-format leaves them; what is in comments, strings and log messages is not."""
import collections
import re

Mutant = collections.namedtuple("Mutant", "path line before after kind")  # before, after: the whole line, line: from 1

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "/": "*",
         "%": "/", "&&": "||", "||": "&&", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "+=": "-=", "-=": "+=", "|=": "&=",
         "&=": "|="}
BINARY = re.compile(r"(?<= )(%s)(?= )" % "|".join(re.escape(o) for o in sorted(SWAPS, key=len, reverse=True)))
STEP = re.compile(r"\+\+|--")
NUMBER = re.compile(r"(?<![\w.])(\d+)(?=(?:[uU]?[lL]{0,2})(?![\w.]))")
ERROR = re.compile(r"-E[A-Z0-9]+\b")
TRUTH = re.compile(r"\breturn (true|false);")
CONDITION = re.compile(r"^\t+(?:\} else )?(?:if|while) \((.*)\)(?: \{)?$")
DECLARATION = re.compile(r"^\t+(const|static|struct|union|enum|unsigned|signed|int|char|long|short|bool|void|double|float|"
                         r"size_t|ssize_t|pid_t|FILE|OWNED\w*|\w+_t|__[us]\d+|Elf\w*|GElf\w*|Dwarf\w*)\b.*")
NO_STATEMENT = re.compile(r"^\t+(return|break|continue|case|default|else|for|if|while|do|switch|\(void\))\b")
# No unit test runs out of memory, and `x > MOST ? MOST : x` is the same with >=.
UNTESTED = re.compile(r"-ENOMEM\b|(\S+) [<>] (\S+) \? \2 : \1;")
# More than is needed is well, too.
ALLOCATES = re.compile(r"\b(calloc|malloc|realloc|reallocarray)\(")
LOGS = re.compile(r"\b(log_\w+|bpf_printk|print_message|_?[Ss]tatic_assert|BUILD_BUG\w*)\b")


def masked(text):
    """The same length, with comments, strings and characters blanked out."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)


def body_lines(lines):
    """Indexes of the lines inside function bodies: from a `{` to a `}` that stand alone at the line's begin."""
    inside, found = False, []
    for index, line in enumerate(lines):
        if line == "{":
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and not line.startswith("#"):
            found.append(index)
    return found


def replaced(line, begin, end, new):
    return line[:begin] + new + line[end:]


def changes(line, clean, previous):
    """(kind, new line) for each change of one line."""
    declares = DECLARATION.match(clean)
    for match in BINARY.finditer(clean):
        yield "operator", replaced(line, *match.span(), SWAPS[match.group()])
    for match in STEP.finditer(clean):
        yield "operator", replaced(line, *match.span(), "--" if match.group() == "++" else "++")
    for match in NUMBER.finditer(clean):
        if ALLOCATES.search(clean):
            continue
        # Callers look at whether an exit status is 0.
        if not (declares and "[" in clean and "=" not in clean) and not re.match(r"\t+return [1-9]\d*;", clean):
            yield "bound", replaced(line, *match.span(), str(int(match.group()) + 1))
    for match in ERROR.finditer(clean):
        yield "condition", replaced(line, *match.span(), "0")
    for match in TRUTH.finditer(clean):
        yield "condition", replaced(line, *match.span(1), {"true": "false", "false": "true"}[match.group(1)])
    match = CONDITION.match(clean)
    if match and clean.count("(") == clean.count(")"):
        yield "condition", replaced(line, *match.span(1), "!(%s)" % line[match.start(1):match.end(1)])
    whole = (clean.rstrip().endswith(";") and clean.count("(") == clean.count(")")
             and (not previous or previous[-1] in ";{}:)" or previous.endswith("else")))
    if whole and not declares and not NO_STATEMENT.match(clean):
        yield "deleted statement", re.match(r"\t*", line).group() + ";"


def mutants(path, text):
    """All of one file."""
    lines, clean = text.split("\n"), masked(text).split("\n")
    found = []
    for index in body_lines(lines):
        if LOGS.search(clean[index]) or UNTESTED.search(clean[index]) or not clean[index].strip():
            continue
        previous = next((clean[i].strip() for i in range(index - 1, -1, -1) if clean[i].strip()), "")
        for kind, new in changes(lines[index], clean[index], previous):
            found.append(Mutant(path, index + 1, lines[index], new, kind))
    return found
