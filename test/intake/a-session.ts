/** A session to test with: its context, the frames a pusher of amber sends, and the objects in them. */
import { kcpTypes } from '../../src/domain/catalogue-kcp.js';
import type { ServedType } from '../../src/domain/catalogue.js';
import type { Resource } from '../../src/domain/resource.js';
import type { Slice } from '../../src/domain/slice.js';
import type { Frame, FrameOf, PushedObject } from '../../src/frames/frame.js';
import { greeting, step } from '../../src/intake/session.js';
import type { SessionContext, SessionEffect, SessionEvent, SessionState } from '../../src/intake/session-state.js';
import { anApiExport, shardName } from '../support/objects.js';

export const nowMs = 1_763_000_000_000;
export const term = nowMs - 1_000;

export const apiExports = aSlice('apiexports');
export const schemas = aSlice('apiresourceschemas');

export function aSlice(resource: string, shard = 'amber', identity = ''): Slice {
  return { shard: shardName(shard), resource: { group: 'apis.kcp.io', resource, identity } };
}

export function aContext(overrides: Partial<SessionContext> = {}): SessionContext {
  return {
    mayWriteFor: (shard) => shard === 'amber',
    typeOf,
    limits: { frameBytesMax: 1_000_000, frameMutationsMax: 10, bodyBytesMax: 10_000 },
    credit: { mutations: 20, bytes: 20_000 },
    systemClusters: new Set(['system:shard']),
    ...overrides,
  };
}

export function typeOf({ group, resource, identity }: Resource): ServedType | undefined {
  return kcpTypes.find((type) => type.group === group && type.resource === resource && type.identity === identity);
}

export function hello(overrides: Partial<FrameOf<'hello'>> = {}): Frame {
  return {
    kind: 'hello',
    protocol: 1,
    role: 'shard',
    name: 'amber',
    process: 'process-1',
    term: 0,
    takesOver: false,
    route: [],
    slices: [apiExports],
    agent: 'test',
    credit: undefined,
    limits: undefined,
    ...overrides,
  };
}

export function pushed(
  name: string,
  { cluster = 'acme', uid = `uid-of-${name}`, body = undefined as object | undefined } = {},
): PushedObject {
  const object = body ?? anApiExport({ name, uid });
  return { cluster, namespace: '', name, sourceVersion: '1', body: new TextEncoder().encode(JSON.stringify(object)) };
}

export function put(sequence: number, objects: readonly PushedObject[], slice = apiExports): Frame {
  return { kind: 'put', sequence, slice, version: 'v1alpha2', objects };
}

export function remove(sequence: number, names: readonly string[], slice = apiExports): Frame {
  return { kind: 'delete', sequence, slice, keys: names.map((name) => ({ cluster: 'acme', namespace: '', name })) };
}

export function begin(sequence: number, slice = apiExports): Frame {
  return { kind: 'begin', sequence, slice, revision: '7' };
}

export function end(sequence: number, count: number, slice = apiExports): Frame {
  return { kind: 'end', sequence, slice, revision: '7', count, filterHash: '' };
}

/** A session that keeps what every step asked for. */
export class SteppedSession {
  state: SessionState = greeting;
  readonly effects: SessionEffect[] = [];
  readonly context: SessionContext;

  constructor(context: SessionContext = aContext()) {
    this.context = context;
  }

  /** One that was welcomed, with these slices synced. */
  static open(synced: readonly Slice[] = [apiExports], context?: SessionContext): SteppedSession {
    const session = new SteppedSession(context);
    session.frame(hello());
    session.take({ kind: 'decided', outcome: { kind: 'acquired', term }, synced, cacheId: 'cache-1', epoch: 7 });
    session.effects.length = 0;
    return session;
  }

  /** Answers the effects of this step alone. */
  take(event: SessionEvent): readonly SessionEffect[] {
    const { state, effects } = step(this.state, event, this.context);
    this.state = state;
    this.effects.push(...effects);
    return effects;
  }

  frame(frame: Frame): readonly SessionEffect[] {
    return this.take({ kind: 'frame', frame });
  }
}
