/** Stores imported rollouts as output lines and artifacts, marked as imported. */
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { REWARD_TABLE } from '@swefarm/grading';
import {
  type ArtifactContent,
  ExitStatus,
  encodeArtifact,
  NO_SECONDS,
  type Result,
  type RewardFacts,
  rolloutId,
  softwareVersion,
} from '@swefarm/shared';
import { encodeLine, type OutputLine, outputLine } from '../output/line.ts';
import { rewardFields } from '../output/rewardfields.ts';
import { openFolderTree } from './foldertree.ts';
import type { ImportedRollout } from './importing.ts';
import { usageOf } from './lines.ts';
import { openTextFile } from './textfile.ts';

export type ImportTarget = {
  runId: string;
  format: string;
  output: string;
  artifacts: string;
  /** Model that replaces the models in the files; null: the models in the files apply. */
  model: string | null;
};

/** Opens the output file and the artifact folder. Throws the errors of openTextFile and openFolderTree. */
export async function openImportStore(target: ImportTarget) {
  await using opened = new AsyncDisposableStack();
  const lines = opened.use(await openTextFile(target.output));
  await removeUnfinished(target.artifacts);
  const artifacts = opened.use(await openFolderTree(target.artifacts));
  await artifacts.write(UNFINISHED, '');
  const counts = new Map<string, number>();
  const stack = opened.move();
  return {
    async add(rollout: ImportedRollout): Promise<OutputLine> {
      const index = counts.get(rollout.instance_id) ?? 0;
      counts.set(rollout.instance_id, index + 1);
      const id = rolloutId(target.runId, rollout.instance_id, index);
      const name = `${id}.json.gz`;
      await artifacts.write(name, await encodeArtifact(contentOf(rollout, id)));
      const result = resultOf(rollout, target.runId, id, index);
      const parts = { patch: rollout.patch, report: null, artifact_file: join(target.artifacts, name) };
      const line = { ...outputLine(result, parts), ...originOf(rollout, target) };
      await lines.write(`${encodeLine(line)}\n`);
      return line;
    },
    async finish(): Promise<void> {
      await artifacts.finish();
      await lines.finish();
      await rm(join(target.artifacts, UNFINISHED), { force: true });
    },
    [Symbol.asyncDispose]: (): Promise<void> => stack.disposeAsync(),
  };
}

/** File in an artifact folder whose output file is not yet complete: the folder and the file cannot be renamed in one step. */
const UNFINISHED = '.unfinished';

/** Removes the artifact folder of an import that was killed after the folder was renamed and before the output file was renamed. */
async function removeUnfinished(artifacts: string): Promise<void> {
  const found = await stat(join(artifacts, UNFINISHED)).catch(() => null);
  if (found) await rm(artifacts, { recursive: true, force: true });
}

const contentOf = (rollout: ImportedRollout, rollout_id: string): ArtifactContent => ({
  format: 'swefarm-artifact-1',
  rollout_id,
  attempt: 1,
  ...(rollout.carried?.software_version ? { software_version: rollout.carried.software_version } : {}),
  instance_id: rollout.instance_id,
  trajectory: rollout.trajectory,
  patch: rollout.patch,
  report: null,
  test_log: null,
  eval_script: null,
  failure_detail: null,
});

/** Returns the facts of an imported rollout. The verdict comes from the imported file, if the file has one. */
function factsOf({ patch, resolved, trajectory, carried, states }: ImportedRollout): RewardFacts {
  const known = resolved === null ? undefined : (states ?? carried?.line.facts ?? undefined);
  return {
    exit_status: trajectory ? trajectory.exit_status : carriedExit(carried),
    patch_state: known?.patch_state ?? (patch === null ? 'none' : patch.trim() === '' ? 'empty' : 'applied'),
    patch_origin: 'given',
    evaluation: known?.evaluation ?? (resolved === null ? 'not_run' : 'completed'),
    resolved,
    trust: carried?.line.facts?.trust ?? 'clean',
    cut_by_token_limit: false,
    policy_share: 0,
    sandbox_killed: false,
    gold_healthy: null,
    gold_time_share: null,
    ungraded: resolved === null,
  };
}

const carriedExit = (carried: ImportedRollout['carried']): RewardFacts['exit_status'] =>
  ExitStatus.nullable()
    .catch(null)
    .parse(carried?.exit_status ?? null);

function resultOf(rollout: ImportedRollout, run_id: string, rollout_id: string, index: number): Result {
  const { carried, trajectory, instance_id } = rollout;
  const facts = factsOf(rollout);
  const turns = trajectory?.turns ?? [];
  return {
    format: 'swefarm-result-1',
    run_id,
    rollout_id,
    instance_id,
    ...(carried?.line.family === undefined ? {} : { family: carried.line.family }),
    ...(carried?.line.agent ? { agent: carried.line.agent } : {}),
    rollout_index: index,
    attempt: 1,
    software_version: softwareVersion(),
    worker: 'import',
    node: 'import',
    runtime: carried?.line.runtime ?? 'import',
    ...rewardFields(facts, {}, 1),
    reward_table: `${REWARD_TABLE.name}:${REWARD_TABLE.hash}`,
    turns: carried?.line.turns ?? turns.length,
    exit_status: facts.exit_status,
    facts,
    tokens: carried?.line.tokens ?? usageOf(turns),
    policy_version: carried?.policy_version ?? null,
    seconds: carried?.line.seconds ?? NO_SECONDS,
    artifact: null,
    finished_at: carried?.line.finished_at ?? Date.now(),
  };
}

function originOf({ where, model, cost, carried }: ImportedRollout, target: ImportTarget) {
  const { line: _line, trajectory: _trajectory, ...origin } = carried ?? {};
  return {
    ...(carried?.tag ? { tag: carried.tag } : {}),
    // Other programs write 0 for an unknown cost.
    ...(cost ? { cost } : {}),
    imported: {
      format: target.format,
      file: where,
      model: target.model ?? model,
      licence: carried?.licence ?? null,
      ...(carried ? { origin } : {}),
    },
  };
}
