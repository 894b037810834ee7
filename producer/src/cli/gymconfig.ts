/** `--gym-config`: settings from a file with Gym's keys count as flags, unless the flag itself is given. */

import { type GymFlags, readGymConfig } from '@swefarm/trajectories';
import { type Command, Option } from 'commander';
import type { Flags } from './options.ts';
import { say } from './terminal.ts';

export const addGymConfig = (command: Command): Command =>
  command.addOption(
    new Option(
      '--gym-config <file>',
      "YAML file with settings of NeMo Gym's mini_swe_agent; flags win over it",
    ).helpGroup('Run:'),
  );

/** Keys that configure workers: a command that starts none cannot apply them. */
const OF_WORKERS: readonly (keyof GymFlags)[] = ['concurrency', 'runtime', 'apptainerImages'];

export function withGymConfig(flags: Flags, startsWorkers = true): Flags {
  if (flags.gymConfig === undefined) return flags;
  const path = String(flags.gymConfig);
  const read = readGymConfig(path);
  if (!startsWorkers && OF_WORKERS.some((key) => read[key] !== undefined)) {
    say(
      `swefarm: ${path}: concurrency, env and cache_dir_template are settings of workers, which run elsewhere`,
    );
  }
  return {
    ...flags,
    ...Object.fromEntries(Object.entries(read).filter(([key]) => flags[key] === undefined)),
  };
}
