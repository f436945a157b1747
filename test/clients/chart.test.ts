/**
 * The chart in Helm itself. Each example must render what was recorded, with only fields that
 * Kubernetes, cert-manager and the Prometheus operator know. The chart must refuse values that make
 * no sense. Needs `helm`, or `go` to build one; skipped with a log line without them.
 * TEST_RECORD=golden records the rendered documents.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { certAdmin, certCache, certReader, certServing, certShard, certSyncer } from '../../src/commands/cert.js';
import type { Command } from '../../src/commands/command.js';
import { loadSettings } from '../../src/config/settings.js';
import { called } from '../support/commands/called.js';
import { projectFile } from '../support/project.js';
import { buildStrictDecoder, chart, examples, helmTest, lint, refusals, render, template, valuesOf, type Rendered } from './chart/helm.js';
import { certificatesOf, type WantedCertificate } from './chart/wanted-certificate.js';
import { workloadsOf } from './chart/workload.js';

const image = ['--set', 'image.repository=registry.example/strata'];
const certificateCommands: Readonly<Record<string, Command>> = {
  shard: certShard,
  cache: certCache,
  reader: certReader,
  syncer: certSyncer,
};

async function everythingRendered(): Promise<ReadonlyMap<string, readonly Rendered[]>> {
  const rendered = new Map<string, readonly Rendered[]>();
  for (const example of examples) rendered.set(example, await render({ name: 'strata', example }));
  return rendered;
}

helmTest('each example passes `helm lint` and renders what was recorded', async (t) => {
  t.is(examples.length, 8);
  for (const [example, documents] of await everythingRendered()) {
    const { code, stdout, stderr } = await lint(valuesOf(example));
    t.is(code, 0, `${example}: ${stdout}${stderr}`);
    const file = projectFile('test', 'clients', 'chart', 'golden', `${example}.yaml`);
    if (process.env['TEST_RECORD'] === 'golden') writeFileSync(file, golden(documents));
    t.deepEqual(documentsIn(golden(documents)), documentsIn(readFileSync(file, 'utf8')), example);
  }
  t.is((await lint([])).code, 0, 'the default values pass');
});

/** Parses the text, so that its formatting does not matter. */
function documentsIn(text: string): readonly unknown[] {
  return parseAllDocuments(text).map((document) => document.toJS() as unknown);
}

/** The documents sorted by kind and name, without what has a file of its own. */
function golden(documents: readonly Rendered[]): string {
  const shortened = documents.map((document) => {
    if (document.kind === 'PrometheusRule') return { ...document, spec: '(monitoring/alerts.yaml)' };
    return document.data?.['strata.json'] === undefined ? document : { ...document, data: '(monitoring/grafana.json)' };
  });
  const placed = shortened.map((document) => [`${document.kind} ${document.metadata.name}`, stringify(document)] as const);
  return placed
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, text]) => text)
    .join('---\n');
}

helmTest('every document has only fields of its type, and the test finds an unknown field', async (t) => {
  const decoder = await buildStrictDecoder();
  if ('why' in decoder) {
    t.log(`SKIPPED (the only test of the types of Kubernetes): ${decoder.why}`);
    t.pass();
    return;
  }
  const documents = [...(await everythingRendered()).entries()].flatMap(([example, all]) => all.map((document) => ({ example, document })));

  t.true(documents.length > 60, `${documents.length}`);
  const refused = await refusals(
    decoder,
    documents.map(({ document }) => document),
  );
  for (const [i, { example, document }] of documents.entries())
    t.is(refused[i], '', `${example}: ${document.kind} ${document.metadata.name}`);
  const kinds = [...new Map(documents.map(({ document }) => [document.kind, document])).values()];
  t.true(kinds.length >= 10, kinds.map(({ kind }) => kind).join());
  for (const wrong of await refusals(
    decoder,
    kinds.map((document) => ({ ...document, speck: {} })),
  ))
    t.regex(wrong, /unknown field "speck"/);
});

helmTest('a certificate has the subject, the names and the use of the one that `strata cert` makes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-chart-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const made = async (command: Command, operands: readonly string[], file: string): Promise<X509Certificate> => {
    await called(command, { operands, flags: { 'ca-directory': join(folder, 'ca'), 'out-directory': folder, force: 'true' } });
    return new X509Certificate(readFileSync(join(folder, `${file}.crt`)));
  };
  const likeOurs = async ({ user, groups, uris, hosts }: WantedCertificate): Promise<X509Certificate> => {
    const [, kind, name = ''] = /^strata:\/\/(\w+)\/(.+)$/.exec(uris[0] ?? '') ?? [];
    const speaker = certificateCommands[kind ?? ''];
    if (speaker !== undefined) return made(speaker, [name], `${kind}-${name}`);
    if (groups.length > 0) return made(certAdmin, [], 'admin');
    return made(certServing, hosts, `serving-${user}`);
  };
  const wanted = [...(await everythingRendered()).values()].flatMap(certificatesOf);

  const kinds = new Set<string>();
  for (const each of wanted) {
    if (each.user === '') {
      t.deepEqual(
        [each.serves, each.groups, each.uris, each.hosts.some((host) => /\.svc|^[^.]*$/.test(host))],
        [true, [], [], false],
        each.secret,
      );
      continue;
    }
    const { subject, subjectAltName = '', keyUsage } = await likeOurs(each);
    const names = [
      ...each.uris.map((uri) => `URI:${uri}`),
      ...each.hosts.map((host) => (/^[\d.]+$/.test(host) ? `IP Address:${host}` : `DNS:${host}`)),
    ];
    t.is([...each.groups.map((group) => `O=${group}`), `CN=${each.user}`].join('\n'), subject, each.secret);
    t.is(names.join(', '), subjectAltName, each.secret);
    t.deepEqual(keyUsage, [each.serves ? '1.3.6.1.5.5.7.3.1' : '1.3.6.1.5.5.7.3.2'], each.secret);
    kinds.add(/^strata:\/\/(\w+)/.exec(each.uris[0] ?? '')?.[1] ?? (each.serves ? 'serving' : 'admin'));
  }
  t.deepEqual([...kinds].toSorted(), ['admin', 'cache', 'reader', 'serving', 'shard', 'syncer']);
});

helmTest(
  'every pod meets the strictest pod security standard of Kubernetes, and restarts if something changes that it reads only at start',
  async (t) => {
    const { securePort } = loadSettings({ flags: {}, environment: {}, readFile: () => '' });
    for (const [example, documents] of await everythingRendered())
      for (const { name, pod, container } of workloadsOf(documents)) {
        const what = `${example}: ${name}`;
        t.like(pod, { automountServiceAccountToken: false, enableServiceLinks: false }, what);
        t.like(pod.securityContext, { runAsNonRoot: true, runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001 }, what);
        t.deepEqual(pod.securityContext?.seccompProfile, { type: 'RuntimeDefault' }, what);
        const confined = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } };
        t.deepEqual(container.securityContext, confined, what);
        t.truthy(container.resources?.limits?.['memory'], what);
        for (const port of container.ports ?? []) if (port.name === 'https') t.is(port.containerPort, securePort, what);
        t.false(
          (container.volumeMounts ?? []).some((mount) => 'subPath' in mount),
          `${what}: kubelet does not update files of a subPath mount`,
        );
      }

    const templatesOf = async (sets: Readonly<Record<string, unknown>>): Promise<readonly unknown[]> =>
      workloadsOf(await render({ name: 'strata', example: 'region', sets })).map(({ pod, annotations }) => ({ pod, annotations }));
    const [cache, agent, door] = await templatesOf({});
    t.deepEqual(await templatesOf({ 'cache.children': { x: { offer: { types: ['*'] } } }, 'cache.parent.follow': [] }), [
      cache,
      agent,
      door,
    ]);
    const mapping = ['backend_server_ca', 'proxy_client_cert', 'proxy_client_key'].map((name) => [name, `/etc/strata/shards/${name}`]);
    const [sameCache, sameAgent, otherDoor] = await templatesOf({
      'frontDoor.mapping': [{ path: '/clusters/', backend: 'https://other', ...Object.fromEntries(mapping) }],
    });
    t.deepEqual([sameCache, sameAgent], [cache, agent]);
    t.notDeepEqual(otherDoor, door);
  },
);

helmTest('the chart installs its alert and dashboard files unchanged, also the templates that Prometheus fills in', async (t) => {
  const documents = await render({ name: 'strata', example: 'everything' });
  const alerts = readFileSync(`${chart}/monitoring/alerts.yaml`, 'utf8');

  t.deepEqual(documents.find(({ kind }) => kind === 'PrometheusRule')?.spec, parse(alerts));
  t.regex(alerts, /\{\{ \$labels\./);
  const dashboard = documents.find(({ data }) => data?.['strata.json'] !== undefined);
  t.deepEqual(JSON.parse(dashboard?.data?.['strata.json'] ?? ''), JSON.parse(readFileSync(`${chart}/monitoring/grafana.json`, 'utf8')));
  const services = documents.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.labels?.['app.kubernetes.io/name']);
  t.deepEqual(services, ['strata'], 'the Service has the label from which the alerts’ job comes');
});

helmTest('values that make no sense are refused, and the message names them', async (t) => {
  const cache = [...image, '--set', 'cache.enabled=true'];
  const authority = ['--set', 'certificates.createAuthority=true'];
  const agent = [...image, ...authority, '--set', 'agent.enabled=true'];
  const door = [...valuesOf('front-door'), '--set'];
  const aTakenLabel = /invalid propertyName 'app\.kubernetes\.io\/name'/;
  const refused: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /set cache\.enabled, agent\.enabled or frontDoor\.enabled/],
    [['--set', 'cache.enabled=true', ...authority], /image\.repository/],
    [cache, /cache\.certificates\.serving\.existingSecret: name a secret, or an issuer/],
    [[...cache, '--set', 'cache.certificates.serving.existingSecret=x'], /cache\.certificates\.clientCa\.existingSecret/],
    [[...cache, ...authority, '--set', 'cache.certificates.serving.issuerRef.name=acme'], /cache\.certificates\.serving\.dnsNames/],
    [
      [
        ...cache,
        ...authority,
        '--set',
        'cache.certificates.serving.issuerRef.name=acme,cache.certificates.serving.dnsNames={cache.example}',
      ],
      /cache\.certificates\.clientCa\.existingSecret/,
    ],
    [[...cache, ...authority, '--set-json', 'cache.etcd.servers=["https://etcd:2379"]'], /cache\.etcd\.servers: set cache\.store/],
    [[...cache, ...authority, '--set-json', 'cache.children={"EU_West":{"accept":[]}}'], /'EU_West' does not match/],
    [[...agent, '--set', 'agent.shardName=Am ber\\, strata://cache/root'], /agent\/shardName/],
    [[...door, `frontDoor.name=${'a'.repeat(62)}`], /frontDoor\/name/],
    [[...cache, ...authority, '--set-json', 'cache.parent.urls=["http://root"]'], /cache\/parent\/urls/],
    [[...agent, '--set-json', 'agent.caches=["http://cache"]'], /agent\/caches/],
    ...['cache', 'agent', 'frontDoor'].map(
      (component) =>
        [[...cache, ...authority, '--set-json', `${component}.podLabels={"app.kubernetes.io/name":"mine"}`], aTakenLabel] as const,
    ),
    ...['serviceMonitor', 'prometheusRule', 'dashboard'].map(
      (which) =>
        [[...cache, ...authority, '--set-json', `monitoring.${which}.labels={"app.kubernetes.io/name":"mine"}`], aTakenLabel] as const,
    ),
    [[...cache, ...authority, '--set', 'cache.nope=1'], /additional properties 'nope' not allowed/],
    [[...cache, ...authority, '--set', 'nope=1'], /additional properties 'nope' not allowed/],
    [[...cache, ...authority, '--set', 'cache.store=mysql'], /cache\/store/],
    [[...cache, ...authority, '--set', 'cache.store=etcd'], /cache\.etcd\.servers/],
    [[...cache, ...authority, '--set-json', 'cache.parent.urls=["https://root/path"]'], /cache\/parent\/urls/],
    [[...cache, ...authority, '--set-json', 'cache.children={"eu":{"acept":[]}}'], /'acept' not allowed/],
    [[...cache, ...authority, '--set-json', 'cache.parent.follow=[{"type":["*"]}]'], /'type' not allowed/],
    [[...cache, ...authority, '--set-json', 'cache.extraArgs=["console"]'], /cache\/extraArgs/],
    [[...cache, ...authority, '--set', 'certificates.issuerRef.name=x'], /either createAuthority or issuerRef/],
    [
      [
        ...cache,
        '--set',
        'cache.certificates.serving.existingSecret=x,cache.certificates.clientCa.existingSecret=y,certificates.issue.admin=true',
      ],
      /certificates\.issue: name an issuer/,
    ],
    [agent, /agent\.shardName/],
    [[...agent, '--set', 'agent.shardName=amber'], /agent\.kubeconfig\.existingSecret/],
    [[...agent, '--set', 'agent.shardName=amber,agent.kubeconfig.existingSecret=x'], /agent\.caches: name a cache/],
    [[...door, 'frontDoor.certificates.clientCa.existingSecret='], /frontDoor\.certificates\.clientCa\.existingSecret/],
    [[...door, 'frontDoor.shards.existingSecret='], /frontDoor\.shards\.existingSecret/],
    [[...door, 'frontDoor.mapping=null'], /frontDoor\.mapping/],
    [[...door, 'frontDoor.certificates.parent.existingSecrets={a}'], /name as many as there are replicas/],
  ];
  for (const [values, message] of refused) {
    const { code, stderr } = await template('strata', values);
    t.not(code, 0, values.join(' '));
    t.regex(stderr, message, values.join(' '));
  }
  for (const release of ['123', '1e3', 'strata.eu'])
    t.regex((await template(release, [...cache, ...authority])).stderr, /a Service has a name of lower-case letters/, release);
});

helmTest('every `helm install` command in the documentation renders', async (t) => {
  const pages = ['docs/kubernetes.md', ...examples.map((example) => `deploy/helm/strata/examples/${example}.yaml`)];
  for (const page of pages) {
    const commands = [...readFileSync(projectFile(page), 'utf8').matchAll(/helm install (\S+) deploy\/helm\/strata (.*)$/gm)];
    t.true(commands.length >= (page.endsWith('.md') ? 6 : 1), page);
    for (const [command, name = '', rest = ''] of commands) {
      const [, example = ''] = /-f deploy\/helm\/strata\/examples\/(\S+)\.yaml$/.exec(rest) ?? [];
      const { code, stderr } = await template(name, valuesOf(example));
      t.is(code, 0, `${page}: ${command}: ${stderr}`);
      if (!page.endsWith('.md')) t.true(page.endsWith(`/${example}.yaml`), command);
    }
  }
});

helmTest('the examples make every secret that the documentation names', async (t) => {
  const [cache, root] = await Promise.all(
    [
      { name: 'strata', example: 'cache' },
      { name: 'strata-root', example: 'root' },
    ].map(async (release) => certificatesOf(await render(release)).map(({ secret }) => secret)),
  );

  t.true(cache?.includes('strata-shard-amber'));
  t.true(root?.includes('strata-root-cache-eu'));
  const every = [...(await everythingRendered()).values()]
    .flatMap(certificatesOf)
    .map(({ secret }) => secret.replace(/^strata-/, 'RELEASE-'));
  const documented = [...readFileSync(projectFile('docs', 'kubernetes.md'), 'utf8').matchAll(/`(RELEASE-[a-z0-9-]+)`/g)].map(
    ([, secret]) => secret!,
  );
  t.true(documented.length >= 7);
  t.deepEqual(
    documented.filter((secret) => !every.includes(secret)),
    [],
  );
});
