{{/* Parts of the pods of workers and of prepull. */}}

{{/* securityContext of the container that runs sandboxes or uses the engine. */}}
{{- define "swefarm.workerSecurity" -}}
{{- $mode := .Values.runtime.mode -}}
readOnlyRootFilesystem: true
{{- if or (eq $mode "rootfs") (eq $mode "rootfs-userns") }}
runAsUser: 0
# SYS_ADMIN and NET_ADMIN: mounts, namespaces, their networks. The others: programs that run as root, and entering a sandbox.
capabilities:
  drop: [ALL]
  add: [SYS_ADMIN, NET_ADMIN, SYS_CHROOT, AUDIT_READ, CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, NET_BIND_SERVICE, SETFCAP, SETGID, SETPCAP, SETUID]
seccompProfile: {{- include "swefarm.profile" .Values.runtime.seccomp | nindent 2 }}
{{- with .Values.runtime.appArmor }}
appArmorProfile: {{- include "swefarm.profile" . | nindent 2 }}
{{- end }}
{{- if eq $mode "rootfs-userns" }}
procMount: Unmasked
{{- end }}
{{- else }}
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- if eq $mode "podman" }}
runAsUser: 1000
runAsGroup: 1000
runAsNonRoot: true
{{- else }}
runAsUser: 0
{{- end }}
{{- end }}
{{- end }}

{{/* Refuses values that the cluster would ignore silently or refuse later, or for which it would end pods. */}}
{{- define "swefarm.checkRuntime" -}}
{{- $mode := .Values.runtime.mode }}{{ $worker := .Values.worker -}}
{{- if has $mode (list "rootfs-userns" "podman") }}
{{- if semverCompare "<1.33.0-0" .Capabilities.KubeVersion.Version }}{{ fail (printf "runtime.mode: %s needs Kubernetes 1.33 (this is %s): an older one may drop hostUsers and give the pod the node's users; take another mode" $mode .Capabilities.KubeVersion.Version) }}{{ end }}
{{- include "swefarm.checkNodes" . }}
{{- if $worker.hostNetwork }}{{ fail (printf "worker.hostNetwork: a pod with users of its own (runtime.mode %s) cannot have the node's network" $mode) }}{{ end }}
{{- end }}
{{- $limit := 0 }}
{{- $parts := list $worker.resources }}
{{- if has $mode (list "podman" "docker") }}{{ $parts = append $parts (index .Values.runtime $mode).resources }}{{ end }}
{{- range $parts }}{{ with (.limits | default dict) }}{{ with index . "ephemeral-storage" }}{{ $limit = add $limit (include "swefarm.bytes" . | int64) }}{{ end }}{{ end }}{{ end }}
{{- $held := include "swefarm.bytes" $worker.scratch.size | int64 }}
{{- if and (eq $worker.store.type "emptyDir") (ne $mode "node") $worker.store.size }}{{ $held = add $held (include "swefarm.bytes" $worker.store.size | int64) }}{{ end }}
{{- if and (gt (int64 $limit) 0) (lt (int64 $limit) (int64 $held)) }}{{ fail "worker.resources.limits.ephemeral-storage: scratch and an emptyDir store count for it, and the kubelet ends a pod that passes it; give at least worker.scratch.size and worker.store.size together, or no such limit" }}{{ end }}
{{- end }}

{{/* Fails if no node that fits supports user namespaces with its default runtime. Without a cluster (helm template) it checks nothing. */}}
{{- define "swefarm.checkNodes" -}}
{{- if and .Values.runtime.checkNodes (not .Values.runtime.className) }}
{{- $able := false }}{{ $unable := list }}{{ $wanted := .Values.worker.nodeSelector | default dict }}
{{- range (lookup "v1" "Node" "" "").items }}
{{- $node := . }}{{ $fits := true }}{{ $can := false }}
{{- range $key, $value := $wanted }}{{ if ne (toString (get ($node.metadata.labels | default dict) $key)) (toString $value) }}{{ $fits = false }}{{ end }}{{ end }}
{{- range ($node.status.runtimeHandlers | default list) }}{{ if and (not .name) (dig "features" "userNamespaces" false .) }}{{ $can = true }}{{ end }}{{ end }}
{{- if and $fits $can }}{{ $able = true }}{{ else if $fits }}{{ $unable = append $unable (printf "%s has %s" $node.metadata.name $node.status.nodeInfo.containerRuntimeVersion) }}{{ end }}
{{- end }}
{{- if and $unable (not $able) }}{{ fail (printf "runtime.mode: %s needs nodes that give pods users of their own (containerd 2.0 with runc 1.2, or CRI-O 1.25 or later, and Linux 6.3), and none does: %s; take another mode, or have the nodes upgraded" .Values.runtime.mode (join ", " (slice $unable 0 (min 5 (len $unable))))) }}{{ end }}
{{- end }}
{{- end }}

{{/* A profile of seccomp or AppArmor. */}}
{{- define "swefarm.profile" -}}
{{- if eq . "Unconfined" -}}
type: Unconfined
{{- else -}}
type: Localhost
localhostProfile: {{ . }}
{{- end }}
{{- end }}

{{/* Environment of the runtime: its kind, folders and sockets, and the resources for rollouts. */}}
{{- define "swefarm.runtimeEnv" -}}
{{- $mode := .Values.runtime.mode -}}
{{- $below := ternary "/work" "" (eq $mode "podman") -}}
- { name: SWEFARM_CONFIG, value: /etc/swefarm/config.yaml }
- { name: SWEFARM_SCRATCH_DIR, value: {{ printf "/scratch%s" $below | quote }} }
- { name: SWEFARM_IMAGES_DIR, value: {{ printf "/store%s" $below | quote }} }
- { name: HOME, value: /home/worker }
- { name: SWEFARM_STATE_DIR, value: {{ ternary "/home/worker/state" "/home/worker" (eq $mode "podman") }} }
{{- if has $mode (list "podman" "docker") }}
- { name: SWEFARM_RUNTIME, value: {{ $mode }} }
- { name: {{ printf "SWEFARM_%s_SOCKET" (upper $mode) }}, value: /run/engine/{{ $mode }}.sock }
{{- else if eq $mode "node" }}
- { name: SWEFARM_RUNTIME, value: {{ .Values.runtime.node.engine }} }
- { name: {{ printf "SWEFARM_%s_SOCKET" (upper .Values.runtime.node.engine) }}, value: /run/engine/engine.sock }
{{- else }}
- { name: SWEFARM_RUNTIME, value: rootfs }
# The pod has no engine, so the worker must not ask one for images.
- { name: SWEFARM_DOCKER_SOCKET, value: /run/no-engine.sock }
{{- end }}
{{- with .Values.worker.imageMirrors }}
- { name: SWEFARM_IMAGE_MIRRORS, value: {{ join "," . | quote }} }
{{- end }}
- name: SWEFARM_NODE
  valueFrom: { fieldRef: { fieldPath: spec.nodeName } }
{{- if and .Values.image.pullSecrets (not (hasPrefix "rootfs" $mode)) }}
{{- $files := list }}{{ range $at, $_ := .Values.image.pullSecrets }}{{ $files = append $files (printf "/etc/swefarm/registry/%d.json" $at) }}{{ end }}
- { name: SWEFARM_REGISTRY_AUTH, value: {{ join "," $files | quote }} }
{{- end }}
{{- if ne $mode "node" }}
{{- /* Rollouts run in the sidecar, if there is one. */}}
{{- $limits := (ternary (index .Values.runtime $mode) .Values.worker (has $mode (list "podman" "docker"))).resources.limits }}
{{- $own := ternary (include "swefarm.bytes" .Values.worker.ownMemory | int64) 0 (hasPrefix "rootfs" $mode) }}
{{- $left := sub (include "swefarm.bytes" (required "a memory limit is needed where rollouts run" $limits.memory) | int64) $own }}
{{- if lt (int64 $left) 268435456 }}{{ fail (printf "worker.resources.limits.memory (%s) leaves less than 256Mi for rollouts beside worker.ownMemory (%s)" (toString $limits.memory) .Values.worker.ownMemory) }}{{ end }}
- { name: SWEFARM_NODE_MEMORY_BYTES, value: {{ $left | quote }} }
- { name: SWEFARM_NODE_CPUS, value: {{ include "swefarm.cpus" (required "a CPU limit is needed where rollouts run" $limits.cpu) | float64 | ceil | int | quote }} }
{{- end }}
{{- with .Values.worker.concurrency }}
- { name: SWEFARM_CONCURRENCY, value: {{ . | quote }} }
{{- end }}
{{- end }}

{{/* Volume mounts of the worker and of prepull. */}}
{{- define "swefarm.workerMounts" -}}
- { name: config, mountPath: /etc/swefarm/config.yaml, subPath: config.yaml, readOnly: true }
- { name: home, mountPath: /home/worker }
- { name: tmp, mountPath: /tmp }
- { name: scratch, mountPath: /scratch }
- { name: {{ ternary "store" "images" (hasPrefix "rootfs" .Values.runtime.mode) }}, mountPath: /store }
{{- if not (hasPrefix "rootfs" .Values.runtime.mode) }}
- { name: engine, mountPath: {{ ternary "/run/engine/engine.sock" "/run/engine" (eq .Values.runtime.mode "node") }} }
{{- if .Values.image.pullSecrets }}
- { name: registry-auth, mountPath: /etc/swefarm/registry, readOnly: true }
{{- end }}
{{- end }}
{{- with .Values.worker.archives }}
- { name: archives, mountPath: /archives, readOnly: true }
{{- end }}
{{- include "swefarm.redisTlsMount" . }}
{{- end }}

{{- define "swefarm.workerVolumes" -}}
- name: config
  configMap: { name: {{ include "swefarm.name" . }}-worker }
- name: home
  emptyDir: { sizeLimit: 1Gi }
- name: tmp
  emptyDir: { sizeLimit: 1Gi }
- name: scratch
  emptyDir: { sizeLimit: {{ .Values.worker.scratch.size }} }
{{- if ne .Values.runtime.mode "node" }}
- name: store
  {{- with .Values.worker.store }}
  {{- if eq .type "hostPath" }}
  hostPath: { path: {{ .path }}, type: DirectoryOrCreate }
  {{- else if eq .type "claim" }}
  persistentVolumeClaim: { claimName: {{ required "worker.store.claim: needed for type claim" .claim }} }
  {{- else }}
  emptyDir: {{ if .size }}{ sizeLimit: {{ .size }} }{{ else }}{}{{ end }}
  {{- end }}
  {{- end }}
{{- end }}
{{- if eq .Values.runtime.mode "node" }}
- name: engine
  hostPath: { path: {{ .Values.runtime.node.socket }}, type: Socket }
{{- else if not (hasPrefix "rootfs" .Values.runtime.mode) }}
- name: engine
  emptyDir: { sizeLimit: 1Mi }
{{- end }}
{{- if eq .Values.runtime.mode "podman" }}
- name: engine-config
  configMap: { name: {{ include "swefarm.name" . }}-podman }
- name: engine-home
  emptyDir: { sizeLimit: 1Gi }
{{- end }}
{{- if not (hasPrefix "rootfs" .Values.runtime.mode) }}
- name: images
  emptyDir: { sizeLimit: 1Gi }
{{- with .Values.image.pullSecrets }}
- name: registry-auth
  projected:
    defaultMode: 0444
    sources:
      {{- range $at, $name := . }}
      - secret: { name: {{ $name }}, items: [{ key: .dockerconfigjson, path: {{ $at }}.json }] }
      {{- end }}
{{- end }}
{{- end }}
{{- with .Values.worker.archives }}
- name: archives
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "swefarm.redisTlsVolume" . }}
{{- end }}
