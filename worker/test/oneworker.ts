/** A worker process for tests that stop and continue it: `oneworker.ts FLAGS-AS-JSON MILLISECONDS`; prints when it begins a rollout. */
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '@swefarm/shared';
import { simulateWorker } from './simulated.ts';

const [flags = '{}', milliseconds = '0'] = process.argv.slice(2);
const worker = await simulateWorker(loadConfig('worker', { env: {}, flags: JSON.parse(flags) }), {
  slots: 4,
  async work(job, { signal }) {
    process.stdout.write(`begun ${job.rollout_id}\n`);
    await sleep(Number(milliseconds), undefined, { signal });
  },
});
process.on('SIGTERM', () => {
  void worker.drain().then(() => process.exit(0));
});
