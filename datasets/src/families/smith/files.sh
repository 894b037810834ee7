# test_files prints the files of HEAD that hold the instance's tests, one a line, those that its patch changes left out.
# Expects $rule and the functions names (the tests' files, or what the rule looks for) and changed (the patch's files).
export LC_ALL=C
tree() {
  git -c core.quotePath=false ls-tree -r --name-only HEAD
}
grep_tree() {
  git -c core.quotePath=false grep -I -E -e "$1" HEAD -- "$2"
}
test_files() {
  work=$(mktemp -d) || return 1
  names >"$work/names"
  changed >"$work/changed"
  if [ "$rule" = files ]; then sort -u "$work/names" >"$work/wanted"; else "found_$rule" | sort -u >"$work/wanted"; fi
  tree | sort | comm -12 - "$work/wanted" | grep -Fxv -f "$work/changed"
  rm -rf "$work"
}
