# Kills every process of one command: its tree, its process groups, processes with its mark in the environment, and, in the
# container's own process table ("private"), processes that started later than the command. POSIX sh, mostly builtins. Arguments:
# mark, spare (process ids to spare: the controller, whose children are the command's roots, and its watcher, whose children
# store output and are spared too), private (1 or 0). When the controller is dead, the processes of its session without a mark
# (forked without exec) are killed too.
mark=$1 first=${2%% *} private=$3
spare=" $2 $$ 1 "
[ -n "$first" ] && kill -CONT "$first" 2>/dev/null
read_stat() { # sets state parent group session started of process $1
  read -r line 2>/dev/null <"/proc/$1/stat" || return 1
  set -- ${line##*) }
  state=$1 parent=$2 group=$3 session=$4
  shift 19
  started=$1
}
is_alive() { # zombies are not alive
  read_stat "$1" && [ "$state" != Z ]
}
watcher=
case "$2" in *' '*) watcher=${2#* } ;; esac
dead=
tries=0
if [ -n "$first" ]; then
  # The caller omits the watcher when the controller's streams were closed: the controller is about to end.
  while [ ! "$watcher" ] && is_alive "$first" && [ $tries -lt 50 ]; do
    tries=$((tries + 1))
    sleep 0.02
  done
  is_alive "$first" || dead=$first
fi
since=
round=0 spared=
while [ $round -lt 40 ]; do
  round=$((round + 1)) victims=' ' grew=1
  marked=" $(grep -ls -- "SWEFARM_COMMAND=$mark" /proc/[0-9]*/environ 2>/dev/null | tr '\n' ' ')"
  while [ "$watcher" ] && [ ! "$dead" ]; do
    grown=$spare
    for dir in /proc/[0-9]*; do
      pid=${dir#/proc/}
      case "$spare" in *" $pid "*) continue ;; esac
      read_stat "$pid" || continue
      case " $watcher$spared " in *" $parent "*) spare="$spare$pid " spared="$spared $pid" ;; esac
    done
    [ "$grown" = "$spare" ] && break
  done
  [ "$dead" ] && foreign=" $(grep -ls -- 'SWEFARM_COMMAND=' /proc/[0-9]*/environ 2>/dev/null | tr '\n' ' ')"
  while [ $grew = 1 ]; do
    grew=0
    for dir in /proc/[0-9]*; do
      pid=${dir#/proc/}
      case "$spare$victims" in *" $pid "*) continue ;; esac
      read_stat "$pid" || continue
      [ "$state" = Z ] && continue
      case "$spare" in *" $parent "*) [ "$parent" = "$first" ] && { [ -z "$since" ] || [ "$started" -lt "$since" ]; } && since=$started ;; esac
      hit=0
      [ "$parent" = "$first" ] && hit=1
      case "$marked" in *"/proc/$pid/"*) hit=1 ;; esac
      case "$victims" in *" $parent "*) hit=1 ;; esac
      if [ "$dead" ] && [ "$session" = "$dead" ]; then
        case "$foreign" in *"/proc/$pid/"*) ;; *) hit=1 ;; esac
      fi
      [ "$private" = 1 ] && [ -n "$since" ] && [ "$started" -ge "$since" ] && [ "$parent" != $$ ] && [ "$parent" != 0 ] && hit=1
      if [ $hit = 1 ]; then
        victims="$victims$pid "
        grew=1
        kill -STOP "$pid" 2>/dev/null
        [ "$group" = "$pid" ] && kill -9 -- "-$pid" 2>/dev/null
      fi
    done
  done
  [ "$victims" = ' ' ] && break
  kill -9 $victims 2>/dev/null
done
exit 0
