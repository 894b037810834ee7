# Finds test files by the titles in it('…') and test('…'). A name that equals the path of a source file selects that file.
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
