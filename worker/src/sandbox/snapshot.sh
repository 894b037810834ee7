# Tree snapshots and patches with a git folder of our own: no configuration, hooks, filters or attributes of the
# repository's or the agent's are read. POSIX sh and git >= 2.11. Run in a clean environment;
# all but prepare by plain exec.
# Arguments: prepare|take|names|diff, workdir, name of our folder, then by mode. Exit codes: 3 no work tree, 4 no git,
# 5 git failed, 6 too large.
mode=$1 work=$2 name=$3
command -v git >/dev/null 2>&1 || exit 4
for base in "$(dirname "$work")" /var/tmp /tmp; do
  dir=${base%/}/$name
  [ "$mode" != prepare ] && [ -d "$dir" ] && break
  [ "$mode" = prepare ] && mkdir -p -m 700 "$dir/objects/info" "$dir/refs/heads" "$dir/info" 2>/dev/null && break
done
export GIT_DIR="$dir" GIT_WORK_TREE="$work"

settle() { # writes what decides how git reads the tree; again before each use, since the agent could reach it
  version=0 extension=
  [ -f "$dir/sha256" ] && version=1 extension='[extensions]
	objectFormat = sha256'
  cat >"$dir/config" <<CONFIG
[core]
	repositoryformatversion = $version
	bare = false
	filemode = true
	symlinks = true
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	checkStat = minimal
	trustctime = false
	quotePath = true
	attributesFile = /dev/null
	excludesFile = /dev/null
	hooksPath = /dev/null
	compression = 1
	fsync = none
	logAllRefUpdates = false
[gc]
	auto = 0
$extension
CONFIG
  printf 'ref: refs/heads/none\n' >"$dir/HEAD"
  printf '* -text -eol -crlf -ident -filter -working-tree-encoding !diff !merge\n' >"$dir/info/attributes"
  rm -f "$dir/index.lock"
}

add() { # brings our index up to the tree; what cannot be read is left out
  git add -A --ignore-errors . >"$dir/log" 2>&1
}

case $mode in
prepare)
  cd "$work" 2>/dev/null || exit 3
  if [ -d .git ]; then
    git=$work/.git
  elif [ -f .git ]; then
    read -r _ git <.git
    case $git in /*) ;; *) git=$work/$git ;; esac
  else
    exit 3
  fi
  common=$git
  if [ -f "$git/commondir" ]; then
    read -r common <"$git/commondir"
    case $common in /*) ;; *) common=$git/$common ;; esac
  fi
  [ -d "$common/objects" ] || exit 3
  grep -qi 'objectformat *= *sha256' "$common/config" 2>/dev/null && : >"$dir/sha256"
  printf '%s\n' "$common/objects" >"$dir/objects/info/alternates"
  # ours on stdin, the repository's own after it: the last match decides
  { cat; cat "$common/info/exclude" 2>/dev/null; } >"$dir/info/exclude"
  settle
  # The repository's index knows content by size and time, so that git need not read every file again.
  cp "$git/index" "$dir/index" 2>/dev/null
  add
  tree=$(git write-tree 2>>"$dir/log") || {
    rm -f "$dir/index"
    add
    tree=$(git write-tree 2>>"$dir/log") || { tail -c 300 "$dir/log"; exit 5; }
  }
  printf '%s\n' "$tree"
  ;;
take)
  tree=$4 limit=$5
  mkdir -p "$work"
  cd "$work" || exit 3
  settle
  # Whatever is new and far over the limit is not even read.
  new=$(git ls-files -z -o -m --exclude-standard 2>/dev/null | xargs -0 -r stat -c %s -- 2>/dev/null | {
    sum=0
    while read -r bytes; do sum=$((sum + bytes)); done
    printf '%s' "$sum"
  })
  [ "${new:-0}" -gt "$limit" ] && exit 6
  if ! git ls-files >/dev/null 2>&1; then
    rm -f "$dir/index"
    git read-tree "$tree" 2>"$dir/log" || { tail -c 300 "$dir/log"; exit 5; }
  fi
  add
  ;;
names)
  cd "$work" || exit 3
  git diff-index --cached --name-only -z --no-renames --ignore-submodules=all "$4"
  exit
  ;;
diff)
  cd "$work" || exit 3
  cat >>"$dir/info/attributes"
  ;;
esac
if [ "$mode" != prepare ]; then
  git diff-index --cached -p --binary --full-index --no-renames --no-ext-diff --no-textconv --no-color \
    --ignore-submodules=all --src-prefix=a/ --dst-prefix=b/ "$4" 2>"$dir/log" || { tail -c 300 "$dir/log"; exit 5; }
fi
