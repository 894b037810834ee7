/** Redis and the gateway are killed and restarted while rollouts run: time to the first commit, and to the answers of all held calls. */
import { freePort, sleep } from '@swefarm/shared';
import { startCommand } from '@swefarm/testkit';
import { type Scene, timeUntil } from './scene.ts';

const AWAY_MS = 2_000;
const SLOTS = 4;
/** Gives about one commit per second. */
const ROLLOUTS_PER_REP = 40;
const CALLS = 8;
const AGAIN_MS = 250;
const TOKEN = 'the-token-of-this-benchmark';

/** Milliseconds from Redis's start to the first commit after it; this includes the time in which Redis loads its file. */
export async function measureRedis(scene: Scene, reps: number): Promise<number[]> {
  const { farm, environment } = scene;
  const worker = await scene.worker('rootfs', SLOTS);
  const { run } = await scene.run(ROLLOUTS_PER_REP * reps);
  const times: number[] = [];
  for (let rep = 0; rep < reps; rep++) {
    const before = (await farm.results.counts(run.run_id)).committed;
    await timeUntil(async () => (await farm.results.counts(run.run_id)).committed > before + SLOTS);
    await environment.redis.kill();
    await sleep(AWAY_MS);
    const from = Date.now();
    await environment.redis.restart();
    let cursor = '0';
    for (let found = false; !found; ) {
      const batch = await farm.results.read(run.run_id, cursor, { blockMs: 5_000 });
      cursor = batch.last_id;
      const committed = batch.results.map(({ stream_id }) => Number(stream_id.split('-')[0]));
      const first = committed.find((at) => at >= from);
      if (first !== undefined) times.push(first - from);
      found = first !== undefined;
    }
  }
  await farm.cancel.cancelRun(run.run_id);
  worker.started.kill('SIGTERM');
  await worker.started.exit;
  return times;
}

/** Milliseconds from the start of the new gateway until it accepts calls, and until each call is answered. */
export type GatewayTimes = { ready: number[]; answered: number[] };

/** The rollouts end while no gateway runs; callers retry every 250 ms. */
export async function measureRestart(scene: Scene, reps: number): Promise<GatewayTimes> {
  const { farm, policy } = scene;
  const worker = await scene.worker('rootfs', CALLS);
  const port = await freePort();
  const agent = ['--agent', 'mini', '--policy-url', policy.url, '--model', 'scripted', '--activate', ':'];
  const serve = () =>
    startCommand('swefarm', ['serve', '--port', String(port), ...agent, '--no-eval'], {
      ...scene.env,
      SWEFARM_GATEWAY_TOKEN: TOKEN,
    });
  const times: GatewayTimes = { ready: [], answered: [] };
  let gateway = serve();
  try {
    await gateway.until(/"url"/);
    for (let rep = 0; rep < reps; rep++) {
      const calls = Array.from({ length: CALLS }, (_, at) => insist(scene, port, `call-${rep}-${at}`));
      await timeUntil(() => policy.stats().in_flight === CALLS);
      gateway.kill('SIGKILL');
      await gateway.exit;
      await timeUntil(
        async () => policy.stats().in_flight === 0 && (await farm.queue().getActiveCount()) === 0,
      );
      const from = performance.now();
      gateway = serve();
      await gateway.until(/"url"/);
      times.ready.push(performance.now() - from);
      for (const at of await Promise.all(calls)) times.answered.push(at - from);
    }
  } finally {
    gateway.kill('SIGTERM');
    await gateway.exit;
  }
  worker.started.kill('SIGTERM');
  await worker.started.exit;
  return times;
}

/** Posts until it gets an answer, as Gym's callers do; returns the time of the answer (performance.now). */
async function insist({ subject }: Scene, port: number, name: string): Promise<number> {
  const row = { ...subject.instance, responses_create_params: { input: [] } };
  const body = JSON.stringify({ ...row, _ng_rollout_id: name, _ng_task_index: 0, _ng_rollout_index: 0 });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` };
  for (;;) {
    try {
      const reply = await fetch(`http://127.0.0.1:${port}/run`, { method: 'POST', headers, body });
      const text = await reply.text();
      if (reply.status === 200) return performance.now();
      if (reply.status < 500) throw new Refused(`${reply.status} ${text.slice(0, 200)}`);
    } catch (error) {
      if (error instanceof Refused) throw error;
    }
    await sleep(AGAIN_MS);
  }
}

class Refused extends Error {}
