{{/* Sidecar with the engine, for podman and docker. Starts before the worker, ends after it (restartPolicy of an init container). */}}
{{- define "swefarm.engine" -}}
{{- $mode := .Values.runtime.mode -}}
{{- if eq $mode "podman" -}}
# A folder of the node belongs to root. This container creates a folder in it that belongs to the engine's user.
- name: podman-store
  image: {{ .Values.runtime.podman.image }}
  command: [sh, -c, "mkdir -p /store/podman && chown 1000:1000 /store/podman && chmod 00700 /store/podman"]
  securityContext:
    runAsUser: 0
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities: { drop: [ALL], add: [CHOWN, FOWNER] }
    seccompProfile: { type: RuntimeDefault }
  resources: { requests: { cpu: 10m, memory: 16Mi }, limits: { cpu: 100m, memory: 64Mi } }
  volumeMounts:
    - { name: store, mountPath: /store }
- name: podman
  image: {{ .Values.runtime.podman.image }}
  restartPolicy: Always
  # Two engines must not use one store, so the engine of a new pod waits until that of the old pod has ended. The empty runtime folder
  # tells the next engine that containers of a killed engine no longer run. Process 1 reaps processes that Podman leaves.
  command:
    - sh
    - -c
    - |
      {{- include "swefarm.lockStore" "/store/podman" | nindent 6 }}
      rm -rf "$XDG_RUNTIME_DIR" /run/engine/podman.sock
      mkdir -p -m 0700 "$XDG_RUNTIME_DIR" /store/podman/tmp
      podman system service --time=0 unix:///run/engine/podman.sock 9>&- &
      trap 'kill -TERM $!' TERM INT
      while kill -0 $! 2>/dev/null; do wait $! && status=0 || status=$?; done
      exit $status
  env:
    - { name: HOME, value: /home/podman }
    - { name: XDG_RUNTIME_DIR, value: /home/podman/run }
    # Replaces the image's settings: quay.io/podman/stable needs FUSE, disables limits of containers, and mounts its own /proc in them.
    - { name: CONTAINERS_CONF, value: /etc/swefarm/podman/containers.conf }
    - { name: CONTAINERS_STORAGE_CONF, value: /etc/swefarm/podman/storage.conf }
  startupProbe:
    exec: { command: [podman, --url, "unix:///run/engine/podman.sock", version] }
    periodSeconds: 2
    timeoutSeconds: 10
    failureThreshold: 90
  securityContext:
    runAsUser: 1000
    runAsGroup: 1000
    runAsNonRoot: true
    readOnlyRootFilesystem: true
    # newuidmap and newgidmap gain these two to write the maps of the user namespace.
    allowPrivilegeEscalation: true
    capabilities: { drop: [ALL], add: [SETUID, SETGID] }
    procMount: Unmasked
    seccompProfile: { type: Unconfined }
    {{- with .Values.runtime.appArmor }}
    appArmorProfile: {{- include "swefarm.profile" . | nindent 6 }}
    {{- end }}
  resources: {{- toYaml .Values.runtime.podman.resources | nindent 4 }}
  volumeMounts:
    - { name: engine, mountPath: /run/engine }
    - { name: engine-config, mountPath: /etc/swefarm/podman, readOnly: true }
    - { name: engine-home, mountPath: /home/podman }
    - { name: store, mountPath: /store }
    - { name: tmp, mountPath: /tmp }
    - { name: tmp, mountPath: /var/tmp }
{{- else if eq $mode "docker" -}}
- name: docker
  image: {{ .Values.runtime.docker.image }}
  restartPolicy: Always
  # In cgroup v2 only groups without children may have processes: Docker's processes move to a child group, rollouts get another within
  # the container's group. Process 1 reaps processes that Docker leaves.
  command:
    - sh
    - -c
    - |
      if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        own=${own%/}
        group=/sys/fs/cgroup$own
        mkdir -p "$group/engine"
        for pid in $(cat "$group/cgroup.procs"); do echo "$pid" >"$group/engine/cgroup.procs" || :; done
        for one in $(cat "$group/cgroup.controllers"); do echo "+$one" >"$group/cgroup.subtree_control" || :; done
        set -- "$@" --exec-opt=native.cgroupdriver=cgroupfs "--cgroup-parent=$own/docker"
      fi
      {{- include "swefarm.lockStore" "/var/lib/docker" | nindent 6 }}
      exec "$(command -v docker-init || command -v tini)" -- sh -c 'exec "$@" 9>&-' sh dockerd "$@"
    - dockerd
  args: ["--host=unix:///run/engine/docker.sock", --exec-root=/run/docker, --pidfile=/run/docker.pid]
  startupProbe:
    exec: { command: [docker, -H, "unix:///run/engine/docker.sock", version] }
    periodSeconds: 2
    failureThreshold: 60
  securityContext:
    privileged: true
    runAsUser: 0
    readOnlyRootFilesystem: false
    seccompProfile: { type: Unconfined }
  resources: {{- toYaml .Values.runtime.docker.resources | nindent 4 }}
  volumeMounts:
    - { name: engine, mountPath: /run/engine }
    - { name: store, mountPath: /var/lib/docker }
{{- end }}
{{- end }}

{{/* Shell: waits until no engine of another pod uses this folder, and locks it while descriptor 9 is open. Without flock: no lock. */}}
{{- define "swefarm.lockStore" -}}
exec 9>{{ . }}/swefarm.lock
if command -v flock >/dev/null; then
  flock -n 9 || {
    echo "another pod's engine uses this store: waiting for its end; releases on one node need different worker.store.path" >&2
    flock 9
  }
fi
{{- end }}

{{/* Settings of the engine beside the worker. */}}
{{- define "swefarm.podmanConfig" -}}
containers.conf: |
  [containers]
  default_sysctls = []
  [engine]
  cgroup_manager = "cgroupfs"
  events_logger = "file"
  # Each exec leaves two processes for so many seconds, by default 300. Afterwards its exit code cannot be read.
  exit_command_delay = 10
  # Layers of images are larger than /var/tmp.
  image_copy_tmp_dir = "/store/podman/tmp"
storage.conf: |
  [storage]
  driver = "overlay"
  graphroot = "/store/podman/storage"
  rootless_storage_path = "/store/podman/storage"
  runroot = "/home/podman/run/storage"
{{- end }}
