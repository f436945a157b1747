/**
 * Tests that start processes and kill them, and the contract once more with nothing in memory: one file at a time, with patience. `npm run test:slow`.
 *
 * TEST_LANE names a part of them. What measures nothing is in one of the first four, which may run side by side; all others are in `measured`, or in
 * `lengthy`, which measures too.
 */
const all = [
  'build/test/{crash,e2e,clients,etcd,machines,package}/**/*.test.js',
  'build/test/hostile/slow/**/*.test.js',
  'build/test/sizes/*.test.js',
  'build/test/simulation/random-tree.test.js',
  'build/test/contract/sqlite-from-disk.test.js',
];
const unmeasured = {
  crashes: [
    'build/test/crash/{agent,backup,compaction,declared-bounds,disk-full,failpoints,front-door-stops,kill,migration,restore,rollback}.test.js',
    'build/test/clients/{clients,decodable,kubectl,kubectl-auth,kubectl-explain,kubectl-refusals,kubectl-wildcard}.test.js',
    'build/test/package/*.test.js',
  ],
  tiers: [
    'build/test/crash/{paused,restored-leaf,tier-balancer,tier-disk,tier-moves,tier-network,tier-partition,tier-random,tier-restart}.test.js',
    'build/test/crash/{clock-steps,collected-statements,quiet-writer}.test.js',
    'build/test/hostile/slow/{abrupt-ends,random-ends}.test.js',
  ],
  etcd: ['build/test/etcd/*.test.js'],
  machines: [
    'build/test/machines/{bit-flips,model,power-loss}.test.js',
    'build/test/simulation/random-tree.test.js',
    'build/test/contract/sqlite-from-disk.test.js',
  ],
};
/** What measures at length, with great numbers or for every way there is: twelve minutes. */
const lengthy = [
  'build/test/crash/{tier-plain-writer,tier-recreated}.test.js',
  'build/test/machines/soak.test.js',
  'build/test/hostile/slow/{crowds-of-watches,floods,healing,large-store,many-slices,mixer,slow-link,unread-answers}.test.js',
];
const except = (patterns) => patterns.map((pattern) => `!${pattern}`);
const lanes = {
  ...unmeasured,
  lengthy,
  measured: [...all, ...except([...Object.values(unmeasured).flat(), ...lengthy])],
};
const lane = process.env['TEST_LANE'];
if (lane !== undefined && !Object.hasOwn(lanes, lane)) throw new Error(`TEST_LANE is ${lane}, none of ${Object.keys(lanes).join(', ')}`);

export default {
  files: lane === undefined ? all : lanes[lane],
  require: [...(process.env['TEST_TIMES'] === undefined ? [] : ['./build/test/support/worker-times.js']), './build/test/support/end-of-worker.js'],
  environmentVariables: { TEST_COMMITTER: 'thread', TEST_TREES: process.env['TEST_TREES'] ?? '100' },
  // AVA forgets it for good if it ends within the t.timeout of any test, though that has passed: a test that is skipped must set none.
  timeout: '10m',
  // Each file in a process of its own, as the server is: what it measures is its own, and if it hangs, AVA can end it.
  workerThreads: false,
  concurrency: 1,
  serial: true,
};
