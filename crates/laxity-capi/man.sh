#!/bin/sh
# Writes the manual pages of a header: one of each function, and one of the whole, all in the words of the header's own comments.
#
#   crates/laxity-capi/man.sh crates/laxity-capi/include/rts.h VERSION DIRECTORY
#
# A function's comment stands right before it; "EBUSY: ..." in it begins what goes under ERRORS. Needs nothing but a shell and awk.
set -eu
if [ $# -ne 3 ]; then
    echo "usage: $0 HEADER VERSION DIRECTORY" >&2
    exit 64
fi
mkdir -p "$3"
awk -v version="$2" -v directory="$3" -v header="$(basename "$1")" '
# As roff prints it: text, and lines that stay as they are.
function plain(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^[.\x27]/ ? "\\\\&" text : text
}
function code(text) { print ".nf\n" plain(text) "\n.fi" > page }
function heading(name, what) {
    page = directory "/" name ".3"
    printf ".TH %s 3 \"\" \"laxity %s\" \"laxity\"\n.SH NAME\n%s \\- %s\n", toupper(name), version, name, plain(what) > page
}
function section(name) { print ".SH " name > page }
# All pages but this one.
function others(name,    place) {
    section("SEE ALSO")
    names[0] = whole
    for (place = 0; place <= functions; place++)
        if (names[place] != name)
            print ".BR " names[place] " (3)" (place < functions && names[functions] != name || place < functions - 1 ? "," : "") > page
    close(page)
}
# Where the name of an error begins, and no longer word ends with the like of one.
function error_in(text) {
    return match(text, /(^|[^A-Z0-9_])E[A-Z0-9]+: /) ? RSTART + (substr(text, RSTART, 1) != "E") : 0
}
function error(name, text) { printf ".TP\n.B %s\n%s\n", name, plain(text) > page }
# What every function returns that is called wrongly in a way that they have in common.
function common_errors(prototype,    kind) {
    if (prototype ~ /\*/)
        error("EFAULT", "a pointer is not aligned, or is NULL and must not be.")
    for (kind = 1; kind <= kinds; kind++)
        if (prototype ~ "[ (]" kind_names[kind] " \\*" && structures[kind] ~ /uint32_t size;/) {
            error("EINVAL", "no version of " kind_names[kind] " has that size.")
            if (prototype ~ "const " kind_names[kind] " ")
                error("E2BIG", kind_names[kind] " asks for what this library does not know.")
        }
    error("ENOTRECOVERABLE", "a bug in the library: what it said went to standard error.")
}
# A comment with what is no error first; under ERRORS what begins with the name of one.
function describe(text, prototype, returns_errors,    begin, rest, next_begin, name) {
    section("DESCRIPTION")
    begin = error_in(text)
    rest = begin ? substr(text, begin) : ""
    print plain(begin ? substr(text, 1, begin - 1) : text) > page
    if (returns_errors) {
        section("RETURN VALUE")
        print plain("0, or a number of errno.h, of which") "\n.BR laxity_message (3)\nsays more." > page
    }
    if (begin || returns_errors)
        section("ERRORS")
    while (rest != "") {
        match(rest, /^E[A-Z0-9]+: /)
        name = substr(rest, 1, RLENGTH - 2)
        rest = substr(rest, RLENGTH + 1)
        next_begin = error_in(rest)
        text = next_begin ? substr(rest, 1, next_begin - 1) : rest
        sub(/[;.]? *$/, ".", text)
        error(name, text)
        rest = next_begin ? substr(rest, next_begin) : ""
    }
    if (returns_errors)
        common_errors(prototype)
}
# The first sentence, without its end.
function first(text) {
    sub(/[.:;(] .*/, "", text)
    sub(/[ .]*$/, "", text)
    return text
}
function function_page(place,    name, told, used, kind) {
    name = names[place]
    heading(name, first(comments[place]))
    section("SYNOPSIS")
    code("#include <" header ">\n\n" prototypes[place])
    describe(comments[place], prototypes[place], prototypes[place] ~ /^int / && comments[place] !~ /1 or 0; -1/)
    # From the last on, as each is made of those before it.
    used = prototypes[place]
    told = ""
    for (kind = kinds; kind > 0; kind--)
        if (used ~ "(^|[ (])" kind_names[kind] " ") {
            used = used " " structures[kind]
            told = structures[kind] (told == "" ? "" : "\n\n" told)
        }
    if (told != "") {
        section("STRUCTURES")
        code(told)
    }
    others(name)
}
BEGIN { whole = header; sub(/\.h$/, "", whole) }
# The first comment is of the whole.
FNR == 1 { in_head = 1; sub(/^\/\* */, ""); summary = $0; sub("^" whole ": ", "", summary); summary = first(summary); head = ".PP\n" plain($0); next }
in_head && /\*\// { in_head = 0; next }
in_head {
    sub(/^ \* ?/, "")
    is_code = /^    /
    if (is_code && !was_code) head = head "\n.PP\n.nf"
    if (!is_code && was_code) head = head "\n.fi"
    was_code = is_code
    head = head "\n" ($0 == "" ? ".PP" : plain($0))
    next
}
/^\/\*/ { comment = ""; is_comment = 1 }
is_comment {
    line = $0
    ends = line ~ /\*\/$/
    gsub(/^\/\* *|^ \* ?| *\*\/$/, "", line)
    comment = comment (comment == "" ? "" : " ") line
    if (ends) is_comment = 0
}
/^typedef/ && !/\(/ { structure = ""; is_structure = /\{/; comment_of = comment }
is_structure {
    structure = structure (structure == "" ? "" : "\n") $0
    if (/^\}/) {
        is_structure = 0
        kind_names[++kinds] = $2
        sub(/;/, "", kind_names[kinds])
        structures[kinds] = "/* " comment_of " */\n" structure
    }
}
/^extern "C" \{/ { is_body = 1; next }
/^[a-z].*\);$/ && !/^typedef/ {
    functions++
    prototypes[functions] = $0
    comments[functions] = comment
    names[functions] = $0
    sub(/\(.*/, "", names[functions])
    sub(/.*[ *]/, "", names[functions])
    is_body = 0
}
is_body && !/^#(ifdef|endif)/ { body = body "\n" $0 }
END {
    # What belongs to the first function is none of the body.
    sub(/\n\/\* [^\n]*(\n \* [^\n]*)*\n*$/, "", body)
    heading(whole, summary)
    section("SYNOPSIS")
    code("#include <" header ">")
    section("DESCRIPTION")
    print head > page
    section("CONSTANTS AND STRUCTURES")
    code(body)
    others(whole)
    for (place = 1; place <= functions; place++)
        function_page(place)
}
' "$1"
