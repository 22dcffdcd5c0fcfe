{{/* Name of the operator's objects: at most 50 characters, so that suffixes fit into a DNS label. */}}
{{- define "cachewright.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains "cachewright" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-cachewright" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the operator's pods; NetworkPolicies of stores admit the operator by name and component. */}}
{{- define "cachewright.selectorLabels" -}}
app.kubernetes.io/name: cachewright
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "cachewright.labels" -}}
{{ include "cachewright.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "cachewright.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "cachewright.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* An image reference from {repository, tag, digest}; called with a dict of those and `root`. */}}
{{- define "cachewright.image" -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "cachewright.operatorImage" -}}
{{- include "cachewright.image" (merge (dict "root" .) .Values.images.operator) -}}
{{- end -}}

{{- define "cachewright.gatewayImage" -}}
{{- if .Values.images.gateway.repository -}}
{{- include "cachewright.image" (merge (dict "root" .) .Values.images.gateway) -}}
{{- else -}}
{{- include "cachewright.operatorImage" . -}}
{{- end -}}
{{- end -}}

{{/* Name of cluster-wide objects: with the namespace, so that two releases of one name stay apart. */}}
{{- define "cachewright.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "cachewright.fullname" .) -}}
{{- end -}}
