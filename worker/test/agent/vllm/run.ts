/**
 * The policy client against a real vLLM: contiguity of every transition, weights that change during answers, log-probabilities scored
 * again, resent text, KV pressure, a cancel, the engine's known crash, and a server that is killed and restarted.
 * usage: run.ts [--folder FOLDER] [--only CHECK]...; the folder keeps packages and model. Ends with one line: N passed, N failed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { errorMessage, RolloutFailure } from '@swefarm/shared';
import { contiguous, ended, failures, many, must, rescored, TURNS, transitions } from './play.ts';
import { startVllm, type Vllm } from './server.ts';
import { refit, sampled } from './weights.ts';

const ROLLOUTS = 16;
/** 12,288 tokens of KV: sixteen rollouts of 3,000 tokens need four times that. */
const BLOCKS = 384;

async function contiguity(server: Vllm): Promise<string> {
  const before = (await server.metric('vllm:num_preemptions_total')) ?? 0;
  const ends = ended(
    await many(ROLLOUTS, server, (index) => ({
      agent: { action: index % 2 ? 'tool' : 'fenced' },
      policy: { extra_body: { chat_template_kwargs: { enable_thinking: index % 4 > 1 } } },
    })),
  );
  const thoughts = ends
    .flatMap(({ trajectory }) => trajectory.messages)
    .filter(({ reasoning_content: thought }) => thought).length;
  must(thoughts > 50, `only ${thoughts} answers with thinking`);
  must(
    ends.every(({ trajectory }) => trajectory.turns.length === TURNS),
    'a rollout ended before its last turn',
  );
  must(
    ends.every(({ trajectory }) => trajectory.contiguous === true && contiguous(trajectory.turns)),
    'a break',
  );
  const difference = Math.max(...(await Promise.all(ends.slice(0, 4).map((end) => rescored(server, end)))));
  must(difference < 0.02, `scored again, a log-probability differs by ${difference}`);
  const preempted = ((await server.metric('vllm:num_preemptions_total')) ?? 0) - before;
  return `${transitions(ends)} of ${ROLLOUTS * (TURNS - 1)} transitions contiguous, ${thoughts} answers with thinking, ${preempted} preemptions; scored again: largest difference ${difference.toExponential(1)}`;
}

async function resentText(server: Vllm): Promise<string> {
  const results = await many(8, server, () => ({ policy: { token_mode: 'text' } }));
  const broken = failures(results).filter((failure) => failure === 'policy_tokens').length;
  must(broken > 0, 'text was contiguous');
  const [first] = results.filter((result) => result instanceof Error);
  return `${broken} of 8 rollouts fail by name, as: ${errorMessage(first)}`;
}

async function pressure(server: Vllm): Promise<string> {
  const before = (await server.metric('vllm:num_preemptions_total')) ?? 0;
  const results = await many(24, server, () => ({
    policy: { sampling: { temperature: 1, max_tokens: 1200 }, extra_body: { ignore_eos: true } },
    agent: { step_limit: 2 },
  }));
  const ends = ended(results);
  must(
    ends.every(({ trajectory }) => contiguous(trajectory.turns)),
    'a break',
  );
  const preempted = ((await server.metric('vllm:num_preemptions_total')) ?? 0) - before;
  must(preempted > 0, 'there was no preemption');
  return `24 rollouts of 2 x 1200 tokens, ${preempted} preemptions, all contiguous`;
}

const busy = async (server: Vllm): Promise<number> =>
  ((await server.metric('vllm:num_requests_running')) ?? 0) +
  ((await server.metric('vllm:num_requests_waiting')) ?? 0);

async function cancel(server: Vllm): Promise<string> {
  const controller = new AbortController();
  const playing = many(ROLLOUTS, server, () => ({
    policy: { sampling: { max_tokens: 6000 }, extra_body: { ignore_eos: true } },
    signal: controller.signal,
  }));
  while ((await busy(server)) < ROLLOUTS) await sleep(50);
  const from = performance.now();
  controller.abort(new Error('cancelled'));
  while ((await busy(server)) > 0) await sleep(20);
  const seconds = (performance.now() - from) / 1000;
  must(failures(await playing).length === 0, 'a cancel became a failure');
  must(seconds < 1, `the slots were free only after ${seconds.toFixed(2)} s`);
  return `${ROLLOUTS} running requests, all slots free after ${seconds.toFixed(2)} s by the server's metrics`;
}

async function crash(server: Vllm): Promise<string> {
  const results = await many(24, server, (seed) => ({
    policy: { sampling: { seed, max_tokens: 1200 }, extra_body: { ignore_eos: true }, patience: 1 },
    agent: { step_limit: 2 },
  }));
  const classes = failures(results);
  must(classes.length > 0, 'the engine survived');
  must(
    classes.every((name) => /^policy_(server_error|unreachable)$/.test(name)),
    `failed as ${classes}`,
  );
  must(
    results.every((result) => !(result instanceof Error) || result instanceof RolloutFailure),
    'a bug',
  );
  return `${classes.length} of 24 rollouts fail as ${[...new Set(classes)].join(', ')}: to be tried again, without reward`;
}

async function restart(server: Vllm): Promise<string> {
  server.kill();
  const playing = many(8, server, () => ({ policy: { patience: 600 }, agent: { step_limit: 6 } }));
  await server.restart();
  while ((await server.metric('vllm:generation_tokens_total')) === 0) await sleep(20);
  server.kill();
  await server.restart();
  const ends = ended(await playing);
  must(
    ends.every(({ trajectory }) => contiguous(trajectory.turns)),
    'a break',
  );
  return `8 rollouts over two deaths of the server: all end, ${transitions(ends)} of 40 transitions contiguous`;
}

/** Checks the output of `swefarm doctor` for runs with required tokens. */
async function probe(server: Vllm): Promise<string> {
  const doctor = async (mode: string) => {
    const bin = fileURLToPath(new URL('../../../../producer/bin/swefarm.mjs', import.meta.url));
    const flags = ['--policy-url', server.url, '--require-tokens', '--token-mode', mode, '--json'];
    const child = spawn(process.execPath, [bin, 'doctor', ...flags], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close');
    const output = await text(child.stdout);
    const [code] = await ended;
    return { code: Number(code), output };
  };
  const tokenIn = await doctor('token-in');
  must(
    tokenIn.code === 0 && tokenIn.output.includes('3 turns in mode token-in are contiguous'),
    tokenIn.output,
  );
  const resent = await doctor('text');
  must(resent.code === 12 && resent.output.includes('use --token-mode token-in'), resent.output);
  return 'doctor passes token-in and refuses text with exit 12';
}

const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: '.swefarm/cache/vllm' },
    only: { type: 'string', multiple: true },
  },
});
await using server = await startVllm(values.folder, { blocks: BLOCKS });
let failed = 0;
const CHECKS = { probe, sampled, contiguity, refit, resentText, pressure, cancel, crash, restart };
const chosen = Object.entries(CHECKS).filter(([name]) => values.only?.includes(name) ?? true);
for (const [name, check] of chosen) {
  const from = performance.now();
  const [mark, output] = await check(server).then(
    (outcome) => ['ok  ', outcome] as const,
    (error: unknown) => ['FAIL', errorMessage(error)] as const,
  );
  if (mark === 'FAIL') failed++;
  console.log(`${mark} ${name}: ${output} (${((performance.now() - from) / 1000).toFixed(0)} s)`);
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
