/**
 * The gateway under a training step: many calls held at once, answers that grow to tens of thousands of tokens, connections
 * cut and the gateway killed in the middle. Results are committed by us as a worker would: only the gateway is measured.
 */
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import {
  encodeArtifact,
  type Farm,
  freePort,
  loadConfig,
  newId,
  openFarm,
  parseRolloutId,
  Result,
  type RunRecord,
  sleep,
  type Turn,
} from '@swefarm/shared';
import { type Started, startCommand, until } from '@swefarm/testkit';
import { type Ground, prepareGround } from './farm.ts';

export type GatewaySize = { calls: number; turns: number; tokens: number; cut: number };

export type GatewayPart = GatewaySize & {
  answered: number;
  /** Rollouts that were started; more than calls is a fault. */
  rollouts: number;
  posts: number;
  answer_bytes: number;
  gateway_peak_bytes: number;
  redis_bytes_per_call: number;
  /** From the first commit to the last answer. */
  delivery_seconds: number;
};

/** As many tokens a turn as make 60,000 in 88 turns; a fifth of the calls are cut, 100 at most. */
export const gatewaySize = (calls: number, turns: number): GatewaySize => ({
  calls,
  turns,
  tokens: turns * 682,
  cut: Math.min(100, Math.floor(calls / 5)),
});

const GROUP = 16;
const TOKEN = newId();

export async function measureGateway(size: GatewaySize): Promise<GatewayPart> {
  await using ground = await prepareGround();
  const prefix = `bench-gateway-${Date.now()}`;
  const flags = { redisUrl: ground.redisUrl, redisPrefix: prefix };
  await using farm = await openFarm(loadConfig('producer', { env: {}, flags }), 'producer');
  const port = await freePort();
  let gateway = await serve(ground, prefix, port);
  const rss = watchRss(() => gateway.pid);
  const counted = { posts: 0, bytes: 0 };
  const cutting = new AbortController();
  const agent = new Agent({ keepAlive: true, maxSockets: size.calls });
  try {
    const calls = Array.from({ length: size.calls }, (_, index) =>
      insist(agent, port, rowOf(index), counted, index < size.cut ? cutting.signal : null),
    );
    const answers = Promise.all(calls);
    const isHeld = async () => (await farm.calls.count()).held === size.calls;
    await until(isHeld, { withinMs: 300_000, pauseMs: 100, what: 'every call is held' });
    const rollouts = await openRollouts(farm);
    // Half of a connection's life in: some callers vanish and come back, then the gateway itself.
    cutting.abort();
    await sleep(300);
    gateway.kill('SIGKILL');
    await gateway.exit;
    gateway = await serve(ground, prefix, port);
    const from = performance.now();
    await commitAll(farm, rollouts, size);
    const ids = await answers;
    const seconds = (performance.now() - from) / 1000;
    return {
      ...size,
      answered: new Set(ids).size,
      rollouts: (await openRollouts(farm)).length,
      posts: counted.posts,
      answer_bytes: Math.round(counted.bytes / size.calls),
      gateway_peak_bytes: rss.peak(),
      redis_bytes_per_call: Math.round((await redisBytes(farm)) / size.calls),
      delivery_seconds: Math.round(seconds * 10) / 10,
    };
  } finally {
    rss.stop();
    agent.destroy();
    gateway.kill('SIGTERM');
    await gateway.exit;
  }
}

async function serve(ground: Ground, prefix: string, port: number): Promise<Started> {
  const args = [
    'serve',
    '--port',
    String(port),
    '--redis-prefix',
    prefix,
    '--state-dir',
    join(ground.folder, 'state'),
  ];
  const started = startCommand('swefarm', args, {
    SWEFARM_REDIS_URL: ground.redisUrl,
    SWEFARM_GATEWAY_TOKEN: TOKEN,
    SWEFARM_GATEWAY_GRACE_SECONDS: '60',
  });
  await started.until(/"port":\d+/);
  return started;
}

const rowOf = (index: number): string =>
  JSON.stringify({
    responses_create_params: { input: [], temperature: 1 },
    agent_ref: { name: 'swe_farm' },
    instance_id: `bench__calc-${Math.floor(index / GROUP)}`,
    repo: 'bench/calc',
    base_commit: 'c0',
    problem_statement: 'It breaks. '.repeat(500),
    image: 'x:1',
    FAIL_TO_PASS: ['t'],
    PASS_TO_PASS: [],
    policy_base_url: 'http://127.0.0.1:9/v1',
    policy_model_name: 'm',
    // As NeMo RL's siblings: nothing else tells them apart.
    _rowidx: index,
  });

/** As Gym's client: whatever goes wrong before the headers, again after half a second. Reads the answer, keeps its id only. */
async function insist(
  agent: Agent,
  port: number,
  body: string,
  counted: { posts: number; bytes: number },
  cut: AbortSignal | null,
): Promise<string> {
  for (let first = true; ; first = false) {
    counted.posts += 1;
    try {
      return await ask(agent, port, body, counted, first ? cut : null);
    } catch (error) {
      if (error instanceof Refused) throw error;
      await sleep(500);
    }
  }
}

class Refused extends Error {}

function ask(
  agent: Agent,
  port: number,
  body: string,
  counted: { bytes: number },
  cut: AbortSignal | null,
): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` };
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        agent,
        port,
        host: '127.0.0.1',
        path: '/run',
        method: 'POST',
        headers,
        ...(cut ? { signal: cut } : {}),
      },
      (reply) => {
        let tail = '';
        reply.setEncoding('latin1');
        reply.on('data', (text: string) => {
          counted.bytes += text.length;
          tail = (tail + text).slice(-4096);
        });
        reply.on('error', reject);
        reply.on('end', () => {
          const id = /"rollout_id":"([^"]+)"/.exec(tail)?.[1];
          if (reply.statusCode === 200 && id) resolve(id);
          else reject(new Refused(`${reply.statusCode}: ${tail.slice(0, 300)}`));
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

async function openRollouts(farm: Farm): Promise<string[]> {
  const runs = await farm.runs.list();
  return (await Promise.all(runs.map(({ run_id }) => farm.groups.rollouts(run_id)))).flat();
}

/** One artifact for all, but for its id: encoding them is not what is measured. */
async function commitAll(farm: Farm, rollouts: readonly string[], size: GatewaySize): Promise<void> {
  const blob = await encodeArtifact(artifactOf(size));
  for (const id of rollouts) {
    const { runId, instanceId, index } = parseRolloutId(id);
    const run = await farm.runs.get(runId);
    const claim = await farm.journal.claim(id, { worker: 'bench', node: 'bench' });
    if (!run || claim.status !== 'claimed') throw new Error(`${id} cannot be claimed: ${claim.status}`);
    const artifact = await farm.artifacts.put(id, claim, blob);
    await farm.commit(run, resultOf(run, id, instanceId, index, artifact, size));
  }
}

function artifactOf({ turns, tokens }: GatewaySize) {
  const each = Math.floor(tokens / turns);
  const generated = Math.floor(each / 4);
  let seen = 0;
  const list = Array.from({ length: turns }, (_, turn): Turn => {
    const prompt_suffix = Int32Array.from(
      { length: each - generated },
      (_value, at) => (turn * 977 + at * 31) % 150_000,
    );
    const generation = Int32Array.from(
      { length: generated },
      (_value, at) => (turn * 577 + at * 17) % 150_000,
    );
    const prefix_length = seen;
    seen += each;
    return {
      message: 2 + turn * 2,
      finish_reason: 'stop',
      model_seconds: 1,
      usage: { prompt_tokens: seen - generated, completion_tokens: generated },
      policy_version: { start: null, end: null },
      tokens: {
        prefix_length,
        prompt_suffix,
        generation,
        log_probs: Float32Array.from(generation, (id) => -id / 1e6),
      },
      commands: [],
    };
  });
  const said = 'What the model says and what the shell answers. '.repeat(20);
  return {
    format: 'swefarm-artifact-1' as const,
    rollout_id: '',
    attempt: 1,
    instance_id: '',
    trajectory: {
      format: 'swefarm-trajectory-1' as const,
      token_mode: 'echo' as const,
      model: 'm',
      endpoint: null,
      messages: [
        { role: 'system' as const, content: 'You mend.' },
        { role: 'user' as const, content: 'It breaks.' },
        ...list.flatMap(() => [
          { role: 'assistant' as const, content: said },
          { role: 'user' as const, content: said },
        ]),
      ],
      turns: list,
      exit_status: 'submitted' as const,
    },
    patch: 'diff',
    report: null,
    test_log: null,
    eval_script: null,
    failure_detail: null,
  };
}

const resultOf = (
  run: RunRecord,
  rollout_id: string,
  instance_id: string,
  rollout_index: number,
  artifact: string,
  { turns, tokens }: GatewaySize,
): Result =>
  Result.parse({
    format: 'swefarm-result-1',
    run_id: run.run_id,
    rollout_id,
    instance_id,
    rollout_index,
    attempt: 1,
    worker: 'bench',
    node: 'bench',
    runtime: 'host',
    outcome: 'judged',
    resolved: true,
    reward: 1,
    reward_row: 'resolved',
    reward_table: `${run.reward.table}:${run.reward.hash}`,
    turns,
    exit_status: 'submitted',
    failure: null,
    facts: null,
    tokens: { prompt: tokens, completion: tokens },
    policy_version: null,
    seconds: {
      queued: 0,
      image: 0,
      sandbox: 0,
      agent: 0,
      model: 0,
      command: 0,
      patch: 0,
      evaluation: 0,
      total: 0,
    },
    artifact,
    finished_at: Date.now(),
  });

/** Everything the farm's artifacts take: by far the most of what a call leaves in Redis. */
const redisBytes = async (farm: Farm): Promise<number> => (await farm.artifacts.usage()).used_bytes;

function watchRss(pid: () => number): { peak(): number; stop(): void } {
  let peak = 0;
  const timer = setInterval(() => {
    readFile(`/proc/${pid()}/status`, 'utf8').then(
      (text) => {
        peak = Math.max(peak, Number(/VmHWM:\s+(\d+)/.exec(text)?.[1] ?? 0) * 1024);
      },
      () => undefined,
    );
  }, 200);
  return { peak: () => peak, stop: () => clearInterval(timer) };
}
