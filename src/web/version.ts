/**
 * `/version`. Clients parse `gitVersion` as a semantic version of Kubernetes to decide what the
 * server supports. So it names the Kubernetes release whose wire rules apply here. The version of
 * this software follows a '+', as in kcp.
 */
import type { Answer } from './discovery.js';

const kubernetes = { major: '1', minor: '36' };

/** `version`: from package.json. Members that only make sense for a Go program are empty. */
export function versionAnswer(version: string): Answer {
  const answer = {
    ...kubernetes,
    gitVersion: `v${kubernetes.major}.${kubernetes.minor}.0+strata-v${version}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: '',
  };
  return { contentType: 'application/json', body: JSON.stringify(answer) };
}
