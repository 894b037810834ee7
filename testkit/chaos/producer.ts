/** Runs the producer's commands: a submit, and a collector that may be killed and continues with `--resume`. */

import { sleep } from '@swefarm/shared';
import { runCommand, startCommand, words } from '../src/launchers/commands.ts';
import { readLines } from '../src/lines.ts';
import { openSlot, type Slot } from './slot.ts';
import type { Seen } from './verdict.ts';

export type Collector = Pick<Slot, 'log' | 'kill'> & {
  /** Kills the collector with SIGKILL and starts it again with the same output. */
  replace(): Promise<void>;
  /** Resolves with the exit code of a collector that ended without {@link replace} and not because Redis was unavailable. */
  done(): Promise<number | string>;
  lines(): Promise<Seen[]>;
};

/** Exit code of a command whose infrastructure cannot be used. */
const UNUSABLE = 12;
const RESUME_MS = 1_000;

type Env = Readonly<Record<string, string>>;

export async function submitRun(flags: readonly string[], env: Env): Promise<string> {
  // A fault may hit the endpoint during a probe.
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
        // Redis was unavailable for too long. The test starts the command again, as a user would.
        await sleep(RESUME_MS);
        slot.start();
      }
    },
    lines: () => readLines<Seen>(output),
  };
}
