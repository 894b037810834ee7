# Finds PHP test files by namespace and class.
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
