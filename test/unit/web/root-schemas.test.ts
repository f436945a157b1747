import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import type { StoredObject } from '../../../src/domain/object.js';
import { RootSchemas } from '../../../src/web/discovery/root-schemas.js';
import { anApiExport, anApiResourceSchema, aKey } from '../../support/objects.js';

const inDocument = 'io.kcp.tenancy.v1alpha1.WorkspaceType';

test('schemas are read once for simultaneous callers, and again only after a change', async (t) => {
  const store = new SchemaStore();
  store.schemas.set('one', 'first');

  const [text] = await Promise.all(Array.from({ length: 10 }, () => store.read()));
  t.regex(text ?? '', /first/);
  await store.read();
  t.is(store.readings, 1);

  store.change('one', 'second');
  t.regex((await store.read()) ?? '', /second/);
  t.is(store.readings, 2);
});

test('a caller sees changes made before it asked, even if an older reading is under way and changes continue', async (t) => {
  const store = new SchemaStore();
  store.schemas.set('one', 'first');
  store.whileReading = () => store.change('one', 'changed on and on');

  const early = store.read();
  await turn();
  store.change('one', 'second');
  const late = store.read();

  t.regex((await late) ?? '', /second|changed on and on/);
  await early;
  t.true(store.readings <= 3, String(store.readings));
});

test('a failed reading fails only the callers that waited for it, and the next one reads again', async (t) => {
  const store = new SchemaStore();
  store.schemas.set('one', 'first');
  store.whileReading = () => {
    throw new Error('the disk');
  };

  await t.throwsAsync(store.read(), { message: 'the disk' });
  store.whileReading = () => {};

  t.regex((await store.read()) ?? '', /first/);
});

test('at most 1,000 APIExports are read, and ten schemas for a type', async (t) => {
  const store = new SchemaStore();
  store.exports = [...Array.from({ length: 1_000 }, () => ({})), naming('one')];
  store.schemas.set('one', 'first');
  t.is(await store.read(), undefined);

  store.change('one', 'second');
  store.exports.shift();
  t.regex((await store.read()) ?? '', /second/);

  store.change('one', 'third');
  store.exports = [...Array.from({ length: 10 }, (_, index) => naming(`missing-${index}`)), naming('one')];
  t.is(await store.read(), undefined);
});

/** What `RootSchemas` needs of a store, with one APIExport that names the schema `one`. */
class SchemaStore {
  readonly schemas = new Map<string, string>();
  exports: object[] = [naming('one')];
  readings = 0;
  whileReading = (): void => {};
  #revision = 1;
  readonly #root = new RootSchemas({
    types: () => kcpTypes,
    revisions: { published: 1 },
    changedAt: () => this.#revision,
    objects: {
      get: async ({ name }) => {
        await turn();
        this.whileReading();
        const description = this.schemas.get(name);
        return description === undefined ? undefined : stored(anApiResourceSchema(name, { description, properties: {} }));
      },
      snapshot: () => {
        this.readings += 1;
        const objects = this.exports.map((spec) => stored(anApiExport({}, { spec })));
        return { revision: 1, page: () => Promise.resolve({ objects, next: undefined }), close: () => {} };
      },
    },
  });

  change(name: string, description: string): void {
    this.schemas.set(name, description);
    this.#revision += 1;
  }

  async read(): Promise<string | undefined> {
    return (await this.#root.texts()).get(inDocument);
  }
}

function naming(schema: string): object {
  return { resources: [{ group: 'tenancy.kcp.io', name: 'workspacetypes', schema }] };
}

function stored(object: object): StoredObject {
  const bytes = Buffer.from(JSON.stringify(object));
  const marks = { metadataStart: 0, metadataEnd: 0, annotationsAt: 0, revisionAt: 0 };
  return { key: aKey(), revision: 1, resourceVersion: '1', body: { bytes, version: 'v1alpha1', marks } };
}
