/**
 * A failure to read, as fields of a log. What a server, a network or a file did is one sentence: where our own code was then says nothing, and eighteen
 * readers fail at once. Anything else is a bug of ours, and keeps its stack.
 */
import type { LogFields } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import { KubeRefusal } from './kube-client.js';

export function failureFields(error: unknown): LogFields {
  if (error instanceof KubeRefusal)
    return { why: error.message, status: error.status, ...(error.reason !== '' && { reason: error.reason }) };
  return isOfOutside(error) ? { why: withCauses(error) } : { error };
}

/** Node gives an error of the network or of a file a code; but a wrong argument, which is ours, has one too. */
function isOfOutside(error: unknown): error is Error {
  if (error instanceof TypeError || error instanceof RangeError) return false;
  return error instanceof Error && (error instanceof CacheError || typeof Reflect.get(error, 'code') === 'string');
}

function withCauses({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${withCauses(cause)}` : message;
}
