/** A trainer's effects on the server: server-side sampling, and weights that change during answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PolicyRecord, Turn } from '@swefarm/shared';
import type { AgentEnd } from '../../../src/agent/agent.ts';
import { contiguous, ended, many, must, rescored } from './play.ts';
import type { Vllm } from './server.ts';

/** The model's generation_config.json has top_k 1, which applies when a request omits the key. */
export async function sampled(server: Vllm): Promise<string> {
  const first = ({ trajectory }: AgentEnd) => trajectory.turns[0]?.tokens?.generation.join() ?? '';
  const bare = async (): Promise<string> => {
    const response = await fetch(`${server.url}/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', prompt: [5, 6, 7], max_tokens: 16, temperature: 1 }),
    });
    return ((await response.json()) as { choices: { text: string }[] }).choices[0]?.text ?? '';
  };
  const left = new Set(await Promise.all(Array.from({ length: 8 }, bare)));
  must(left.size === 1, `without the key there are ${left.size} answers: is generation_config.json read?`);
  const answers = new Set(ended(await many(8, server, () => ({ agent: { step_limit: 1 } }))).map(first));
  must(answers.size > 1, 'temperature 1 gave one answer only');
  return `8 requests without top_k are answered alike, 8 rollouts in ${answers.size} ways`;
}

/** Weights change during answers: the engine aborts them, and each continues from its received ids. */
export async function refit(server: Vllm): Promise<string> {
  const trainer = trainerOf();
  const root = server.url.replace('/v1', '');
  const post = async (route: string) => {
    const response = await fetch(`${root}/${route}`, { method: 'POST' });
    must(response.ok, `/${route}: HTTP ${response.status}`);
  };
  const playing = many(8, server, () => ({
    policy: { sampling: { temperature: 1, max_tokens: 1500 }, extra_body: { ignore_eos: true } },
    agent: { step_limit: 3 },
    deps: { followed: trainer.followed },
  }));
  for (const version of ['w2', 'w3']) {
    const generated = (await server.metric('vllm:generation_tokens_total')) ?? 0;
    while (((await server.metric('vllm:generation_tokens_total')) ?? 0) < generated + 2000) await sleep(20);
    trainer.announce({ state: 'updating' });
    await post('pause?mode=abort');
    trainer.announce({ version, state: 'serving' });
    await post('resume');
  }
  const ends = ended(await playing);
  must(
    ends.every(({ trajectory }) => trajectory.contiguous === true && contiguous(trajectory.turns)),
    'a break',
  );
  const turns = ends.flatMap(({ trajectory }) => trajectory.turns);
  must(
    turns.every(({ tokens }) => tokens?.generation.length === 1500),
    'an answer is not as long as it was to be',
  );
  must(
    turns.every(({ spans, tokens }) => sum(spans) === tokens?.generation.length),
    'the spans are not the answer',
  );
  const broken = turns.filter(({ spans }) => (spans?.length ?? 0) > 1);
  must(broken.length > 0, 'no answer was aborted');
  const versions = broken.map(({ spans }) => (spans ?? []).map(({ version }) => version).join(' '));
  must(
    versions.every((list) => /^(w1 w2|w2 w3|w1 w2 w3)$/.test(list)),
    `spans of ${[...new Set(versions)].join(', ')}`,
  );
  const difference = Math.max(...(await Promise.all(ends.slice(0, 4).map((end) => rescored(server, end)))));
  must(difference < 0.02, `scored again, a log-probability differs by ${difference}`);
  return `${broken.length} of ${turns.length} answers aborted and gone on with (${[...new Set(versions)].join(', ')}), all contiguous; scored again: largest difference ${difference.toExponential(1)}`;
}

const sum = (spans: Turn['spans'] = []): number => spans.reduce((total, { tokens }) => total + tokens, 0);

/** A trainer whose record is read at once. */
function trainerOf() {
  let record: PolicyRecord = {
    ...{
      name: 'p',
      version: 'w1',
      versions: ['w1'],
      endpoints: [],
      model: null,
      state: 'serving',
      changed_at: 1,
    },
  };
  const listeners = new Set<() => void>();
  let pausedAt = 0;
  let pausedMs = 0;
  const pause = {
    get paused() {
      return record.state !== 'serving';
    },
    seconds: () => (pausedMs + (record.state === 'serving' ? 0 : performance.now() - pausedAt)) / 1000,
    onChange(listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return {
    followed: {
      pause,
      stopped: pause,
      onRead: () => () => undefined,
      record: () => record,
      refresh: async () => undefined,
      [Symbol.dispose]: () => undefined,
    },
    announce(change: Partial<PolicyRecord>) {
      const before = pause.paused;
      record = { ...record, ...change, changed_at: record.changed_at + 1 };
      if (!before && pause.paused) pausedAt = performance.now();
      if (before && !pause.paused) pausedMs += performance.now() - pausedAt;
      for (const listener of [...listeners]) listener();
    },
  };
}
