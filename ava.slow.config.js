/** Tests that start processes and kill them: one file at a time, with patience. `npm run test:slow`. */
export default {
  files: ['build/test/{crash,e2e,clients}/**/*.test.js'],
  timeout: '10m',
  concurrency: 1,
  serial: true,
};
