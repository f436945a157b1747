import { test } from '../../support/test.js';
import { nearest } from '../../../src/config/command-line/nearest.js';

const variables = ['STRATA_CERT_DIR', 'STRATA_ROOT_DIRECTORY', 'STRATA_CA_DIRECTORY', 'STRATA_CACHE', 'STRATA_CACHE_KUBECONFIG'];

test('a word that was cut short is nearest to the one that begins with it, however many letters are missing', (t) => {
  t.is(nearest('STRATA_ROOTDIR', variables), 'STRATA_ROOT_DIRECTORY');
  t.is(nearest('STRATA_CA_DIR', variables), 'STRATA_CA_DIRECTORY');
  t.is(nearest('root-dir', ['root-name', 'root-directory'].values()), 'root-directory');
});

test('of several known words that begin with a word, the shortest is nearest', (t) => {
  t.is(nearest('STRATA_CACH', variables), 'STRATA_CACHE');
});

test('a mistyped word is nearest to the one with the fewest edits, and to none if all are far', (t) => {
  t.is(nearest('STRATA_CERT_DIT', variables), 'STRATA_CERT_DIR');
  t.is(nearest('c', ['cache-kubeconfig']), undefined);
  t.is(nearest('STRATA_WHATEVER_ELSE', variables), undefined);
});
