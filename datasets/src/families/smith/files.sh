# Defines test_files: prints the files of HEAD that contain tests of the instance, one per line, except files that the patch changes.
# Requires $rule, the function found_$rule (not for the rule files), and two functions: names prints test files, or the names to search
# for; changed prints the files of the patch.
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
