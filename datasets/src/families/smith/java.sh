# Finds Java files by the names of their classes.
found_java() {
  tree | awk 'NR == FNR { want[$0 ".java"]; next } { n = $0; sub(/.*\//, "", n) } n in want' "$work/names" -
}
