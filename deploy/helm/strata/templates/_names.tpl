{{/* What names, labels and images are made of. */}}

{{- define "strata.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-strata" .Release.Name) (contains "strata" .Release.Name) -}}
{{- if not (regexMatch "^[a-z][a-z0-9-]*$" $name) }}{{ fail (printf "the release %s: a Service has a name of lower-case letters, digits and dashes that begins with a letter" .Release.Name) }}{{ end -}}
{{- /* A StatefulSet puts its own behind it, and has 52 characters. */ -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "strata.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/name: strata
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "strata.selector" -}}
app.kubernetes.io/name: strata
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "strata.image" -}}
{{- $repository := required "image.repository: no image is published yet; build one by npm run image, and name the registry that has it" .Values.image.repository -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default (printf "strata-%s" .Chart.AppVersion)) -}}
{{- end }}

{{- define "strata.serviceAccount" -}}
{{- .Values.serviceAccount.existingName | default (include "strata.fullname" .) -}}
{{- end }}

{{/* The name under which a component of this release is reached. */}}
{{- define "strata.host" -}}
{{- printf "%s-%s.%s.svc" (include "strata.fullname" .root) .component .root.Release.Namespace -}}
{{- end }}

{{- define "strata.cacheUrls" -}}
{{- if .urls -}}
{{- join "," .urls -}}
{{- else if .root.Values.cache.enabled -}}
{{- printf "https://%s:%v" (include "strata.host" (dict "root" .root "component" "cache")) .root.Values.cache.service.port -}}
{{- else -}}
{{- fail (printf "%s: name a cache, because this release has none" .at) -}}
{{- end -}}
{{- end }}

{{/* The issuer of a certificate, as JSON; empty without one. */}}
{{- define "strata.issuer" -}}
{{- $certificates := .root.Values.certificates -}}
{{- if (.own).name -}}
{{- merge (dict) .own (dict "kind" "Issuer" "group" "cert-manager.io") | toJson -}}
{{- else if $certificates.issuerRef.name -}}
{{- toJson $certificates.issuerRef -}}
{{- else if $certificates.createAuthority -}}
{{- dict "name" (printf "%s-authority" (include "strata.fullname" .root)) "kind" "Issuer" "group" "cert-manager.io" | toJson -}}
{{- end -}}
{{- end }}

{{/* The secret of a certificate: one that is there, or the one that cert-manager makes. */}}
{{- define "strata.certificateSecret" -}}
{{- if .existing -}}
{{- .existing -}}
{{- else if include "strata.issuer" (dict "root" .root "own" .issuerRef) -}}
{{- printf "%s-%s" (include "strata.fullname" .root) .name -}}
{{- else -}}
{{- fail (printf "%s: name a secret, or an issuer in certificates.issuerRef, or set certificates.createAuthority" .at) -}}
{{- end -}}
{{- end }}
