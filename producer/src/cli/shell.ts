/** `swefarm shell`: opens a stored rollout's sandbox on this machine, as it was after one of its turns. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inheritedEnvironment, recordedTurns, textOfTurns, UnusableError, UsageError } from '@swefarm/shared';
import { findBranchable } from './branch.ts';
import { command, text } from './declare.ts';
import { EXIT } from './exit.ts';
import { WORKER } from './images.ts';
import { FARM } from './options.ts';

export const shell = command({
  arguments: {
    '<rollout@turn>': 'a rollout id, or FILE#ID of an output (ID may be INSTANCE.INDEX), and a turn from 0',
    '[command...]':
      'run this alone, behind --; without it, a terminal, or each line of an input that is none',
  },
  options: {
    '--runtime <name>': text('what runs the sandbox (default: runtime of the configuration of workers)'),
    ...FARM,
  },
  example: 'swefarm shell results.jsonl#INSTANCE.0@10 -- git diff',
  async run(o, { 'rollout@turn': given, command: words = [] }) {
    const [, name = '', turn = ''] = /^(.+)@(\d+)$/.exec(given) ?? [];
    if (name === '')
      throw new UsageError(`${given}: expected ROLLOUT@TURN, such as results.jsonl#INSTANCE.0@10`);
    const { farm, run, instance, trajectory, rolloutId } = await findBranchable(name, o);
    if (Number(turn) > trajectory.turns.length)
      throw new UsageError(`${given}: the rollout has ${trajectory.turns.length} turns`);
    const turns = textOfTurns(recordedTurns(trajectory, Number(turn)), { replay: null }).toString('utf8');
    const folder = await mkdtemp(join(tmpdir(), 'swefarm-shell-'));
    try {
      const path = join(folder, 'shell.json');
      const content = JSON.stringify({ farm, rollout_id: rolloutId, run, instance, turns });
      await writeFile(path, content, { mode: 0o600 });
      const flags = o.runtime === undefined ? [] : ['--runtime', o.runtime];
      return await runWorker(['shell', ...flags, path, ...(words.length > 0 ? ['--', ...words] : [])]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
});

/** Returns the exit code of the worker, which has the terminal. */
async function runWorker(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [WORKER, ...args], {
    stdio: 'inherit',
    env: inheritedEnvironment({}),
  });
  // This process outlives the worker, which removes its sandbox.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return await new Promise<number>((resolve, reject) => {
    child.once('error', (error) =>
      reject(new UnusableError('worker', `swefarm-worker cannot be started: ${error.message}`)),
    );
    child.once('close', (code) => resolve(code ?? EXIT.interrupted));
  });
}
