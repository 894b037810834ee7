{{/* Name of the release, at the beginning of all names. */}}
{{- define "swefarm.name" -}}
{{- if contains "swefarm" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-swefarm" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{/* Labels that select the pods of one part: (list . "worker"). */}}
{{- define "swefarm.selector" -}}
app.kubernetes.io/name: swefarm
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "swefarm.match" -}}
matchLabels: {{- include "swefarm.selector" . | nindent 2 }}
{{- end }}

{{/* Name and labels of a resource of one part: (list . "worker"). */}}
{{- define "swefarm.metadata" -}}
name: {{ include "swefarm.name" (index . 0) }}-{{ index . 1 }}
labels: {{- include "swefarm.labels" . | nindent 2 }}
{{- end }}

{{- define "swefarm.labels" -}}
{{ include "swefarm.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{/* Image of a part of the farm: (list . "worker"). */}}
{{- define "swefarm.image" -}}
{{- $root := index . 0 }}{{ $part := index . 1 }}{{ $image := $root.Values.image -}}
{{- $name := index $image $part -}}
{{- if $image.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" $image.registry) $name }}{{ end -}}
{{- with index $image.digests $part }}{{ printf "%s@%s" $name . }}{{ else }}{{ printf "%s:%s" $name ($image.tag | default $root.Chart.AppVersion) }}{{ end -}}
{{- end }}

{{- define "swefarm.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Bytes of a Kubernetes quantity. */}}
{{- define "swefarm.bytes" -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9.]+" $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- if not (hasKey $units $unit) }}{{ fail (printf "%s is no amount of memory: write 512Mi or 8Gi" $text) }}{{ end -}}
{{- mulf (float64 $number) (index $units $unit) | floor | int64 -}}
{{- end }}

{{/* CPUs of a Kubernetes quantity. */}}
{{- define "swefarm.cpus" -}}
{{- $text := toString . -}}
{{- if hasSuffix "m" $text }}{{ divf (float64 (trimSuffix "m" $text)) 1000 }}{{ else }}{{ float64 $text }}{{ end -}}
{{- end }}

{{/* URL of the farm's Redis: the chart's own, or redis.external.url. */}}
{{- define "swefarm.redisUrl" -}}
{{- if .Values.redis.enabled -}}
redis://{{ .Values.redis.address | default (printf "%s-redis.%s.svc" (include "swefarm.name" .) .Release.Namespace) }}:{{ .Values.redis.port }}
{{- else -}}
{{- required "redis.external.url: needed when redis.enabled is false" .Values.redis.external.url -}}
{{- end -}}
{{- end }}

{{/* Environment with which a part connects to Redis: (list . "worker"). */}}
{{- define "swefarm.redisEnv" -}}
{{- $root := index . 0 }}{{ $part := index . 1 }}{{ $redis := $root.Values.redis }}{{ $external := $redis.external -}}
- { name: SWEFARM_REDIS_URL, value: {{ include "swefarm.redisUrl" $root | quote }} }
{{- if $redis.enabled }}
- name: SWEFARM_REDIS_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ $redis.passwordSecret | default (printf "%s-redis" (include "swefarm.name" $root)) }}, key: password } }
{{- else }}
{{- $secret := $external.workerSecret }}
{{- if eq $part "gateway" }}{{ $secret = $external.gatewaySecret | default $secret }}{{ end }}
{{- with $secret }}
- name: SWEFARM_REDIS_USERNAME
  valueFrom: { secretKeyRef: { name: {{ . }}, key: username } }
- name: SWEFARM_REDIS_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ . }}, key: password } }
{{- end }}
{{- with $external.sentinelSecret }}
- name: SWEFARM_REDIS_SENTINEL_USERNAME
  valueFrom: { secretKeyRef: { name: {{ . }}, key: username, optional: true } }
- name: SWEFARM_REDIS_SENTINEL_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ . }}, key: password } }
{{- end }}
{{- if $external.tlsSecret }}
- { name: SWEFARM_REDIS_TLS_CA, value: /etc/swefarm/redis-tls/ca.crt }
{{- if $external.clientCertificate }}
- { name: SWEFARM_REDIS_TLS_CERT, value: /etc/swefarm/redis-tls/tls.crt }
- { name: SWEFARM_REDIS_TLS_KEY, value: /etc/swefarm/redis-tls/tls.key }
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "swefarm.redisTlsMount" -}}
{{- if and (not .Values.redis.enabled) .Values.redis.external.tlsSecret }}
- { name: redis-tls, mountPath: /etc/swefarm/redis-tls, readOnly: true }
{{- end }}
{{- end }}
{{- define "swefarm.redisTlsVolume" -}}
{{- if and (not .Values.redis.enabled) .Values.redis.external.tlsSecret }}
- name: redis-tls
  secret: { secretName: {{ .Values.redis.external.tlsSecret }}, defaultMode: 0444 }
{{- end }}
{{- end }}

{{/* A secret with a random value, which is generated at the first install and not changed later: (list . "redis" KEY). */}}
{{- define "swefarm.kept" }}
{{- $root := index . 0 }}{{ $key := index . 2 }}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace (printf "%s-%s" (include "swefarm.name" $root) (index . 1)) }}
apiVersion: v1
kind: Secret
metadata: {{- include "swefarm.metadata" . | nindent 2 }}
data:
  {{ $key }}: {{ if and $found (hasKey ($found.data | default dict) $key) }}{{ index $found.data $key }}{{ else }}{{ randAlphaNum 40 | b64enc }}{{ end }}
---
{{- end }}

{{/* Beginning of the specification of a pod: (dict "root" . "account" "worker" "own" VALUES "sandboxes" true). */}}
{{- define "swefarm.podStart" }}
{{- $runtime := .root.Values.runtime }}
      serviceAccountName: {{ include "swefarm.name" .root }}-{{ .account }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- include "swefarm.pullSecrets" .root | nindent 6 }}
      {{- if and .sandboxes (has $runtime.mode (list "rootfs-userns" "podman")) }}
      hostUsers: false
      {{- end }}
      {{- if .own.hostNetwork }}
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      {{- end }}
      {{- if and .sandboxes $runtime.className }}
      runtimeClassName: {{ $runtime.className }}
      {{- end }}
      {{- with .own.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
{{- end }}

{{/* Nodes for a pod, from the values of its part. */}}
{{- define "swefarm.placement" }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}
{{- with index $ $key }}
      {{ $key }}: {{- toYaml . | nindent 8 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Distributes the pods of a part over nodes: (list . "worker"). */}}
{{- define "swefarm.spread" }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: {{- include "swefarm.match" . | nindent 12 }}
{{- end }}

{{/* Number of pods that a voluntary disruption may end at once: (list . "worker" NUMBER). */}}
{{- define "swefarm.budget" }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{- include "swefarm.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ index . 2 }}
  selector: {{- include "swefarm.match" . | nindent 4 }}
{{- end }}
