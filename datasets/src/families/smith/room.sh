# Prepares the clean tree for $patch. Requires $folder and hidden.sh.
# Resets the files of the patch. If git does not know one of them, git resets none, which is no error. Then removes hidden test files that
# the patch creates, because the patch would not apply otherwise. restore.sh restores these files after the patch.
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
