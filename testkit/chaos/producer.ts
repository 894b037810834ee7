/** The producer's own commands: a submit, and a collector that may be killed and goes on with `--resume`. */

import { readFile } from 'node:fs/promises';
import { sleep } from '@swefarm/shared';
import { runCommand, type Started, startCommand } from '../src/launchers/commands.ts';
import type { Seen } from './verdict.ts';

export type Collector = {
  /** kill -9, and on with the same output. */
  replace(): Promise<void>;
  /** Resolves with the exit code once one ended that was not killed by us, and not for want of Redis. */
  done(): Promise<number | string>;
  lines(): Promise<Seen[]>;
  log(): string;
  kill(): void;
};

/** Exit code of a command whose infrastructure cannot be used. */
const UNUSABLE = 12;
const RESUME_MS = 1_000;

type Env = Readonly<Record<string, string>>;

export async function submitRun(flags: readonly string[], env: Env): Promise<string> {
  // A fault may strike the endpoint while it would be tried.
  const submitted = await runCommand('swefarm', ['submit', '--no-probe', ...flags], env);
  if (submitted.code !== 0) throw new Error(`submit ended with ${submitted.code}: ${submitted.stderr}`);
  return (JSON.parse(submitted.stdout) as { run_id: string }).run_id;
}

export function startCollector(runId: string, output: string, env: Env): Collector {
  const all: Started[] = [];
  const start = (...more: string[]): void => {
    all.push(startCommand('swefarm', ['collect', runId, '--output', output, ...more], env));
  };
  start();
  return {
    async replace() {
      all.at(-1)?.kill('SIGKILL');
      await all.at(-1)?.exit;
      start('--resume');
    },
    async done() {
      for (;;) {
        const last = all.at(-1);
        const code = await last?.exit;
        if (last !== all.at(-1)) continue;
        if (code !== UNUSABLE) return code ?? 'none';
        // Its last line says so: Redis was away when it began. Whoever runs it starts it again.
        await sleep(RESUME_MS);
        start('--resume');
      }
    },
    async lines() {
      const text = await readFile(output, 'utf8');
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Seen);
    },
    log: () => all.map((started) => started.stderr()).join('\n'),
    kill: () => all.at(-1)?.kill('SIGKILL'),
  };
}
