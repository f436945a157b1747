/**
 * The namespace a body claims, read before the body is admitted: kcp replicates declared types without a namespace in the
 * URL (W18), so the object that a PUT is to replace can only be found by what the body says.
 */
import { NotJson, member, scanObject, valueText } from '../domain/object-text.js';

const nestingMax = 10_000;

/** '' when there is none to read; admission will then say what is wrong. */
export function claimedNamespace(bytes: Uint8Array): string {
  try {
    const found = member(scanObject(bytes, nestingMax).metadata, 'namespace');
    const value: unknown = found === undefined ? '' : JSON.parse(valueText(bytes, found));
    return typeof value === 'string' ? value : '';
  } catch (error) {
    if (error instanceof NotJson) return '';
    throw error;
  }
}
