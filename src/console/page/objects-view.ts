/**
 * The objects of a type, page by page, and one of them as YAML. The list may be limited to one
 * shard, logical cluster, canonical path or name. A name without a type is searched in all types.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { Column, Row } from './requests.js';
import { formatCount } from './format.js';
import type { Overview } from './overview.js';
import { formatRoute, type ObjectName, type ObjectsRoute } from './route.js';
import { tableView } from './table-view.js';
import { typeName, typeOf, type List, type PageOfType, type Shown, type State } from './state.js';

export type Acts = Readonly<{ go: (route: ObjectsRoute) => void; more: () => void }>;

export function objectsView(state: State, route: ObjectsRoute, overview: Overview, acts: Acts): TemplateResult {
  const isUnknown = route.type !== '' && typeOf(state, route) === undefined;
  return html`
    ${form(route, overview, acts)} ${isUnknown ? html`<p class="notice">This cache serves no type ${route.type}.</p>` : nothing}
    <div class="browser ${route.open === undefined ? '' : 'split'}">
      ${listView(state.list, route, acts)} ${route.open === undefined ? nothing : objectView(state.object, route, route.open)}
    </div>
  `;
}

function form(route: ObjectsRoute, { types, shards }: Overview, { go }: Acts): TemplateResult {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string): string => String(given.get(name) ?? '').trim();
    go({ ...route, type: text('type'), shard: text('shard'), cluster: text('cluster') || '*', name: text('name'), open: undefined });
  };
  return html`
    <form class="filters" @submit=${submit} @change=${(event: Event) => (event.currentTarget as HTMLFormElement).requestSubmit()}>
      <label
        >Type
        <select name="type">
          <option value="" .selected=${route.type === ''}>all</option>
          ${route.type === '' || types.some((type) => typeName(type) === route.type) ? nothing : html`<option value=${route.type} .selected=${true}>${route.type}</option>`}
          ${types.map((type) => html`<option value=${typeName(type)} .selected=${typeName(type) === route.type}>${typeName(type)} (${formatCount(type.objects)})</option>`)}
        </select></label
      >
      <label
        >Shard
        <select name="shard">
          <option value="*" .selected=${route.shard === '*'}>all</option>
          ${route.shard === '*' || shards.some(({ shard }) => shard === route.shard) ? nothing : html`<option value=${route.shard} .selected=${true}>${route.shard}</option>`}
          ${shards.map(({ shard }) => html`<option value=${shard} .selected=${shard === route.shard}>${shard}</option>`)}
        </select></label
      >
      <label
        >Cluster or path
        <input name="cluster" .value=${route.cluster === '*' ? '' : route.cluster} placeholder="all" autocomplete="off" spellcheck="false"
      /></label>
      <label
        >Name <input id="name" name="name" .value=${route.name} placeholder="any (press /)" autocomplete="off" spellcheck="false"
      /></label>
      <button class="unseen">Show</button>
    </form>
  `;
}

function listView({ pages, isAsking, failure }: List, route: ObjectsRoute, { more }: Acts): TemplateResult {
  const [first] = pages;
  const rows = pages.flatMap((page) => page.rows);
  const isOfAll = route.type === '';
  const isMore = (isOfAll ? pages : pages.slice(-1)).some(({ continueWith }) => continueWith !== '');
  return html`
    <div class="list">
      ${first === undefined || rows.length === 0 ? nothing : isOfAll ? foundIn(pages, route) : tableOf(first.columns, rows, route)}
      <p class="empty" role="status">
        ${failure ?? (isAsking ? 'loading…' : first === undefined ? 'Choose a type, or give a name.' : rows.length === 0 ? 'There is no such object.' : `${formatCount(rows.length)} shown${isMore ? ', there are more' : ''}`)}
      </p>
      ${isMore && !isOfAll ? html`<button id="more" ?disabled=${isAsking} @click=${more}>More</button>` : nothing}
    </div>
  `;
}

function tableOf(columns: readonly Column[], rows: readonly Row[], route: ObjectsRoute): TemplateResult {
  const shown = columns.map((column, at) => ({ ...column, at })).filter(({ priority }) => priority === 0);
  const nameOf = objectNames(columns, route);
  const rowOf = (row: Row): TemplateResult => {
    const object = nameOf(row);
    const isOpen = route.open !== undefined && sameObject(route.open, object);
    const link = formatRoute({ ...route, open: object });
    return html`<tr class=${isOpen ? 'open' : ''}>
      ${shown.map(({ name, at }) => html`<td>${name === 'Name' ? html`<a href=${link}>${row.cells[at]}</a>` : row.cells[at]}</td>`)}
    </tr>`;
  };
  return tableView(
    shown.map(({ name }) => ({ title: name })),
    rows.map(rowOf),
  );
}

/** Objects with the name, of several types. Each link opens the object in the list of its type. */
function foundIn(pages: readonly PageOfType[], route: ObjectsRoute): TemplateResult {
  const found = pages.flatMap(({ type, columns, rows }) => rows.map(objectNames(columns, route)).map((object) => ({ type, object })));
  return tableView(
    ['Type', 'Namespace', 'Name', 'Shard', 'Cluster'].map((title) => ({ title })),
    found.map(
      ({ type, object }) =>
        html`<tr>
          <td>${type}</td>
          <td>${object.namespace}</td>
          <td><a href=${formatRoute({ ...route, type, open: object })}>${object.name}</a></td>
          <td>${object.shard}</td>
          <td>${object.cluster}</td>
        </tr>`,
    ),
  );
}

/**
 * Shard and cluster are columns if the list covers several of them. Otherwise the route names them.
 */
function objectNames(columns: readonly Column[], { shard, cluster }: ObjectsRoute): (row: Row) => ObjectName {
  const [shardAt, clusterAt] = ['Shard', 'Cluster'].map((name) => columns.findIndex((column) => column.name === name)) as [number, number];
  return ({ cells, object: { metadata } }) => ({
    shard: shardAt === -1 ? shard : String(cells[shardAt]),
    cluster: clusterAt === -1 ? cluster : String(cells[clusterAt]),
    namespace: metadata.namespace ?? '',
    name: metadata.name,
  });
}

function sameObject(one: ObjectName, other: ObjectName): boolean {
  return one.name === other.name && one.namespace === other.namespace && one.cluster === other.cluster && one.shard === other.shard;
}

function objectView({ text, failure }: Shown, route: ObjectsRoute, { shard, cluster, namespace, name }: ObjectName): TemplateResult {
  return html`
    <article aria-label="object">
      <header>
        <h2>${name}</h2>
        <small>${shard} / ${cluster}${namespace === '' ? '' : ` / ${namespace}`}</small>
        <a class="close" href=${formatRoute({ ...route, open: undefined })} aria-label="close (Esc)">×</a>
      </header>
      ${failure === undefined ? html`<pre tabindex="0">${text ?? 'loading…'}</pre>` : html`<p class="notice">${failure}</p>`}
    </article>
  `;
}
