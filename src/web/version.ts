/**
 * `/version`. Clients parse `gitVersion` as a semantic version of Kubernetes to decide what the server understands,
 * so it names the Kubernetes whose wire rules we follow and carries our own version behind a '+', as kcp's does.
 */
import type { Answer } from './discovery.js';

const kubernetes = { major: '1', minor: '36' };

/** `version` is our own, from package.json. Members without meaning for a Node program are there and empty. */
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
