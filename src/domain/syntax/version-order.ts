/** The order of API versions, and two orders of texts. */

/**
 * Orders API versions by Kubernetes' preference, the preferred one first: v10, v2, v1, v1beta2,
 * v1beta1, v1alpha1. Other texts follow in their own order.
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority
 */
export function compareVersions(left: string, right: string): number {
  const leftRank = rankVersion(left);
  const rightRank = rankVersion(right);
  if (leftRank === undefined || rightRank === undefined) {
    if (leftRank === rightRank) return compareTexts(left, right);
    return leftRank === undefined ? 1 : -1;
  }
  return rightRank.stability - leftRank.stability || rightRank.major - leftRank.major || rightRank.minor - leftRank.minor;
}

const stabilities = ['alpha', 'beta'];

function rankVersion(version: string): { stability: number; major: number; minor: number } | undefined {
  const [, major, stability, minor] = /^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$/.exec(version) ?? [];
  if (major === undefined) return undefined;
  if (stability === undefined) return { stability: stabilities.length, major: Number(major), minor: 0 };
  return { stability: stabilities.indexOf(stability), major: Number(major), minor: Number(minor) };
}

/** Orders by code unit, independently of the machine's locale. */
export function compareTexts(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/**
 * Orders by the bytes in UTF-8, as SQLite and etcd do. That is the order of code units, except that
 * surrogates rank above all other code units, because they encode code points above U+FFFF.
 */
export function compareUtf8(left: string, right: string): number {
  if (left === right) return 0;
  const shared = Math.min(left.length, right.length);
  for (let at = 0; at < shared; at += 1) {
    const [a, b] = [left.charCodeAt(at), right.charCodeAt(at)];
    if (a !== b) return rankOf(a) - rankOf(b);
  }
  return left.length - right.length;
}

function rankOf(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}
