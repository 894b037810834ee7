// Runs a simulated worker from the sources in FOLDER, with real queue, journal, maintenance and commit. TERM drains it.
// usage: node simulated.mjs FOLDER REDIS_URL PREFIX WORKER SLOTS MILLISECONDS
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [folder, redis_url, redis_prefix, worker_id, slots, milliseconds] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${folder}/${path}`).href);
const { loadConfig } = await load('shared/src/index.ts');
// Earlier versions have the file in worker/src/.
const { simulateWorker } = await load('worker/test/simulated.ts').catch(() =>
  load('worker/src/simulated.ts'),
);
const flags = { redis_url, redis_prefix, worker_id, node: `node-${worker_id}` };
const worker = await simulateWorker(loadConfig('worker', { env: {}, flags }), {
  slots: Number(slots),
  pull: async () => undefined,
  work: (_job, { signal }) => sleep(Number(milliseconds), undefined, { signal }),
});
console.log('ready');
process.once('SIGTERM', async () => {
  await worker.drain();
  process.exit(0);
});
