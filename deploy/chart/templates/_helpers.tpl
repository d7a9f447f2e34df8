{{/* The name of everything, and of the Lease: the controller calls it so too. */}}
{{- define "controller.name" -}}
{{ .Values.publish.name }}-controller
{{- end -}}

{{- define "controller.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "controller.name" .) }}
{{- end -}}

{{- define "controller.priorityClass" -}}
{{ .Values.priorityClass.name | default (ternary (include "controller.name" .) "" .Values.priorityClass.create) }}
{{- end -}}

{{- define "controller.selectorLabels" -}}
app.kubernetes.io/name: gpu-summary-controller
app.kubernetes.io/instance: {{ .Values.publish.name }}
{{- end -}}

{{/* The release, and not more that changes from version to version: helm adds who
manages the objects by itself. */}}
{{- define "controller.labels" -}}
{{ include "controller.selectorLabels" . }}
app.kubernetes.io/part-of: gpu-summary
{{- end -}}

{{- define "controller.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{- define "controller.scheme" -}}
{{ ternary "HTTPS" "HTTP" (or (ne .Values.http.tlsSecret "") (eq .Values.http.auth "kubernetes")) }}
{{- end -}}

{{/* What differs from what the controller does by itself, and who may read. */}}
{{- define "controller.args" -}}
- --http-address=:{{ .Values.http.port }}
- --http-auth={{ .Values.http.auth }}
{{- range .Values.http.audiences }}
- {{ printf "--http-auth-audience=%s" . | quote }}
{{- end }}
{{- if not .Values.count.nodes }}
- --watch-nodes=false
{{- end }}
{{- with .Values.count.namespace }}
- --watch-namespace={{ . }}
{{- end }}
{{- with .Values.count.podSelector }}
- {{ printf "--pod-selector=%s" . | quote }}
{{- end }}
{{- range .Values.count.gpuResources }}
- {{ printf "--gpu-resource=%s" . | quote }}
{{- end }}
{{- range $class, $resource := .Values.count.draClasses }}
- --dra-class={{ $class }}={{ $resource }}
{{- end }}
{{- if ne .Values.publish.name "gpu-summary" }}
- --name={{ .Values.publish.name }}
{{- end }}
{{- range .Values.publish.resources }}
- --resource={{ . }}
{{- end }}
{{- if ne .Values.publish.capacityName "gpu-capacity" }}
- --capacity-name={{ .Values.publish.capacityName }}
{{- end }}
{{- with .Values.publish.settle }}
- --settle={{ . }}
{{- end }}
{{- if not .Values.publish.events }}
- --events=false
{{- end }}
{{- if not .Values.leaderElection.enabled }}
- --leader-elect=false
{{- end }}
{{- with .Values.leaderElection.leaseDuration }}
- --leader-elect-lease-duration={{ . }}
{{- end }}
{{- with .Values.leaderElection.renewDeadline }}
- --leader-elect-renew-deadline={{ . }}
{{- end }}
{{- with .Values.leaderElection.retryPeriod }}
- --leader-elect-retry-period={{ . }}
{{- end }}
{{- if .Values.http.tlsSecret }}
- --tls-cert-file=/etc/gpu-summary-controller/tls/tls.crt
- --tls-private-key-file=/etc/gpu-summary-controller/tls/tls.key
{{- end }}
{{- if not .Values.http.metricsPerNode }}
- --metrics-per-node=false
{{- end }}
{{- if .Values.http.profiling }}
- --profiling
{{- end }}
{{- with .Values.verbosity }}
- -v={{ . }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Nine tenths of the memory limit: the collector then works harder before the
kernel has to end the process. */}}
{{- define "controller.goMemoryLimit" -}}
{{- $limit := .Values.resources | default dict | dig "limits" "memory" "" | toString -}}
{{- if regexMatch "^[0-9]+Mi$" $limit -}}
{{ div (mul (trimSuffix "Mi" $limit) 9) 10 }}MiB
{{- else if regexMatch "^[0-9]+Gi$" $limit -}}
{{ div (mul (trimSuffix "Gi" $limit) 1024 9) 10 }}MiB
{{- end -}}
{{- end -}}
