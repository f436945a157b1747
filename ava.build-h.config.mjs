export default { files: ['build-h/test/{store,contract,model}/**/*.test.js'], timeout: '60s', concurrency: 2 };
