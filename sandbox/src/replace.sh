# Replaces a repository by one with a single commit of the snapshot's tree on the branch main: without other commits, refs,
# reflogs, remotes, hooks and borrowed objects. All parts of the old repository are removed. Run in a clean environment.
# Arguments: work tree, name of our git folder, the snapshot's tree. Exit codes as in snapshot.sh.
work=$1 name=$2 tree=$3
command -v git >/dev/null 2>&1 || exit 4
cd "$work" 2>/dev/null || exit 3
[ -e .git ] || exit 3
for base in "$(dirname "$work")" /var/tmp /tmp; do
  snapshot=${base%/}/$name
  [ -d "$snapshot/objects" ] && break
done
dirs=$(GIT_DIR="$work/.git" git rev-parse --absolute-git-dir --git-common-dir) || exit 5
own=${dirs%%
*} common=${dirs#*
}
case $common in /*) ;; *) common=$work/$common ;; esac
new=$work/.git-$name
rm -rf "$new"
mkdir -p "$new/objects/pack" "$new/objects/info" "$new/refs/heads" "$new/refs/tags" "$new/info" "$snapshot/objects/pack" || exit 5

setting() { GIT_DIR="$work/.git" git config --local --get "$1"; }
write() { git config -f "$new/config" "$1" "$2" || exit 5; }
printf 'ref: refs/heads/main\n' >"$new/HEAD"
version=0
[ -f "$snapshot/sha256" ] && version=1
write core.repositoryformatversion "$version"
[ "$version" = 0 ] || write extensions.objectFormat sha256
write core.bare false
write core.logAllRefUpdates true
for key in core.fileMode core.symlinks core.ignoreCase core.autocrlf core.eol core.longPaths core.sparseCheckout \
  core.sparseCheckoutCone user.name user.email; do
  value=$(setting "$key") && write "$key" "$value"
done
GIT_DIR="$work/.git" git config --local --get-regexp '^submodule\.' 2>/dev/null | while read -r key value; do
  write "$key" "$value"
done
for file in exclude attributes sparse-checkout; do
  for from in "$common" "$own"; do
    [ -f "$from/info/$file" ] && cp "$from/info/$file" "$new/info/$file"
  done
done

# Objects are read from our folder, and through it from the old repository. Packed objects are copied.
export GIT_DIR="$new"
commit=$(printf 'Initial commit\n' | GIT_ALTERNATE_OBJECT_DIRECTORIES="$snapshot/objects" \
  GIT_AUTHOR_NAME=swefarm GIT_AUTHOR_EMAIL=swefarm@localhost GIT_AUTHOR_DATE='946684800 +0000' \
  GIT_COMMITTER_NAME=swefarm GIT_COMMITTER_EMAIL=swefarm@localhost GIT_COMMITTER_DATE='946684800 +0000' \
  git commit-tree "$tree") || exit 5
pack=$(printf '%s\n' "$commit" | GIT_ALTERNATE_OBJECT_DIRECTORIES="$snapshot/objects" \
  git -c pack.window=0 -c pack.threads=1 -c pack.writeReverseIndex=false pack-objects -q --revs "$new/objects/pack/pack") || exit 5
rm -rf "$new"/objects/??
printf '%s\n' "$commit" >"$new/refs/heads/main"
cp "$snapshot/index" "$new/index" || exit 5
git rev-list --objects HEAD >/dev/null || exit 5
# Our folder needs its own links to (or copies of) the packs, because the agent may remove them from its repository.
for file in "$new/objects/pack/pack-$pack".*; do
  ln "$file" "$snapshot/objects/pack/" 2>/dev/null || cp "$file" "$snapshot/objects/pack/" || exit 5
done
chown -R "$(stat -c %u:%g "$work/.git")" "$new" || exit 5
unset GIT_DIR

lenders=$(cat "$common/objects/info/alternates" 2>/dev/null)
if [ -d "$common/modules" ]; then mv "$common/modules" "$new/modules" || exit 5; fi
remove() { # never a folder that contains the work tree
  case $work/ in "${1%/}"/*) return ;; esac
  rm -rf "$1"
  [ ! -e "$1" ] || { printf '%s cannot be removed' "$1"; exit 5; }
}
printf '%s\n' "$lenders" | while IFS= read -r lender; do
  [ -n "$lender" ] || continue
  case $lender in /*) ;; *) lender=$common/objects/$lender ;; esac
  remove "$(readlink -f -- "$lender" || printf '%s' "$lender")"
done || exit 5
for dir in "$own" "$common" "$work/.git"; do remove "$dir"; done
mv "$new" "$work/.git" || exit 5
printf '%s\n' "$work/.git/objects" >"$snapshot/objects/info/alternates"
exit 0
