#!/usr/bin/env python3
"""Tests the referee and the suite by mutation: breaks the real templates, one place at a time, and runs them.

At every site of every CUDA template it removes a barrier, a wait, a fence, a mask or a tail predicate, moves a boundary
or a row or fragment index by one, or swaps a parity. Each mutant goes through the suite (simt-check --suite) until
something finds it: the referee, the oracle, a sanitizer or the compiler. Prints killed / total with what killed each.

A survivor is a missing check, or it is equivalent code: then mutants_equivalent.txt has a line for it,
`FILE | OPERATOR | CODE | reason`, with CODE as this script prints it. Exit status 1 if any other survivor is left.

  mutate.py --check build/tests/simt/simt-check              all sites
  mutate.py --check ... --every 24 --offset 5                a stated subset: every 24th site, from the fifth on
  mutate.py --check ... --operators barrier,wait,mask        what ctest runs: all of what orders threads
  mutate.py --check ... --only FILE --list                   what would be done
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TIMEOUT_S = 300

# Functions whose last argument is a row, record or fragment number.
INDEXED = ("ring_index|record_offset|ring_at|record_at|token_at|unit_offset|locate_tile|chunk_record|lane_chunk|load_x|"
           "pass_head|stride_times")


def blank_comments(text):
    """Comments and string contents replaced by blanks of the same length, so that offsets stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def closing(code, at):
    """Offset of the bracket that closes the one at `at`."""
    pairs = {"(": ")", "[": "]"}
    opening, close, depth = code[at], pairs[code[at]], 0
    for i in range(at, len(code)):
        if code[i] == opening:
            depth += 1
        elif code[i] == close:
            depth -= 1
            if depth == 0:
                return i
    return -1


def operands(code, begin, end, separator):
    """(begin, end) of what `separator` separates at the top level of code[begin:end]."""
    parts, depth, start, i = [], 0, begin, begin
    while i < end:
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
        elif depth == 0 and code.startswith(separator, i):
            parts.append((start, i))
            i += len(separator)
            start = i
            continue
        i += 1
    parts.append((start, end))
    return parts


class Mutant:
    def __init__(self, file, text, operator, begin, end, replacement):
        self.file, self.operator, self.begin, self.end, self.replacement = file, operator, begin, end, replacement
        self.line = text.count("\n", 0, begin) + 1
        line_begin = text.rfind("\n", 0, begin) + 1
        line_end = text.find("\n", end)
        changed = re.sub(r"//.*", "", text[line_begin:begin] + replacement + text[end:line_end])
        if replacement == ";":   # a removal: what was there, with the comment that tells it from others
            changed = "without " + text[line_begin:line_end]
        self.code = " ".join(changed.split())

    def key(self):
        return f"{self.file} | {self.operator} | {self.code}"


def in_directive(text, at):
    line = text[text.rfind("\n", 0, at) + 1:text.find("\n", at)].lstrip()
    return line.startswith("#") or line.startswith("static_assert")


def removals(code):
    for operator, pattern in (("barrier", r"\bgpu_(?:warp_)?barrier\w*(?:<[^;()]*>)?\([^;]*\);"),
                              ("wait", r"\bgpu_\w*wait\w*(?:<[^;()]*>)?\([^;]*\);"),
                              ("fence", r"\bgpu_\w*fence\w*\([^;]*\);")):
        for match in re.finditer(pattern, code):
            yield operator, match.start(), match.end(), ";"


def predicates(code):
    for match in re.finditer(r"\bif \(", code):
        begin = match.end()
        end = closing(code, begin - 1)
        body = code[end + 1:end + 40].split()
        leaves = bool(body) and re.match(r"(return|continue|break)\b", body[0].strip("{"))
        always = "false" if leaves else "true"
        yield "predicate", begin, end, always
        for separator in ("&&", "||"):
            parts = operands(code, begin, end, separator)
            if len(parts) == 1:
                continue
            neutral = " true " if separator == "&&" else " false "
            for part_begin, part_end in parts:
                yield "predicate", part_begin, part_end, neutral
    # The last argument of a predicated access, and the condition of a choice.
    for match in re.finditer(r"\bgpu_\w*(?:_if|_hinted<[^()]*>)\(", code):
        begin = match.end()
        end = closing(code, begin - 1)
        parts = operands(code, begin, end, ",")
        if "load" in match.group(0) and len(parts) > 1:
            yield "predicate", parts[-1][0], parts[-1][1], " true"
    for match in re.finditer(r"([\w.\->\[\]]+ (?:<|<=|>|>=|==|!=) [\w.]+) \?", code):
        yield "predicate", match.start(1), match.end(1), "true"
        yield "predicate", match.start(1), match.end(1), "false"


def boundaries(code):
    """< and <= of conditions: what comes last is taken in or left out."""
    for match in re.finditer(r" (<=|<|>=|>) ", code):
        line_begin = code.rfind("\n", 0, match.start()) + 1
        line = code[line_begin:code.find("\n", match.start())]
        if "template" in line or "constexpr" in line:
            continue
        other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}[match.group(1)]
        yield "boundary", match.start(1), match.end(1), other


def indices(code):
    for match in re.finditer(r"\[", code):
        end = closing(code, match.start())
        content = code[match.end():end].strip()
        if not content:
            continue
        before = code[code.rfind("\n", 0, match.start()) + 1:match.start()]
        declares = re.search(r"(?:^|[(,{;]|const|unsigned|GPU_FN)\s*(?:[\w:]+(?:<[^>]*>)?\s+[\w*&]*|\w+ \**)"
                             r"\w+(?:\[[^\]]*\])*$", before) and re.fullmatch(r"[A-Z_0-9 */+()a-z:<>]*", content)
        is_constant = re.fullmatch(r"[A-Z_0-9 */+]+", content)
        if declares and is_constant and not re.search(r"[=+]\s*\w+$|return \w+$", before):
            continue
        yield "index", match.end(), end, f"({content}) + 1"
    for match in re.finditer(r"\b(?:" + INDEXED + r")(?:<[^()]*>)?\(", code):
        begin = match.end()
        end = closing(code, begin - 1)
        if code[end + 1:end + 2] == "\n" or not code[begin:end].strip():
            continue   # a definition, or nothing to move
        last = operands(code, begin, end, ",")[-1]
        content = code[last[0]:last[1]].strip()
        if " " in content and re.match(r"(?:const )?(?:int|rssm_\w+|T_\w+) ", content):
            continue   # a declaration
        yield "index", last[0], last[1], f" ({content}) + 1"


def parities_and_masks(code):
    for match in re.finditer(r"\bparity \^= 1", code):
        yield "parity", match.start(), match.end(), "parity ^= 0"
    for match in re.finditer(r"\bgpu_mbarrier_(?:wait|test)\(", code):
        end = closing(code, match.end() - 1)
        begin, stop = operands(code, match.end(), end, ",")[-1]
        yield "parity", begin, stop, f" ({code[begin:stop].strip()}) ^ 1"
    for match in re.finditer(r"\bgpu_shuffle_\w+\(", code):
        end = closing(code, match.end() - 1)
        begin, stop = operands(code, match.end(), end, ",")[-1]
        yield "mask", begin, stop, f" ({code[begin:stop].strip()}) ^ 1"
    for match in re.finditer(r"\(1u << gpu_lane\(\)\) - 1", code):
        yield "mask", match.start(), match.end(), "(2u << gpu_lane()) - 1"


def mutants_of(file, text):
    code = blank_comments(text)
    seen = set()
    for source in (removals, predicates, boundaries, indices, parities_and_masks):
        for operator, begin, end, replacement in source(code):
            key = (begin, end, replacement)
            if key in seen or in_directive(text, begin) or code[begin:end].strip() == replacement.strip():
                continue
            seen.add(key)
            yield Mutant(file, text, operator, begin, end, replacement)


def classify(output, status):
    """What found a mutant, in a few words."""
    if status == "timeout":
        return "timeout"
    for pattern, words in ((r"static assertion failed|static_assert", "static_assert"),
                           (r"does not compile", "compiler"),
                           (r"ERROR: AddressSanitizer: ([\w-]+)", "AddressSanitizer"),
                           (r"runtime error", "UndefinedBehaviorSanitizer")):
        if re.search(pattern, output):
            return words
    match = re.search(r"(?:^|\s)cuda/\S+:\d+: ([\w -]+): ", output, flags=re.M)
    if match:
        return "referee: " + match.group(1)
    if re.search(r"^step \d+: |Assertion Failed", output, flags=re.M):
        return "oracle"
    return f"exit status {status}"


def tree_with(mutant, text, templates, folder):
    """A copy of the templates with the mutant in it: links, but for the one file."""
    for path, folders, files in os.walk(templates):
        target = os.path.join(folder, os.path.relpath(path, templates))
        os.makedirs(target, exist_ok=True)
        for name in files:
            shutil.copyfile(os.path.join(path, name), os.path.join(target, name))
    with open(os.path.join(folder, mutant.file), "w") as file:
        file.write(text[:mutant.begin] + mutant.replacement + text[mutant.end:])


def run_mutant(mutant, text, args):
    folder = tempfile.mkdtemp(prefix="rssm-mutant-")
    environment = dict(os.environ, ASAN_OPTIONS="abort_on_error=1:detect_leaks=0")
    try:
        tree_with(mutant, text, args.templates, folder)
        environment["SIMT_TEMPLATES"] = folder
        suite = [args.check, "--templates", folder, "--suite", f"0:{args.cases}", "--compiler-flags", "-O0"]
        commands = [suite]
        if "/advance/" in mutant.file:   # the step's cases say little about it
            tests = os.path.join(os.path.dirname(args.check), "test_simt_templates")
            commands = [[tests, "--filter", "*/advance*", "-j1"], suite[:4] + ["0:3"] + suite[5:]]
        for command in commands:
            try:
                result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                                        timeout=TIMEOUT_S, text=True, errors="replace")
            except subprocess.TimeoutExpired:
                return "timeout"
            if result.returncode != 0:
                return classify(result.stdout, result.returncode)
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_baseline(args):
    """The templates as they are must pass, or every mutant seems to be killed."""
    command = [args.check, "--templates", args.templates, "--suite", f"0:{args.cases}", "--compiler-flags", "-O0"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if result.returncode != 0:
        sys.exit("the templates fail without a mutation:\n" + result.stdout[-2000:])


def read_equivalent(path):
    reasons = {}
    if os.path.exists(path):
        for line in open(path):
            parts = [part.strip() for part in line.rsplit(" | ", 1)]
            if len(parts) == 2 and not line.startswith("#"):
                reasons[parts[0]] = parts[1]
    return reasons


def collect(args):
    found = []
    for path, _, files in sorted(os.walk(os.path.join(args.templates, "cuda"))):
        for name in sorted(files):
            file = os.path.relpath(os.path.join(path, name), args.templates)
            if not name.endswith((".cu", ".cuh")) or "/probe/" in file or (args.only and args.only not in file):
                continue
            text = open(os.path.join(args.templates, file)).read()
            found += [(mutant, text) for mutant in mutants_of(file, text)
                      if not args.operators or mutant.operator in args.operators.split(",")]
    return found[args.offset::args.every]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", required=True, help="the program simt-check")
    parser.add_argument("--templates", default=os.path.join(ROOT, "templates"))
    parser.add_argument("--equivalent", default=os.path.join(HERE, "mutants_equivalent.txt"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--operators", help="of barrier, wait, fence, predicate, boundary, index, parity, mask")
    parser.add_argument("--only", help="files whose name contains this")
    parser.add_argument("--cases", type=int, default=19, help="cases of the suite for each mutant, at most")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    args = parser.parse_args()
    work, equivalent = collect(args), read_equivalent(args.equivalent)
    if args.list:
        for mutant, _ in work:
            print(f"{mutant.file}:{mutant.line}: {mutant.operator}: {mutant.code}")
        print(f"{len(work)} mutants")
        return 0

    check_baseline(args)
    lock, tally, survivors, stillborn, excused = threading.Lock(), {}, [], 0, 0

    def judge(item):
        nonlocal stillborn, excused
        mutant, text = item
        killer = run_mutant(mutant, text, args)
        with lock:
            if killer == "compiler":
                stillborn += 1
                return
            if killer:
                tally[killer] = tally.get(killer, 0) + 1
                print(f"killed    {mutant.file}:{mutant.line}: {mutant.operator}: {mutant.code}  [{killer}]", flush=True)
            elif mutant.key() in equivalent:
                excused += 1
                print(f"equivalent {mutant.key()}  [{equivalent[mutant.key()]}]", flush=True)
            else:
                survivors.append(mutant)
                print(f"SURVIVED  {mutant.file}:{mutant.line}: {mutant.key()}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(judge, work))
    killed = sum(tally.values())
    total = killed + len(survivors) + excused
    for killer, n in sorted(tally.items(), key=lambda entry: -entry[1]):
        print(f"{n:5d}  {killer}")
    print(f"killed {killed} of {total} mutants; {excused} are equivalent code, {len(survivors)} survived; "
          f"{stillborn} more do not compile")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
