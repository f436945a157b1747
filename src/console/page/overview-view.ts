/** The cache at a glance: its neighbours, activity, shards, types, and the last errors. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { repeat } from 'lit-html/directives/repeat.js';
import { formatBytes, formatCount, formatDuration, known } from './format.js';
import type { NeighbourView, Overview, ShardState, ShardView, TreeView, TypeView } from './overview.js';
import { allObjects, formatRoute } from './route.js';
import { typeName } from './state.js';
import { numbers, tableView } from './table-view.js';

const shardStates: Readonly<Record<ShardState, string>> = {
  fresh: 'everything that the shard has is here',
  partial: 'not everything that the shard has is here: it has not been sent yet, was refused, or a policy keeps it back',
  held: 'a removal waits until somebody confirms it',
  away: 'the shard’s pusher, or what it reads from, is away: changes do not arrive',
  removed: 'an operator removed it',
};
const certificateSoonMs = 30 * 86_400_000;

export function overviewView(overview: Overview): TemplateResult {
  const { tree, shards, types, lines, certificates } = overview;
  return html`
    ${certificates
      .filter(({ expiresInMs }) => expiresInMs < certificateSoonMs)
      .map(
        ({ use, subject, expiresInMs }) =>
          html`<p class="notice">
            The certificate ${subject} (${use}) ${expiresInMs < 0 ? 'has expired' : `expires in ${formatDuration(expiresInMs)}`}.
          </p>`,
      )}
    ${tree === null ? nothing : treeView(tree)}
    <section aria-labelledby="activity">
      <h2 id="activity">Last minutes</h2>
      <div id="charts"></div>
    </section>
    <section aria-labelledby="shards">
      <h2 id="shards">Shards <small>${formatCount(shards.length)}</small></h2>
      ${shards.length === 0 ? html`<p class="empty">No shard has pushed anything yet.</p>` : shardTable(shards)}
    </section>
    <section aria-labelledby="types">
      <h2 id="types">Types</h2>
      ${typesView(types)}
    </section>
    <section aria-labelledby="lines">
      <h2 id="lines">Last warnings and refusals</h2>
      ${lines.length === 0 ? html`<p class="empty">None since the cache started.</p>` : linesView(lines)}
    </section>
  `;
}

function treeView({ name, hops, complete, parent, children }: TreeView): TemplateResult | typeof nothing {
  if (parent === null && children.length === 0) return nothing;
  const above = hops === null ? 'how many caches are above is not known' : `${hops} ${hops === 1 ? 'cache' : 'caches'} above`;
  return html`
    <section aria-labelledby="tree">
      <h2 id="tree">
        Tree <small>${complete ? 'every shard of the tree is known here' : 'not every shard of the tree is known here'}</small>
      </h2>
      <ul class="tree">
        ${parent === null ? nothing : html`<li>${neighbour('parent', parent)}</li>`}
        <li>
          <strong>${name ?? 'this cache'}</strong> <small>${parent === null ? 'the root' : above}</small>
          <ul>
            ${repeat(
              children,
              (child) => child.name,
              (child) => html`<li>${neighbour('child', child)}</li>`,
            )}
          </ul>
        </li>
      </ul>
    </section>
  `;
}

function neighbour(role: 'parent' | 'child', { name, connected, forMs, behind, slices, current, message }: NeighbourView): TemplateResult {
  const flow = [
    `${formatCount(current)} of ${formatCount(slices)} slices from there current`,
    ...(behind === null ? [] : [behind === 0 ? 'it has every change' : `${formatCount(behind)} changes behind`]),
  ];
  return html`${badge(connected ? 'fresh' : 'away', connected ? 'connected' : 'away')} <strong>${name}</strong>
    <small>${role}, for ${formatDuration(forMs)}; ${flow.join(', ')}${message === null ? '' : `; ${message}`}</small>`;
}

const shardHeadings = [{ title: 'Shard' }, { title: 'State' }, { title: 'Via' }, ...numbers('Types', 'Objects', 'Bytes', 'Lag', 'Changed')];

function shardTable(shards: readonly ShardView[]): TemplateResult {
  return tableView(
    shardHeadings,
    repeat(shards, ({ shard }) => shard, shardRow),
  );
}

function shardRow({ shard, state, forMs, via, types, whole, objects, bytes, lagMs, changedAgoMs }: ShardView): TemplateResult {
  return html`
    <tr data-shard=${shard}>
      <th scope="row"><a href=${formatRoute({ ...allObjects, shard })}>${shard}</a></th>
      <td title=${shardStates[state]}>
        ${badge(state, state === 'partial' ? 'not whole' : state)} ${known(forMs, (ms) => `for ${formatDuration(ms)}`)}
      </td>
      <td>${via ?? '–'}</td>
      <td class="number">${whole === types ? formatCount(types) : `${formatCount(whole)} of ${formatCount(types)}`}</td>
      <td class="number">${formatCount(objects)}</td>
      <td class="number">${formatBytes(bytes)}</td>
      <td class="number">${known(lagMs, formatDuration)}</td>
      <td class="number">${known(changedAgoMs, (ms) => `${formatDuration(ms)} ago`)}</td>
    </tr>
  `;
}

function typesView(types: readonly TypeView[]): TemplateResult {
  const held = types.filter(({ objects }) => objects > 0);
  const empty = types.filter(({ objects }) => objects === 0);
  return html`
    ${held.length === 0 ? nothing : typeTable(held)}
    ${empty.length === 0 ? nothing : html`<p class="empty">Without objects: ${empty.map(({ kind }) => kind).join(', ')}</p>`}
  `;
}

const typeHeadings = [{ title: 'Type' }, ...numbers('Objects', 'Bytes', 'Shards')];

function typeTable(types: readonly TypeView[]): TemplateResult {
  return tableView(typeHeadings, repeat(types, typeName, typeRow));
}

function typeRow(type: TypeView): TemplateResult {
  return html`
    <tr>
      <th scope="row">${typeLink(type)}</th>
      <td class="number">${formatCount(type.objects)}</td>
      <td class="number">${formatBytes(type.bytes)}</td>
      <td class="number">${formatCount(type.shards)}</td>
    </tr>
  `;
}

function typeLink(type: TypeView): TemplateResult {
  const { kind, group, version, identity } = type;
  const route = formatRoute({ ...allObjects, type: typeName(type) });
  return html`<a href=${route}>${kind}</a>
    <small>${group === '' ? version : `${group}/${version}`}${identity === '' ? '' : ` ${identity.slice(0, 8)}`}</small>`;
}

function linesView(lines: Overview['lines']): TemplateResult {
  return html`
    <ol class="lines">
      ${lines.map(({ agoMs, level, event, fields }) => html`<li>${badge(level, level)} <time>${formatDuration(agoMs)} ago</time> <strong>${event}</strong> <span>${fields}</span></li>`)}
    </ol>
  `;
}

function badge(state: string, text: string): TemplateResult {
  return html`<span class="badge ${state}">${text}</span>`;
}
