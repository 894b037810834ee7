/**
 * Runs beside the worker: starts processes in the network namespaces of sandboxes, and passes their listening sockets to the worker. This
 * process is small, so its forks are fast. A fork by the worker would stop the worker's main thread for a time that grows with its memory.
 */
const { spawn } = require('node:child_process');

/** A process that does not listen within this time is killed. */
const LISTEN_MS = 30_000;

process.on('disconnect', () => process.exit());
process.on('message', ({ id, argv }) => {
  const child = spawn(argv[0], argv.slice(1), { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  let problem = '';
  let isAnswered = false;
  const answer = (message, server) => {
    if (isAnswered) return;
    isAnswered = true;
    process.send({ id, ...message }, server, {}, () => server?.close());
  };
  const timer = setTimeout(() => child.kill('SIGKILL'), LISTEN_MS);
  child.stderr.on('data', (chunk) => {
    problem = (problem + chunk).slice(-400);
  });
  child.on('message', ({ port }, server) => {
    answer({ port }, server);
    child.disconnect();
  });
  child.on('error', ({ message }) => answer({ error: message }));
  child.on('close', (code, signal) => {
    clearTimeout(timer);
    answer({ error: problem.trim() || `the process ended with ${signal ?? code}` });
  });
});
