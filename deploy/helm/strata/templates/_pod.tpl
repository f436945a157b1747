{{/*
The template of a pod.
  root, component; settings: what values say of the component
  args: of the image's entrypoint
  secrets: name → secret, each in /etc/strata/NAME, for owner and group to read (0440, which is 288)
  configMaps: name → ConfigMap, likewise
  data: the claim or the emptyDir for /var/lib/strata; left out where nothing is written
  env; annotations; port: {name, number, scheme}, at which it answers /livez and /readyz
*/}}
{{- define "strata.pod" -}}
{{- $root := .root -}}
{{- $settings := .settings -}}
metadata:
  labels:
    {{- include "strata.selector" . | nindent 4 }}
    {{- with $settings.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with merge (dict) $settings.podAnnotations (.annotations | default dict) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "strata.serviceAccount" $root | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $settings.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  terminationGracePeriodSeconds: 30
  # Keys in secrets, and what a volume has, are readable by the group 10001 because of fsGroup; without it a server ends with EACCES.
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: {{ .component }}
      image: {{ include "strata.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        {{- toYaml (concat .args $settings.extraArgs) | nindent 8 }}
      {{- with .env }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .port }}
      ports:
        - {name: {{ .name }}, containerPort: {{ .number }}}
      # A start has five minutes: a server checks a store that was not closed, which takes seconds for a GiB.
      startupProbe:
        httpGet: {path: /livez, port: {{ .name }}, scheme: {{ .scheme }}}
        periodSeconds: 2
        failureThreshold: 150
      readinessProbe:
        httpGet: {path: /readyz, port: {{ .name }}, scheme: {{ .scheme }}}
        periodSeconds: 5
      livenessProbe:
        httpGet: {path: /livez, port: {{ .name }}, scheme: {{ .scheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
      {{- end }}
      {{- with $settings.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        {{- if .data }}
        - {name: data, mountPath: /var/lib/strata}
        {{- end }}
        {{- range $name := concat (keys (.configMaps | default dict)) (keys .secrets) | sortAlpha }}
        - {name: {{ $name }}, mountPath: /etc/strata/{{ $name }}, readOnly: true}
        {{- end }}
        {{- with $settings.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with $settings.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- if eq (.data | default "claim") "emptyDir" }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- range $name, $configMap := .configMaps }}
    - name: {{ $name }}
      configMap: {name: {{ $configMap | quote }}}
    {{- end }}
    {{- range $name, $secret := .secrets }}
    - name: {{ $name }}
      secret: {secretName: {{ $secret | quote }}, defaultMode: 288}
    {{- end }}
    {{- with $settings.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $settings.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $settings.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- with $settings.affinity }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "strata.selector" . | nindent 16 }}
    {{- end }}
{{- end }}

{{- define "strata.claim" -}}
- metadata: {name: data}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .storageClassName }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources:
      requests: {storage: {{ .size }}}
{{- end }}

{{/* root, component, service: as in values. */}}
{{- define "strata.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "strata.fullname" .root }}-{{ .component }}
  labels:
    {{- include "strata.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  {{- with .service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .service.type }}
  selector:
    {{- include "strata.selector" . | nindent 4 }}
  ports:
    - {name: https, port: {{ .service.port }}, targetPort: https}
{{- end }}

{{- define "strata.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "strata.fullname" .root }}-{{ .component }}
  labels:
    {{- include "strata.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "strata.selector" . | nindent 6 }}
{{- end }}
