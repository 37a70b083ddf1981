{{/* Pieces that several files share. Each takes (dict "root" $ "component" "watcher") unless it says otherwise. */}}

{{/* What names of objects begin with; takes the root. */}}
{{- define "tutti.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{/* The label app.kubernetes.io/name; takes the root. */}}
{{- define "tutti.name" -}}
{{ .Values.nameOverride | default .Chart.Name }}
{{- end }}

{{/* Labels of everything; takes the root. */}}
{{- define "tutti.labels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
app.kubernetes.io/name: {{ include "tutti.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The selector of one component's pods, which never changes. */}}
{{- define "tutti.selector" -}}
app.kubernetes.io/name: {{ include "tutti.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The metadata of an object of one component. */}}
{{- define "tutti.metadata" -}}
name: {{ include "tutti.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "tutti.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* One image for all services; a digest has precedence over the tag. Takes the root. */}}
{{- define "tutti.image" -}}
{{- $image := .Values.image -}}
{{- if not $image.repository -}}
{{- fail "image.repository: must be set, because no image of Tutti is published. Build one (docker build -t REGISTRY/tutti:TAG .), push it or load it into your nodes (kind load docker-image REGISTRY/tutti:TAG), and install with --set image.registry=REGISTRY,image.repository=tutti,image.tag=TAG (docs/installing.md, Image)" -}}
{{- end -}}
{{- $name := $image.repository -}}
{{- with $image.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" .) $name }}{{ end -}}
{{- if $image.digest -}}
{{ $name }}@{{ $image.digest }}
{{- else -}}
{{ $name }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The metadata of a component's pods. The labels that select them have precedence over the user's. Takes also "values",
     those of the component, and may take "annotations". */}}
{{- define "tutti.pod-metadata" -}}
{{- $global := .root.Values }}
{{- $labels := merge (include "tutti.selector" . | fromYaml) (.values.podLabels | default dict) $global.podLabels $global.commonLabels }}
labels: {{- toYaml $labels | nindent 2 }}
{{- with merge (.annotations | default dict) (.values.podAnnotations | default dict) $global.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every pod has beside its containers and volumes; takes also "values", those of the component. */}}
{{- define "tutti.pod" -}}
priorityClassName: {{ .values.priorityClassName | default .root.Values.priorityClassName }}
enableServiceLinks: false
securityContext: {{- toYaml (.values.podSecurityContext | default .root.Values.podSecurityContext) | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector | default .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := .values.tolerations | default .root.Values.tolerations | default list }}
{{- if .moves }}
{{- range list "node.kubernetes.io/not-ready" "node.kubernetes.io/unreachable" }}
{{- $tolerations = append $tolerations (dict "key" . "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" $.root.Values.nodeLostSeconds) }}
{{- end }}
{{- end }}
{{- with $tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .revision }}
{{ include "tutti.spread" . }}
{{- else }}
{{- with .values.affinity | default .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Replicas on different nodes, and in different zones, as far as there are any, unless the values say otherwise. One
     revision is counted at a time, or old pods would push new ones together. The zone is no second constraint:
     kube-scheduler rates no node that lacks the label of any soft one, so without zones pods would not be spread at all.
     Takes also "revision". */}}
{{- define "tutti.spread" -}}
{{- with .values.topologySpreadConstraints | default .root.Values.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- else }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "tutti.selector" $ | nindent 8 }}
    matchLabelKeys: [{{ $.revision }}]
{{- end }}
{{- with .values.affinity | default .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- else }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: topology.kubernetes.io/zone
          labelSelector:
            matchLabels: {{- include "tutti.selector" $ | nindent 14 }}
          matchLabelKeys: [{{ $.revision }}]
{{- end }}
{{- end }}

{{- define "tutti.container-security" -}}
securityContext: {{- toYaml (.values.containerSecurityContext | default .root.Values.containerSecurityContext) | nindent 2 }}
{{- end }}

{{/* The flags that the values add: after ours, so that they have precedence. */}}
{{- define "tutti.extra-args" -}}
{{- with .values.extraArgs }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* The variables that the values add; those of the component come last and have precedence. */}}
{{- define "tutti.extra-env" -}}
{{- with concat .root.Values.extraEnv (.values.extraEnv | default list) }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Where a service is: the address that it listens on (also where pods have IPv6 only), and its name among replicas. */}}
{{- define "tutti.env" -}}
env:
  - name: POD_IP
    valueFrom:
      fieldRef:
        fieldPath: status.podIP
  - name: POD_UID
    valueFrom:
      fieldRef:
        fieldPath: metadata.uid
  - name: TUTTI_INSTANCE
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  {{- include "tutti.extra-env" . | nindent 2 }}
{{- end }}

{{/* The flags that every service has. */}}
{{- define "tutti.flags" -}}
{{ include "tutti.nats-flags" . }}
- --nats-user={{ .component }}
- --http-host=$(POD_IP)
- --http-port=8080
- --log-format={{ .root.Values.log.format }}
- --log-level={{ .root.Values.log.level }}
{{- $ratio := .root.Values.tracing.ratio }}
{{- with .root.Values.tracing.otlpEndpoint }}
- --otlp-endpoint={{ . }}
- --trace-ratio={{ $ratio }}
{{- end }}
{{- end }}

{{/* How to reach NATS, as this component's own user there. */}}
{{- define "tutti.nats-flags" -}}
- --nats-url={{ include "tutti.nats-url" .root }}
- --nats-credentials=/etc/tutti/nats/seed
{{- if or .root.Values.nats.enabled .root.Values.nats.external.tls }}
- --nats-ca=/etc/tutti/nats/ca.crt
{{- end }}
{{- end }}

{{/* Takes the root. */}}
{{- define "tutti.nats-url" -}}
{{- if .Values.nats.enabled -}}
tls://{{ include "tutti.fullname" . }}-nats.{{ .Release.Namespace }}.svc:4222
{{- else -}}
{{ required "nats.external.url is needed where nats.enabled is false" .Values.nats.external.url }}
{{- end -}}
{{- end }}

{{- define "tutti.scheduler-names" -}}
{{- range .root.Values.schedulerNames }}
- --scheduler-name={{ . }}
{{- end }}
{{- end }}

{{- define "tutti.probes" -}}
ports:
  - name: http
    containerPort: 8080
startupProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 1
  # Many processes that start at once on a busy node took 80 s until they listened, so a slow start is no failure.
  failureThreshold: 300
livenessProbe:
  httpGet:
    path: /healthz
    port: http
  # An event loop that is blocked for this long hangs (shared/runtime/health.py), and would ignore
  # SIGTERM. Both, and a redelivery, fit into the 30 s in which a gang is repaired.
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
  terminationGracePeriodSeconds: 5
readinessProbe:
  httpGet:
    path: /readyz
    port: http
  periodSeconds: 5
  timeoutSeconds: 2
{{- end }}

{{/* Secret with this component's key for NATS. */}}
{{- define "tutti.nats-volume" -}}
- name: nats
  secret:
    secretName: {{ include "tutti.fullname" .root }}-nats-{{ .secret | default .component }}
    defaultMode: 0440
{{- include "tutti.extra-volumes" . }}
{{- end }}

{{/* The volumes that the values add. */}}
{{- define "tutti.extra-volumes" -}}
{{- with .values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tutti.extra-mounts" -}}
{{- with .values.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tutti.nats-mount" -}}
- name: nats
  mountPath: /etc/tutti/nats
  readOnly: true
{{- include "tutti.extra-mounts" . }}
{{- end }}

{{/* The update strategy where all replicas share the work. */}}
{{- define "tutti.rolling" -}}
strategy:
  rollingUpdate:
    maxUnavailable: 0
    maxSurge: 1
{{- end }}

{{/* Sets of consumers for planners: one each, one for the pod that replaces another in an update, and one for a pod that
     a lost node still runs. The same for two and three replicas: NATS learns of new users' subjects a minute late.
     Takes the root. */}}
{{- define "tutti.planner-sets" -}}
{{ max 5 (add 2 (int .Values.planner.replicas)) }}
{{- end }}

{{/* Consumers for webhooks, likewise. Takes the root. */}}
{{- define "tutti.webhook-consumers" -}}
{{ max 3 (int .Values.webhook.replicas) }}
{{- end }}

{{/* Consumers for API services, likewise. Takes the root. */}}
{{- define "tutti.api-consumers" -}}
{{ max 3 (int .Values.api.replicas) }}
{{- end }}

{{/* Replicas that must not be disrupted together; takes also "replicas". */}}
{{- define "tutti.disruption-budget" -}}
{{- if and .root.Values.podDisruptionBudget.enabled (gt (int .replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{- include "tutti.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .root.Values.podDisruptionBudget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "tutti.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* Ceilings of durations: the planner applies them, the webhook warns with them. */}}
{{- define "tutti.longest" -}}
{{- with .Values.planner -}}
- --repair-deadline-s-max={{ .repairDeadlineSecondsMax }}
- --hold-s-max={{ .holdSecondsMax }}
- --reserve-s-max={{ .reserveSecondsMax }}
- --minimum-run-s-max={{ .minimumRunSecondsMax }}
{{- end }}
{{- end }}
