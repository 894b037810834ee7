# Files that are named after the classes.
found_java() {
  tree | awk 'NR == FNR { want[$0 ".java"]; next } { n = $0; sub(/.*\//, "", n) } n in want' "$work/names" -
}
