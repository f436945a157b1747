/**
 * The log fields of a failed read. An error of a server, a network or a file becomes one sentence.
 * A stack would say nothing about its cause, and eighteen readers fail at once. Any other error is
 * a bug of this software, and keeps its stack.
 */
import type { LogFields } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import { KubeRefusal } from './kube-client.js';

export function failureFields(error: unknown): LogFields {
  if (error instanceof KubeRefusal)
    return { why: error.message, status: error.status, ...(error.reason !== '' && { reason: error.reason }) };
  return isOfOutside(error) ? { why: withCauses(error) } : { error };
}

/**
 * Node sets `code` on errors of the network and of files, but also on wrong arguments, which are
 * bugs.
 */
function isOfOutside(error: unknown): error is Error {
  if (error instanceof TypeError || error instanceof RangeError) return false;
  return error instanceof Error && (error instanceof CacheError || typeof Reflect.get(error, 'code') === 'string');
}

function withCauses({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${withCauses(cause)}` : message;
}
