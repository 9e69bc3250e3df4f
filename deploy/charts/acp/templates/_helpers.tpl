{{- define "acp.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "acp.portal.name" -}}{{ include "acp.fullname" . }}-portal{{- end }}
{{- define "acp.adapter.name" -}}{{ include "acp.fullname" . }}-adapter{{- end }}
{{- define "acp.collector.name" -}}{{ include "acp.fullname" . }}-flow-collector{{- end }}
{{- define "acp.webhook.name" -}}{{ include "acp.adapter.name" . }}-webhook{{- end }}
{{- define "acp.claim.name" -}}{{ .Values.persistence.existingClaim | default (printf "%s-data" (include "acp.fullname" .)) }}{{- end }}

{{- define "acp.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: acp
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Labels by which the pods of a program are selected: (list $ "portal"). */ -}}
{{- define "acp.selector" -}}
app.kubernetes.io/name: acp-{{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{- /* The image of a program: (list $ .Values.portal.image). */ -}}
{{- define "acp.image" -}}
{{- $all := (index . 0).Values.image }}
{{- $own := index . 1 }}
{{- $name := printf "%s/%s" ($own.registry | default $all.registry) $own.repository }}
{{- if $own.digest }}
{{- printf "%s@%s" $name $own.digest }}
{{- else }}
{{- printf "%s:%s" $name ($own.tag | default $all.tag | default (index . 0).Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* What the host of an https URL is, without its port. */ -}}
{{- define "acp.host" -}}
{{- regexReplaceAll ":[0-9]+$" (trimSuffix "/" (trimPrefix "https://" .Values.portal.publicURL)) "" }}
{{- end }}

{{- define "acp.usesPostgreSQL" -}}{{ if or .Values.portal.database.url .Values.portal.database.existingSecret }}true{{ end }}{{- end }}
{{- define "acp.usesClickHouse" -}}{{ if or .Values.flowStore.url .Values.flowStore.existingSecret }}true{{ end }}{{- end }}
{{- /* Whether portal and collector share the file of the flow store. */ -}}
{{- define "acp.sharesVolume" -}}{{ if and .Values.collector.enabled (not (include "acp.usesClickHouse" .)) }}true{{ end }}{{- end }}
{{- define "acp.needsVolume" -}}{{ if or (not (include "acp.usesPostgreSQL" .)) (include "acp.sharesVolume" .) }}true{{ end }}{{- end }}

{{- define "acp.portal.hasCertificate" -}}{{ if ne .Values.portal.tls.mode "proxy" }}true{{ end }}{{- end }}
{{- define "acp.portal.tlsSecret" -}}
{{- if eq .Values.portal.tls.mode "existingSecret" }}{{ .Values.portal.tls.existingSecret }}{{ else }}{{ include "acp.portal.name" . }}-tls{{ end }}
{{- end }}
{{- define "acp.webhook.tlsSecret" -}}
{{- if eq .Values.adapter.webhook.tls.mode "existingSecret" }}{{ .Values.adapter.webhook.tls.existingSecret }}{{ else }}{{ include "acp.webhook.name" . }}-tls{{ end }}
{{- end }}
{{- define "acp.webhook.enabled" -}}{{ if and .Values.adapter.enabled .Values.adapter.webhook.enabled }}true{{ end }}{{- end }}

{{- /* Whether KubeFed is told of the kinds. */ -}}
{{- define "acp.federatedTypes" -}}
{{- if eq .Values.kubefed.types "always" }}true
{{- else if and (eq .Values.kubefed.types "auto") (.Capabilities.APIVersions.Has "core.kubefed.io/v1beta1") }}true
{{- end }}
{{- end }}

{{- /*
A certificate of the chart's own, as the data of a Secret: (dict "root" $ "secret" NAME "names" LIST). It is kept as long as the names are the same. Without a
cluster to look into (helm template), each rendering makes another one.
*/ -}}
{{- define "acp.certificate" -}}
{{- $names := join "," .names }}
{{- $found := lookup "v1" "Secret" .root.Release.Namespace .secret | default dict }}
{{- $annotations := (($found.metadata | default dict).annotations | default dict) }}
{{- $data := $found.data | default dict }}
{{- if and (index $data "tls.crt") (index $data "tls.key") (index $data "ca.crt") (eq (index $annotations "acp.io/certificate-names" | default "") $names) }}
{{- dict "ca.crt" (index $data "ca.crt") "tls.crt" (index $data "tls.crt") "tls.key" (index $data "tls.key") | toJson }}
{{- else }}
{{- $ips := list }}
{{- range .names }}{{ if regexMatch "^[0-9.]+$" . }}{{ $ips = append $ips . }}{{ end }}{{ end }}
{{- $ca := genCA (printf "%s CA" .secret) 3650 }}
{{- $cert := genSignedCert (first .names) $ips .names 3650 $ca }}
{{- dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $cert.Cert) "tls.key" (b64enc $cert.Key) | toJson }}
{{- end }}
{{- end }}

{{- /* What all pods have: (list $ .Values.portal "portal"). */ -}}
{{- define "acp.pod" -}}
{{- $root := index . 0 }}
{{- $values := index . 1 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
enableServiceLinks: false
terminationGracePeriodSeconds: 30
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and $root.Values.topologySpread.enabled (gt (int $values.replicas) 1) }}
topologySpreadConstraints:
  {{- range $root.Values.topologySpread.topologyKeys }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: {{ $root.Values.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "acp.selector" (list $root (index $ 2)) | nindent 8 }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "acp.container" -}}
{{- $root := index . 0 }}
{{- $values := index . 1 }}
image: {{ include "acp.image" (list $root $values.image) | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
startupProbe: # five minutes, for migrations and first lists
  httpGet: {path: /startupz, port: health}
  periodSeconds: 2
  failureThreshold: 150
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
  timeoutSeconds: 3
livenessProbe:
  httpGet: {path: /livez, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
resources:
  {{- toYaml $values.resources | nindent 2 }}
{{- end }}

{{- /* Environment of all containers: (list $ .Values.portal). */ -}}
{{- define "acp.env" -}}
- name: GOMEMLIMIT
  valueFrom:
    resourceFieldRef:
      resource: limits.memory
{{- if (index . 0).Values.extraCAs }}
- name: SSL_CERT_DIR
  value: /etc/ssl/certs:/etc/acp-cas
{{- end }}
{{- with (index . 1).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Settings of tracing, which the portal and the adapter have: . */ -}}
{{- define "acp.tracing.settings" -}}
{{- with .Values.tracing }}
{{- if .endpoint }}
tracing-endpoint: {{ .endpoint | quote }}
{{- if .insecure }}
tracing-insecure: true
{{- end }}
{{- if ne (float64 .sampleRatio) 1.0 }}
tracing-sample-ratio: {{ .sampleRatio }}
{{- end }}
{{- if .existingSecret }}
tracing-headers-file: /etc/acp-tracing/{{ .secretKey }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "acp.tracing.mount" -}}
{{- if and .Values.tracing.endpoint .Values.tracing.existingSecret }}
- name: tracing
  mountPath: /etc/acp-tracing
  readOnly: true
{{- end }}
{{- end }}

{{- define "acp.tracing.volume" -}}
{{- if and .Values.tracing.endpoint .Values.tracing.existingSecret }}
- name: tracing
  secret: {secretName: {{ .Values.tracing.existingSecret }}}
{{- end }}
{{- end }}

{{- define "acp.mounts" -}}
- name: config
  mountPath: /etc/acp
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- if (index . 0).Values.extraCAs }}
- name: cas
  mountPath: /etc/acp-cas
  readOnly: true
{{- end }}
{{- with (index . 1).extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Volumes of all pods: (list $ .Values.portal NAME-OF-CONFIGMAP). */ -}}
{{- define "acp.volumes" -}}
- name: config
  configMap: {name: {{ index . 2 }}}
- name: tmp
  emptyDir: {sizeLimit: 256Mi}
{{- if (index . 0).Values.extraCAs }}
- name: cas
  configMap: {name: {{ (index . 0).Values.extraCAs }}}
{{- end }}
{{- with (index . 1).extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* A budget for a program with several replicas: (list $ .Values.portal "portal" NAME). */ -}}
{{- define "acp.budget" -}}
{{- $root := index . 0 }}
{{- $values := index . 1 }}
{{- if and $values.podDisruptionBudget.enabled (gt (int $values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ index . 3 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "acp.labels" $root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "acp.selector" (list $root (index . 2)) | nindent 6 }}
{{- end }}
{{- end }}

{{- define "acp.serviceAccount" -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ index . 2 }}
  namespace: {{ (index . 0).Release.Namespace }}
  labels:
    {{- include "acp.labels" (index . 0) | nindent 4 }}
  {{- with (index . 1).serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
