# Finds Go test files by the names of their test functions.
found_go() {
  grep_tree '^[ 	]*func[ 	]+[A-Za-z0-9_]' '*_test.go' | awk '
    NR == FNR { want[$0]; next }
    {
      at = index($0, ".go:"); text = substr($0, at + 4)
      sub(/^[ \t]*func[ \t]+/, "", text); sub(/[^A-Za-z0-9_].*/, "", text)
      if (text in want) print substr($0, 6, at - 3)
    }' "$work/names" -
}
