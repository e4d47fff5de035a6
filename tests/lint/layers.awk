# The rules of layers.sh, over C, header and CUDA files given with paths relative to the source root.
# Prints "file:line: what is wrong, what to do" per violation and exits with 1 if there was any. POSIX awk.

BEGIN {
    # What each folder may include besides itself. include/replayssm.h and templates/abi/ are open to all.
    allowed["include"]   = ""
    allowed["base"]      = ""
    allowed["gen"]       = "base"
    allowed["gen/check"] = "base gen"
    allowed["db"]        = "base"
    allowed["runtime"]   = "base gen db"
    allowed["tuner"]     = "base gen gen/check db runtime"
    allowed["templates"] = ""
    # tests, bench and examples may include anything.

    # Library, pattern of its headers, pattern of the only file that may include them ("" = none).
    add_library("cJSON", "^(cjson/)?cJSON\\.h$", "^base/json\\.c$")
    add_library("libsodium", "^sodium(/.*)?(\\.h)?$", "^base/hash\\.c$")
    add_library("SQLite", "^sqlite3(ext)?\\.h$", "^db/[^/]*\\.c$")
    add_library("zstd", "^(zstd|zdict|zstd_errors)\\.h$", "^db/compress\\.c$")
    add_library("libclang", "^clang-c/", "^gen/check/.*\\.c$")
    add_library("NVRTC", "^nvrtc\\.h$", "")
    add_library("CUDA", "^cuda(_runtime|_runtime_api|_bf16|_fp16|_fp8)?\\.h$", "")

    # Who may read the environment and who may print or exit: the command, and files that are a program.
    reads_environment = "^(base/file\\.c|runtime/context\\.c|tuner/main\\.c)$"
    is_program        = "(^tuner/)|(^|/)([a-z0-9_]*_)?main\\.c$"

    before    = "(^|[^A-Za-z0-9_.>])"
    print_call = before "(v?f?printf|dprintf|puts|putchar|perror|_?exit|_Exit|quick_exit)[ \t]*\\("
    environment_call = before "(secure_)?getenv[ \t]*\\("
}

function add_library(name, headers, file)
{
    n_libraries++
    library[n_libraries] = name
    library_headers[n_libraries] = headers
    library_file[n_libraries] = file
}

function complain(what)
{
    printf "%s:%d: %s\n", FILENAME, FNR, what
    n_violations++
}

# The folder that a path belongs to.
function layer_of(path,    parts, n)
{
    n = split(path, parts, "/")
    if (n > 2 && parts[1] == "gen" && parts[2] == "check") return "gen/check"
    return parts[1]
}

# Sets `code` (comments blanked) and `bare` (strings blanked too) from the raw line; keeps `in_comment`.
function strip(line,    q, end)
{
    code = ""
    bare = ""
    while (line != "") {
        if (in_comment) {
            end = index(line, "*/")
            if (end == 0) return
            line = substr(line, end + 2)
            in_comment = 0
            code = code " "
            bare = bare " "
            continue
        }
        if (!match(line, /"|'|\/\/|\/\*/)) {
            code = code line
            bare = bare line
            return
        }
        code = code substr(line, 1, RSTART - 1)
        bare = bare substr(line, 1, RSTART - 1)
        q = substr(line, RSTART, 1)
        if (q == "/") {
            if (substr(line, RSTART, 2) == "//") return
            in_comment = 1
            line = substr(line, RSTART + 2)
            continue
        }
        line = substr(line, RSTART + 1)
        for (end = 1; end <= length(line) && substr(line, end, 1) != q; end++)
            if (substr(line, end, 1) == "\\") end++
        code = code q substr(line, 1, end)
        bare = bare q q
        line = substr(line, end + 1)
    }
}

# What an include names: a folder, "abi" or "public" (both open to all), "system", or "" (not root-relative).
function target_of(name, is_quoted)
{
    if (name == "include/replayssm.h" || name == "replayssm.h") return "public"
    if (name ~ /^(templates\/)?abi\//) return "abi"
    if (name ~ /^(numerics|prims|cpu|cuda)\// || name == "rssm_config.h") return "templates"   # relative to templates/
    if (name ~ /^(base|gen|db|runtime|tuner|templates|tests|bench|examples)\//) return layer_of(name)
    return is_quoted ? "" : "system"
}

function may_include(from, to,    list, n, i)
{
    if (to == from || to == "public" || to == "abi") return 1
    n = split(allowed[from], list, " ")
    for (i = 1; i <= n; i++)
        if (list[i] == to) return 1
    return 0
}

function check_include(name, is_quoted, from,    to)
{
    to = target_of(name, is_quoted)
    if (from == "templates") {
        if (to == "system") complain("a template includes <" name ">; templates include only templates")
        else if (to != "abi" && to != "templates")
            complain("a template includes \"" name "\"; templates include only templates")
    } else if (to == "system") {
        return
    } else if (to == "") {
        complain("\"" name "\" is not root-relative; write \"folder/name.h\"")
    } else if (!may_include(from, to)) {
        complain(from "/ must not include \"" name "\" (" to "/); see the layer rule in layers.sh")
    }
}

function check_library(name,    i)
{
    for (i = 1; i <= n_libraries; i++) {
        if (name !~ library_headers[i]) continue
        if (library_file[i] == "")
            complain("<" name "> (" library[i] ") is included outside tests; load it at run time")
        else if (FILENAME !~ library_file[i])
            complain("<" name "> (" library[i] ") is included outside its one file")
        else if (library_user[i] == "") library_user[i] = FILENAME
        else if (library_user[i] != FILENAME)
            complain("<" name "> (" library[i] ") is already included by " library_user[i] "; one file only")
    }
}

FNR == 1 {
    in_comment = 0
    from = layer_of(FILENAME)
    is_free = from == "tests" || from == "bench" || from == "examples"
}

{
    raw = $0
    strip(raw)
    if (code ~ /^[ \t]*#[ \t]*if[ \t]+0[ \t]*$/) complain("#if 0; remove the code, the history keeps it")
    rest = raw
    while (match(rest, /TODO/)) {
        word_before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : " "
        rest = substr(rest, RSTART + 4)
        if (word_before ~ /[A-Za-z0-9_]/ || rest ~ /^[A-Za-z0-9_]/ || rest ~ /^\(#[0-9]+\)/) continue
        complain("TODO without an issue; write TODO(#number)")
    }
}

is_free { next }

code ~ /^[ \t]*#[ \t]*include[ \t]*["<]/ {
    name = code
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", name)
    is_quoted = substr(name, 1, 1) == "\""
    name = substr(name, 2)
    sub(/[">].*$/, "", name)
    check_include(name, is_quoted, from)
    check_library(name)
    next
}

bare ~ /[a-z]/ {
    if (bare ~ environment_call && FILENAME !~ reads_environment)
        complain("getenv outside the files that read the environment; take the value as an option")
    if (bare ~ print_call && FILENAME !~ is_program)
        complain("library code prints or exits; return a status with a diagnostic, or use the log")
}

END { exit n_violations > 0 }
