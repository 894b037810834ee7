# Makes room for the patch $patch in the clean tree. Expects $folder and hidden.sh.
# The files that it names are reset; git refuses all of them when it does not know one, which nobody minds. A file of tests that the
# agent did not have, and wrote anew, would be in the way of its own patch; it comes back after the patch.
cd "$folder" || exit 0
git apply --numstat "$patch" 2>/dev/null | cut -f3- | tr '\n' '\0' \
  | xargs -0 -r git --literal-pathspecs checkout -q -- >/dev/null 2>&1
created=$(mktemp) || exit 0
awk '/^--- \/dev\/null/ { getline; sub(/\t$/, ""); if ($0 ~ /^\+\+\+ b\//) print substr($0, 7) }' "$patch" >"$created"
[ ! -s "$created" ] || hidden_files | grep -Fx -f "$created" | while IFS= read -r file; do
  rm -f -- "./$file"
done
rm -f "$created"
exit 0
