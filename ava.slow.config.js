/** Tests that start processes and kill them, and the contract once more with nothing in memory: one file at a time, with patience. `npm run test:slow`. */
export default {
  files: [
    'build/test/{crash,e2e,clients,machines}/**/*.test.js',
    'build/test/hostile/slow/**/*.test.js',
    'build/test/simulation/random-tree.test.js',
    'build/test/contract/sqlite-from-disk.test.js',
  ],
  environmentVariables: { TEST_TREES: process.env['TEST_TREES'] ?? '200' },
  timeout: '10m',
  concurrency: 1,
  serial: true,
};
