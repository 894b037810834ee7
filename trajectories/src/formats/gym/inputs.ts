/** A rollout as a row of `X_materialized_inputs.jsonl`: the request that Gym's collector would post. */
import { reverseDiff } from '@swefarm/datasets';
import type { Instance, RunRecord } from '@swefarm/shared';
import type { GymRow } from './row.ts';

/** The name by which rows refer to the gateway; the entry of docs/nemo-gym.md. */
export const AGENT_REF = { type: 'responses_api_agents', name: 'swe_farm' } as const;

export type InputRow = GymRow & { _ng_task_index: number; _ng_rollout_index: number };

/** In mini_swe_agent's shape: the fields of the dataset's row at the top level, tests as JSON strings. */
export function inputRow(
  instance: Instance,
  record: Pick<RunRecord, 'policy'>,
  task: number,
  rollout: number,
): InputRow {
  const {
    health: _health,
    pictures: _pictures,
    family,
    patch,
    FAIL_TO_PASS,
    PASS_TO_PASS,
    ...fields
  } = instance;
  const { model = null, sampling = {} } = record.policy ?? {};
  const { max_tokens: most, ...sampled } = sampling;
  return {
    _ng_task_index: task,
    _ng_rollout_index: rollout,
    agent_ref: { ...AGENT_REF },
    responses_create_params: {
      input: [],
      ...(model === null ? {} : { model }),
      ...sampled,
      ...(most === undefined ? {} : { max_output_tokens: most }),
    },
    ...fields,
    // A row of SWE-smith has the patch that makes the bug, an instance the one that reverts it.
    patch: family === 'swesmith' && !instance.plan ? reverseDiff(patch) : patch,
    FAIL_TO_PASS: JSON.stringify(FAIL_TO_PASS),
    PASS_TO_PASS: JSON.stringify(PASS_TO_PASS),
    ...(family === 'swegym' ? { subset: 'gym' } : {}),
    ...(instance.plan ? { family } : {}),
  };
}
