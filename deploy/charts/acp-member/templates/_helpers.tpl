{{- define "acp-member.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: acp
{{- end }}

{{- /* An entry of resourceNames, if the first of the list is a name other than the second. */ -}}
{{- define "acp-member.extraName" -}}
{{- if and (index . 0) (ne (index . 0) (index . 1)) }}
  - {{ index . 0 }}
{{- end }}
{{- end }}
