/** Kubernetes' Status object. */
import { reasons, type Refusal } from '../../domain/errors.js';

export type StatusAnswer = Readonly<{ code: number; text: string; retryAfterSeconds: number | undefined }>;

export function failure(refusal: Refusal): StatusAnswer {
  const { reason, message, details } = refusal;
  const code = reasons[reason].http;
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: refusal.continue === undefined ? {} : { continue: refusal.continue },
    status: 'Failure',
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  };
  return { code, text: JSON.stringify(status), retryAfterSeconds: details?.retryAfterSeconds };
}

/** `uid` is the deleted object's, because kubectl waits until that object no longer exists. */
export function deleted(details: Readonly<{ name: string; group: string; kind: string; uid: string }>): string {
  return JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details });
}
