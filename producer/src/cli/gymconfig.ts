/** Reads the settings of NeMo Gym's agent (`--gym-config`) as flags. Flags of the command line take precedence. */
import type { RunFlagValues } from '@swefarm/runs';
import { type GymFlags, readGymConfig } from '@swefarm/trajectories';
import { group, text } from './declare.ts';
import { printStatus } from './terminal.ts';

export const GYM_CONFIG = group('Run:', {
  '--gym-config <file>': text("YAML file with settings of NeMo Gym's mini_swe_agent; flags win over it"),
});

export type GymSettings = {
  run: RunFlagValues;
  /** Settings of workers. A command that starts no worker ignores these settings. */
  worker: { [Key in 'concurrency' | 'runtime' | 'apptainerImages']?: GymFlags[Key] | undefined };
  skipIfExists: boolean;
};

/** Throws UsageError. */
export function readGymSettings(o: { gymConfig: string | undefined; run: RunFlagValues }): GymSettings {
  if (o.gymConfig === undefined) return { run: o.run, worker: {}, skipIfExists: false };
  const read = readGymConfig(o.gymConfig);
  const { concurrency, runtime, apptainerImages, skipIfExists = false, ...run } = read;
  const given = Object.entries(o.run).filter(([, value]) => value !== undefined);
  const worker = { concurrency, runtime, apptainerImages };
  return { run: { ...run, ...Object.fromEntries(given) }, worker, skipIfExists };
}

/** Prints a warning if the file has settings of workers; for commands that start no worker. */
export function warnOfWorkerSettings(path: string | undefined, { worker }: GymSettings): void {
  if (Object.values(worker).every((value) => value === undefined)) return;
  printStatus(
    `swefarm: ${path}: concurrency, env and cache_dir_template are settings of workers, which run elsewhere`,
  );
}
