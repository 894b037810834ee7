# test_files prints the files of HEAD that hold the instance's tests, one a line, those that its patch changes left out.
# Expects $rule and the functions names (the tests' files, or what the rule looks for) and changed (the patch's files).
export LC_ALL=C
tree() {
  git -c core.quotePath=false ls-tree -r --name-only HEAD
}
grep_tree() {
  git -c core.quotePath=false grep -I -E -e "$1" HEAD -- "$2"
}
found_files() {
  tree
}
found_java() {
  tree | awk 'NR == FNR { want[$0 ".java"]; next } { n = $0; sub(/.*\//, "", n) } n in want' "$work/names" -
}
found_go() {
  grep_tree '^[ 	]*func[ 	]+[A-Za-z0-9_]' '*_test.go' | awk '
    NR == FNR { want[$0]; next }
    {
      at = index($0, ".go:"); text = substr($0, at + 4)
      sub(/^[ \t]*func[ \t]+/, "", text); sub(/[^A-Za-z0-9_].*/, "", text)
      if (text in want) print substr($0, 6, at - 3)
    }' "$work/names" -
}
# Inline tests lie in the library: only files of tests alone count.
found_rust() {
  grep_tree 'fn[ 	]+[A-Za-z0-9_]' '*.rs' | awk '
    NR == FNR { want[$0]; next }
    {
      at = index($0, ".rs:"); path = substr($0, 6, at - 3); text = substr($0, at + 4)
      if (path !~ /(^|\/)tests\// && path !~ /(^|\/|_)tests?\.rs$/) next
      sub(/^.*fn[ \t]+/, "", text); sub(/[^A-Za-z0-9_].*/, "", text)
      if (text in want) print path
    }' "$work/names" -
}
found_php() {
  grep_tree '^[ 	]*(namespace|((abstract|final|readonly)[ 	]+)*class)[ 	]' '*.php' | awk '
    NR == FNR { want[$0]; next }
    {
      at = index($0, ".php:"); path = substr($0, 6, at - 2); text = substr($0, at + 5)
      if (path != last) { space = ""; last = path }
      sub(/^[ \t]+/, "", text)
      if (text ~ /^namespace/) {
        sub(/^namespace[ \t]+/, "", text); sub(/[ \t;{].*/, "", text); space = text "\\"
      } else if (path ~ /[Tt]est/) {
        sub(/^.*class[ \t]+/, "", text); sub(/[^A-Za-z0-9_].*/, "", text)
        if ((space text) in want) print path
      }
    }' "$work/names" -
}
# Titles of it('…') and test('…') in files that look like tests; a name that ends like a source file is one.
found_javascript() {
  tree | grep -v -E '(^|/)node_modules/' | grep -E '\.[cm]?[jt]sx?$' >"$work/sources"
  grep -Fx -f "$work/names" "$work/sources"
  grep -E '(^|/)(__tests__|tests?|specs?)/|[._-](test|spec|basictest)\.[cm]?[jt]sx?$|(^|/)tests?\.[cm]?[jt]sx?$' \
    "$work/sources" >"$work/tests"
  sed 's/^/HEAD:/' "$work/tests" | git cat-file --batch | awk '
    FILENAME == ARGV[1] { want[$0]; next }
    FILENAME == ARGV[2] { path[++paths] = $0; next }
    left < 0 { if ($0 ~ / blob [0-9]+$/) left = $NF; file++; open = 0; next }
    {
      left -= length($0) + 1
      rest = $0; sub(/\r$/, "", rest)
      if (open && rest ~ /^[ \t]*["\047`]/) { sub(/^[ \t]*/, "", rest); take(rest) }
      open = 0; rest = " " $0
      while (match(rest, /[^A-Za-z0-9_$.](it|test)(\.[A-Za-z]+)*[ \t]*\([ \t]*/)) {
        rest = substr(rest, RSTART + RLENGTH)
        if (rest == "" || rest == "\r") open = 1
        else if (rest ~ /^["\047`]/) take(rest)
      }
    }
    function take(text,   quote, i, c, title) {
      quote = substr(text, 1, 1)
      for (i = 2; (c = substr(text, i, 1)) != quote && c != ""; i++) {
        if (c == "\\") c = substr(text, ++i, 1)
        title = title c
      }
      if (c == quote && (title in want)) print path[file]
    }
    BEGIN { left = -1 }' "$work/names" "$work/tests" -
}
test_files() {
  work=$(mktemp -d) || return 1
  names >"$work/names"
  changed >"$work/changed"
  if [ "$rule" = files ]; then sort -u "$work/names" >"$work/wanted"; else "found_$rule" | sort -u >"$work/wanted"; fi
  tree | sort | comm -12 - "$work/wanted" | grep -Fxv -f "$work/changed"
  rm -rf "$work"
}
