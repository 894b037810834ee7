# Finds Rust test files by the names of their test functions. Inline tests are ignored, because their files contain library code.
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
