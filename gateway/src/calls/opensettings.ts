/** Refuses settings that an open run (a run to which calls append rollouts) cannot have. */

import { asTree, RUN_FLAGS, type SettingsTree } from '@swefarm/runs';
import { RunRecord, UsageError } from '@swefarm/shared';
import { type Caller, operatorSettings } from '../access/callers.ts';
import { NOT_FOR_OPEN_RUNS } from './notforopenruns.ts';

const REMEDY =
  'a caller waits for each rollout of an open run; set it for a submitted run (POST /v1/runs, swefarm submit)';

/** Throws UsageError for the first setting that an open run cannot have. `where` is the start of the error message. */
export function requireOpenSettings(where: string, settings: SettingsTree): void {
  if (settings.kind === 'session')
    throw new UsageError(`${where}: kind: a session is opened by POST /v1/sessions`);
  for (const [key, harmless] of Object.entries(NOT_FOR_OPEN_RUNS)) {
    const value = settings[key];
    if (value === undefined || value === null || value === harmless) continue;
    const flag = RUN_FLAGS.find(({ path }) => path[0] === key)?.flag.split(' ')[0];
    throw new UsageError(`${where}: ${flag} (${key}) cannot be set here: ${REMEDY}`);
  }
}

/** Checks the settings of `serve` and of all callers. Throws UsageError. */
export function checkOpenSettings(settings: SettingsTree, callers: readonly Caller[]): void {
  requireOpenSettings('serve', settings);
  for (const { name, run, max_hold_seconds: longest } of callers) {
    const where = `caller ${name}`;
    requireOpenSettings(`${where}: run`, run);
    const ttl = asTree(operatorSettings(settings, { run })).ttl ?? RunRecord.shape.ttl.parse(undefined);
    if (typeof ttl === 'number' && ttl < longest) {
      throw new UsageError(
        `${where}: --ttl (ttl): ${ttl} s is shorter than ${longest} s (max_hold_seconds): the run would expire while its call waits; give a longer --ttl, or a shorter max_hold_seconds`,
      );
    }
  }
}
