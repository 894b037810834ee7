#!/usr/bin/env bash
# Runs a real Kubernetes on this machine, for tests: etcd, control plane, and nodes with a kubelet and a containerd each, all below one
# folder. Pods of all nodes share one bridge. There are no Service addresses, no DNS and no registry: images come from archives.
# Needs root, the programs of tools.sh control, Debian's etcd-server, containerd, runc, containernetworking-plugins, conntrack, iptables.
# usage: cluster.sh start DIR NODES [NUMBER] [ENGINE] | images DIR ARCHIVE... | fakes DIR COUNT | kubelet-stop DIR NODE | stop DIR
# start prints the path of the kubeconfig. NUMBER, 0 to 9, distinguishes addresses, ports and names of clusters that run at the same time.
# Node I of cluster 0 has the address 10.99.I.1, of cluster 1 10.97.I.1, and so on. ENGINE is `debian`, Debian's containerd and runc, or
# `containerd`, those of tools.sh containerd, which support user namespaces of pods (hostUsers: false). fakes adds nodes without a machine
# (label type=fake and a taint), for which kwok reports every pod as running, but no program runs there.
set -euo pipefail

action=${1:?usage: cluster.sh start|images|fakes|kubelet-stop|stop DIR ...}
dir=${2:?a folder for the cluster}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# start writes the number to a file for the other commands.
number=0
[ "$action" != start ] || number=${4:-0}
[ ! -s "$dir/number" ] || number=$(<"$dir/number")
bridge=swefarm$number net=10.$((99 - 2 * number)) port=$((26443 + number)) etcd_port=$((22379 + 2 * number))
# Prefix of the nodes' control groups.
group=swefarm${number#0}-
config=$dir/admin.kubeconfig
PATH=$PATH:/usr/sbin:/sbin

fail() { printf 'cluster.sh: %s\n' "$*" >&2; exit 12; }
# A zombie counts as ended, because an ended daemon without a waiting parent remains as a zombie.
alive() { [ -r "/proc/$1/stat" ] && ! grep -q '^[0-9]* (.*) Z' "/proc/$1/stat"; }
started() { # started NAME COMMAND...: runs in the background, with a log and the file of its pid
  local name=$1
  shift
  mkdir -p "$(dirname "$dir/run/$name")"
  nohup "$@" >"$dir/run/$name.log" 2>&1 </dev/null 7>&- 8>&- 9>&- &
  echo $! >"$dir/run/$name.pid"
}
ended() { # ended NAME: TERM, and KILL after 8 s; only if the process is still ours
  local file=$dir/run/$1.pid pid
  [ -s "$file" ] || return 0
  pid=$(<"$file")
  if alive "$pid" && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- "$dir"; then
    kill "$pid" 2>/dev/null || true
    for _ in {1..80}; do alive "$pid" || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
  fi
  rm -f "$file"
}
until_true() { # until_true SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.3
  done
}

certificate() { # certificate NAME SUBJECT NAMES
  openssl req -newkey rsa:2048 -nodes -keyout "$dir/pki/$1.key" -subj "$2" 2>/dev/null |
    openssl x509 -req -CA "$dir/pki/ca.crt" -CAkey "$dir/pki/ca.key" -CAcreateserial -days 3 -out "$dir/pki/$1.crt" \
      -extfile <(printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth' "$3") 2>/dev/null
}

control_plane() { # control_plane BIN
  local bin=$1 pki=$dir/pki
  mkdir -p "$pki" "$dir/run"
  openssl req -x509 -newkey rsa:2048 -nodes -keyout "$pki/ca.key" -out "$pki/ca.crt" -subj /CN=swefarm-test -days 3 2>/dev/null
  openssl genrsa -out "$pki/accounts.key" 2048 2>/dev/null
  openssl rsa -in "$pki/accounts.key" -pubout -out "$pki/accounts.pub" 2>/dev/null
  certificate server /CN=kube-apiserver DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1
  certificate admin /O=system:masters/CN=admin DNS:admin
  cat >"$config" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:$port", certificate-authority: $pki/ca.crt}}]
users: [{name: admin, user: {client-certificate: $pki/admin.crt, client-key: $pki/admin.key}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
YAML
  cat >"$dir/audit.yaml" <<'YAML'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
YAML
  started etcd etcd --data-dir "$dir/etcd" --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls "http://127.0.0.1:$((etcd_port + 1))" --initial-advertise-peer-urls "http://127.0.0.1:$((etcd_port + 1))" \
    --initial-cluster "default=http://127.0.0.1:$((etcd_port + 1))" --unsafe-no-fsync
  started apiserver "$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
    --secure-port=$port --tls-cert-file="$pki/server.crt" --tls-private-key-file="$pki/server.key" --client-ca-file="$pki/ca.crt" \
    --service-account-key-file="$pki/accounts.pub" --service-account-signing-key-file="$pki/accounts.key" \
    --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=Node,RBAC \
    --allow-privileged=true --endpoint-reconciler-type=none --kubelet-client-certificate="$pki/admin.crt" \
    --kubelet-client-key="$pki/admin.key" --kubelet-preferred-address-types=InternalIP \
    --audit-policy-file="$dir/audit.yaml" --audit-log-path="$dir/run/audit.log"
  until_true 90 kubectl --kubeconfig="$config" get --raw /readyz || fail "the API server does not come up: $(tail -n 2 "$dir/run/apiserver.log")"
  started controllers "$bin/kube-controller-manager" --kubeconfig="$config" --bind-address=127.0.0.1 --secure-port=$((26643 + number)) --leader-elect=false \
    --service-account-private-key-file="$pki/accounts.key" --root-ca-file="$pki/ca.crt"
  started scheduler "$bin/kube-scheduler" --kubeconfig="$config" --bind-address=127.0.0.1 --secure-port=$((26743 + number)) --leader-elect=false
  until_true 60 kubectl --kubeconfig="$config" get serviceaccount default || fail 'the controllers do not come up'
}

containerd_debian() { # containerd_debian FOLDER: settings of containerd 1.6
  cat <<TOML
version = 2
root = "$1/containerd"
state = "$1/state"
[grpc]
  address = "$1/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "swefarm.test/pause:1"
  # For machines where root may not lower the OOM score, as in many containers.
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$1/cni"
TOML
}

containerd_containerd() { # containerd_containerd FOLDER BIN: the same for containerd 2
  cat <<TOML
version = 3
root = "$1/containerd"
state = "$1/state"
[grpc]
  address = "$1/containerd.sock"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "swefarm.test/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "$2/containerd/runc"
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "$1/cni"
TOML
}

node() { # node BIN NUMBER
  local bin=$1 name=node$2 address=$net.$2.1 at=$dir/node$2 controller file
  mkdir -p "$at/cni" "$at/root"
  for controller in cpu cpuacct cpuset memory pids devices freezer blkio systemd; do
    [ ! -d "/sys/fs/cgroup/$controller" ] || mkdir -p "/sys/fs/cgroup/$controller/$group$name"
  done
  for file in cpuset.cpus cpuset.mems; do
    [ ! -e "/sys/fs/cgroup/cpuset/$file" ] || cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$group$name/$file"
  done
  ip link show "$bridge" >/dev/null 2>&1 || ip link add "$bridge" type bridge
  ip address replace "$address/16" dev "$bridge"
  ip link set "$bridge" up
  # Without this rule pods could not reach each other if an engine has set the policy of forwarding to DROP.
  iptables -C FORWARD -i "$bridge" -o "$bridge" -j ACCEPT 2>/dev/null || iptables -I FORWARD -i "$bridge" -o "$bridge" -j ACCEPT
  cat >"$at/cni/10-bridge.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "swefarm", "plugins": [{"type": "bridge", "bridge": "$bridge", "isGateway": false, "ipam": {"type": "host-local",
 "dataDir": "$at/ipam", "routes": [{"dst": "0.0.0.0/0"}],
 "ranges": [[{"subnet": "$net.0.0/16", "rangeStart": "$net.$2.10", "rangeEnd": "$net.$2.250", "gateway": "$address"}]]}}]}
JSON
  "containerd_$engine" "$at" "$bin" >"$at/containerd.toml"
  local daemon=containerd path=$PATH
  # The shim, ctr and runc come from the same folder.
  if [ "$engine" = containerd ]; then
    path=$bin/containerd:$PATH
    daemon=$bin/containerd/containerd
  fi
  PATH=$path started "containerd$2" "$daemon" -c "$at/containerd.toml"
  until_true 30 ctr -a "$at/containerd.sock" version || fail "containerd of $name does not come up: $(tail -n 2 "$dir/run/containerd$2.log")"
  cat >"$at/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $address
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $dir/pki/ca.crt}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$group$name
containerRuntimeEndpoint: unix://$at/containerd.sock
failSwapOn: false
failCgroupV1: false
healthzPort: 0
makeIPTablesUtilChains: false
oomScoreAdj: 0
podLogsDir: $at/logs
resolvConf: ""
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
featureGates: {KubeletInUserNamespace: true}
syncFrequency: 5s
nodeStatusUpdateFrequency: 4s
YAML
  started "kubelet$2" "$bin/kubelet" --config="$at/kubelet.yaml" --kubeconfig="$config" --root-dir="$at/root" --hostname-override="$name" \
    --node-ip="$address" --cert-dir="$at/pki"
}

pause_image() { # a process that waits, in an image of the machine's own busybox
  local root=$dir/pause
  mkdir -p "$root/bin"
  cp /bin/busybox "$root/bin/sh"
  ln -sfn sh "$root/bin/sleep"
  python3 "$here/archive.py" "$root" "$dir/pause.tar" swefarm.test/pause:1 /bin/sh -c 'trap "exit 0" TERM; while :; do sleep 3600 & wait; done'
}

images() { # images ARCHIVE...: to all nodes
  local socket archive
  for socket in "$dir"/node*/containerd.sock; do
    for archive in "$@"; do ctr -a "$socket" -n k8s.io images import "$archive" >/dev/null; done
  done
}

fakes() { # fakes COUNT
  local bin stage i
  local stages=()
  bin=$(bash "$here/tools.sh" --cached control kwok) || exit 12
  for stage in "$bin"/kwok-stages/*.yaml; do stages+=(--config "$stage"); done
  # The command line has the path of the folder, by which `ended` identifies the process.
  started kwok "$bin/kwok" --kubeconfig="$config" --manage-all-nodes=false --node-lease-duration-seconds=40 --cidr=10.98.0.0/16 \
    --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake "${stages[@]}"
  for i in $(seq "$1"); do
    cat <<YAML
---
apiVersion: v1
kind: Node
metadata: {name: fake$i, annotations: {kwok.x-k8s.io/node: fake}, labels: {type: fake, kubernetes.io/hostname: fake$i}}
spec: {taints: [{key: swefarm.test/fake, effect: NoSchedule}]}
status: {allocatable: {cpu: "32", memory: 64Gi, pods: "110"}, capacity: {cpu: "32", memory: 64Gi, pods: "110"}}
YAML
  done | kubectl --kubeconfig="$config" create -f - >/dev/null
  kubectl --kubeconfig="$config" wait --for=condition=Ready node -l type=fake --timeout=120s >/dev/null || fail 'not every fake node is ready'
}

start() { # start NODES ENGINE
  local bin program i engine=$2
  local parts=(control)
  case $engine in
    debian) ;;
    containerd) parts+=(containerd) ;;
    *) fail "unknown engine of nodes: $engine" ;;
  esac
  bin=$(bash "$here/tools.sh" --cached "${parts[@]}") || exit 12
  for program in etcd containerd ctr runc iptables ip openssl kubectl busybox; do
    command -v "$program" >/dev/null || fail "there is no $program"
  done
  [ "$(id -u)" = 0 ] || fail 'only root can start nodes'
  [ ! -e "$config" ] || fail "$dir contains a cluster: stop it first"
  mkdir -p "$dir"
  echo "$number" >"$dir/number"
  control_plane "$bin"
  pause_image
  for i in $(seq "$1"); do node "$bin" "$i"; done
  images "$dir/pause.tar"
  for i in $(seq "$1"); do
    until_true 90 kubectl --kubeconfig="$config" get node "node$i" || fail "node$i does not join: $(tail -n 2 "$dir/run/kubelet$i.log")"
  done
  kubectl --kubeconfig="$config" wait --for=condition=Ready node --all --timeout=90s >/dev/null || fail 'not every node is ready'
  echo "$config"
}

stop() {
  local file name socket task mount
  for file in "$dir"/run/kubelet*.pid; do name=$(basename "$file" .pid); ended "$name"; done
  for socket in "$dir"/node*/containerd.sock; do
    [ -S "$socket" ] || continue
    for task in $(ctr -a "$socket" -n k8s.io tasks ls -q 2>/dev/null); do ctr -a "$socket" -n k8s.io tasks kill -s 9 "$task" 2>/dev/null || true; done
    sleep 0.5
    for task in $(ctr -a "$socket" -n k8s.io tasks ls -q 2>/dev/null); do ctr -a "$socket" -n k8s.io tasks rm -f "$task" >/dev/null 2>&1 || true; done
  done
  for file in "$dir"/run/containerd*.pid; do name=$(basename "$file" .pid); ended "$name"; done
  # The shim of a task that was not removed in time outlives its containerd.
  for file in /proc/[0-9]*/cmdline; do
    case $(tr '\0' ' ' 2>/dev/null <"$file") in
      *containerd-shim*" -address $dir/"*) name=${file%/cmdline} && { kill -9 "${name#/proc/}" 2>/dev/null || true; } ;;
    esac
  done
  for name in kwok scheduler controllers apiserver etcd; do ended "$name"; done
  awk -v below="$dir/" 'index($2, below) == 1 {print $2}' /proc/mounts | sort -r | while read -r mount; do umount -l "$mount" 2>/dev/null || true; done
  for file in "$dir"/node*/; do
    name=$(basename "$file")
    ip address del "$net.${name#node}.1/16" dev "$bridge" 2>/dev/null || true
    find /sys/fs/cgroup -depth -type d -path "*/$group$name*" -exec rmdir {} + 2>/dev/null || true
  done
  if ! ip -4 address show dev "$bridge" 2>/dev/null | grep -q inet; then
    iptables -D FORWARD -i "$bridge" -o "$bridge" -j ACCEPT 2>/dev/null || true
    ip link del "$bridge" 2>/dev/null || true
  fi
  rm -rf --one-file-system "$dir"
}

case $action in
  start) start "${3:?how many nodes}" "${5:-debian}" ;;
  images) shift 2 && images "$@" ;;
  fakes) fakes "${3:?how many nodes}" ;;
  kubelet-stop) ended "kubelet${3:?which node}" ;;
  stop) stop ;;
  *) fail "unknown action: $action" ;;
esac
