{{- define "acp-kubefed.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: acp
{{- end }}

{{- define "acp-kubefed.selector" -}}
app.kubernetes.io/name: kubefed-controller-manager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
