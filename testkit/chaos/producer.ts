/** The producer's own commands: a submit, and a collector that may be killed and goes on with `--resume`. */

import { sleep } from '@swefarm/shared';
import { runCommand, startCommand, words } from '../src/launchers/commands.ts';
import { readLines } from '../src/lines.ts';
import { openSlot, type Slot } from './slot.ts';
import type { Seen } from './verdict.ts';

export type Collector = Pick<Slot, 'log' | 'kill'> & {
  /** kill -9, and on with the same output. */
  replace(): Promise<void>;
  /** Resolves with the exit code once one ended that was not killed by us, and not for want of Redis. */
  done(): Promise<number | string>;
  lines(): Promise<Seen[]>;
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
  const slot = openSlot((start) => {
    const again = start > 1 ? ['--resume'] : [];
    return startCommand('swefarm', words`collect ${runId} --output ${output} ${again}`, env);
  });
  slot.start();
  return {
    ...slot,
    replace: () => slot.replace(0),
    async done() {
      for (;;) {
        const last = slot.current();
        const code = await last.exit;
        if (last !== slot.current()) continue;
        if (code !== UNUSABLE) return code;
        // Its last line says so: Redis was away when it began. Whoever runs it starts it again.
        await sleep(RESUME_MS);
        slot.start();
      }
    },
    lines: () => readLines<Seen>(output),
  };
}
