# Tree snapshots and patches with a separate git folder, without configuration, hooks, filters and attributes of the repository
# or the agent. POSIX sh and git >= 2.11. Run in a clean environment; all modes but prepare by plain exec. Arguments:
# prepare|take|names|diff, workdir, name of our folder, then by mode. Exit codes: 3 no work tree, 4 no git, 5 git failed, 6 too
# large, 8 files are shown that git ignored at the start. Starting a program costs as much as a command of the model, so the
# shell does most of the work.
mode=$1 work=$2 name=$3
command -v git >/dev/null 2>&1 || exit 4
beside=${work%/}
for base in "${beside%/*}" /var/tmp /tmp; do
  dir=${base%/}/$name
  [ "$mode" != prepare ] && [ -d "$dir" ] && break
  [ "$mode" = prepare ] && mkdir -p -m 700 "$dir/objects/info" "$dir/refs/heads" "$dir/info" 2>/dev/null && break
done
export GIT_DIR="$dir" GIT_WORK_TREE="$work"
if [ "$mode" != prepare ]; then # opening a pipe that the agent put there would block
  for file in config HEAD index log new sizes ignored shown left info/attributes; do
    if [ -p "$dir/$file" ]; then rm -f "$dir/$file"; fi
  done
fi

configure() { # writes our git configuration, in the modes prepare and take, because the agent can change it
  version=0 extension=
  [ -f "$dir/sha256" ] && version=1 extension='[extensions]
	objectFormat = sha256'
  printf '%s\n' "[core]
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
$extension" >"$dir/config"
  printf 'ref: refs/heads/none\n' >"$dir/HEAD"
  printf '* -text -eol -crlf -ident -filter -working-tree-encoding !diff !merge\n' >"$dir/info/attributes"
  if [ -e "$dir/index.lock" ] || [ -L "$dir/index.lock" ]; then rm -f "$dir/index.lock"; fi
}

has_long_names() { # whether the repository with the configuration $1 uses SHA-256
  while read -r line || [ "$line" ]; do
    case $line in
    *[Oo][Bb][Jj][Ee][Cc][Tt][Ff][Oo][Rr][Mm][Aa][Tt]*=*[Ss][Hh][Aa]256*) return 0 ;;
    esac
  done <"$1"
  return 1
}

add() { # updates our index from the tree, without unreadable files
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
  [ -r "$common/config" ] && has_long_names "$common/config" && : >"$dir/sha256"
  printf '%s\n' "$common/objects" >"$dir/objects/info/alternates"
  # our patterns, then the repository's: the last match decides
  {
    printf '%s\n' "$4"
    [ -r "$common/info/exclude" ] && while IFS= read -r line || [ "$line" ]; do
      printf '%s\n' "$line"
    done <"$common/info/exclude"
  } >"$dir/info/exclude"
  configure
  # The repository's index has the sizes and times of the files, so that git need not read them.
  cp "$git/index" "$dir/index" 2>/dev/null
  # The patch omits these files even if the agent changes the rules. The listing runs in parallel with `add`: each reads all folders.
  git ls-files -z -o -i --exclude-standard --directory >"$dir/ignored" 2>/dev/null &
  add
  wait
  tree=$(git write-tree 2>>"$dir/log") || {
    rm -f "$dir/index"
    add
    tree=$(git write-tree 2>>"$dir/log") || { tail -c 300 "$dir/log"; exit 5; }
  }
  printf '%s\n' "$tree"
  ;;
take)
  tree=$4 limit=$5 # with a sixth argument, stdin names files that stay as they were at the start
  [ -d "$work" ] || mkdir -p "$work"
  cd "$work" || exit 3
  configure
  if [ "$6" ]; then
    cat >"$dir/left"
    xargs -0 printf "100644 $6 0\t%s\0" <"$dir/left" | git update-index -z --index-info
    git update-index -z --skip-worktree --stdin <"$dir/left"
  elif [ -s "$dir/ignored" ]; then
    GIT_LITERAL_PATHSPECS=1 xargs -0 git ls-files -z -o --exclude-standard -- <"$dir/ignored" >"$dir/shown" 2>/dev/null
    if [ -s "$dir/shown" ]; then
      # The inode change times show which files of ignored folders are unchanged: code cannot set these times.
      cat "$dir/ignored"
      printf '\0'
      cat "$dir/shown"
      printf '\0'
      xargs -0 printf './%s\0' <"$dir/shown" | xargs -0 sh -c 'find "$@" -maxdepth 0 ! -cnewer "$0" -print0' "$dir/ignored"
      exit 8
    fi
  fi
  if git ls-files -z -o -m --exclude-standard >"$dir/new" 2>/dev/null; then
    # New and changed files that exceed the limit together are not read.
    sum=0
    if [ -s "$dir/new" ]; then
      xargs -0 stat -c %s -- <"$dir/new" >"$dir/sizes" 2>/dev/null
      while read -r bytes; do sum=$((sum + bytes)); done <"$dir/sizes"
    fi
    [ "$sum" -gt "$limit" ] && exit 6
  else
    rm -f "$dir/index"
    git read-tree "$tree" 2>"$dir/log" || { tail -c 300 "$dir/log"; exit 5; }
  fi
  add
  [ -z "$6" ] || git update-index -z --force-remove --stdin <"$dir/left"
  ;;
names)
  cd "$work" || exit 3
  git diff-index --cached --name-only -z --no-renames --ignore-submodules=none "$4"
  exit
  ;;
diff)
  cd "$work" || exit 3
  cat >>"$dir/info/attributes"
  ;;
esac
if [ "$mode" != prepare ]; then
  git diff-index --cached -p --binary --full-index --no-renames --no-ext-diff --no-textconv --no-color \
    --ignore-submodules=none --src-prefix=a/ --dst-prefix=b/ "$4" 2>"$dir/log" || { tail -c 300 "$dir/log"; exit 5; }
fi
