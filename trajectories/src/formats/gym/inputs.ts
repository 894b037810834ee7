/** Builds rows of `X_materialized_inputs.jsonl`: the requests that Gym's collector would post. */
import { reverseDiff } from '@swefarm/datasets';
import type { Instance, RunRecord } from '@swefarm/shared';
import type { GymRow } from './row.ts';

/** Name of the gateway in rows; docs/nemo-gym.md configures it. */
export const AGENT_REF = { type: 'responses_api_agents', name: 'swe_farm' } as const;

export type InputRow = GymRow & { _ng_task_index: number; _ng_rollout_index: number };

/** Returns a row in the form of mini_swe_agent: the fields of the dataset's row at the top level, with tests as JSON strings. */
export function inputRow(
  instance: Instance,
  record: Pick<RunRecord, 'policy'>,
  task: number,
  rollout: number,
): InputRow {
  const { health: _health, pictures: _pictures, ...row } = instance;
  const { family, patch, FAIL_TO_PASS, PASS_TO_PASS, ...fields } = row;
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
    // `patch` of a SWE-smith row introduces the bug; `patch` of an instance reverts the bug.
    patch: family === 'swesmith' && !instance.plan ? reverseDiff(patch) : patch,
    FAIL_TO_PASS: JSON.stringify(FAIL_TO_PASS),
    PASS_TO_PASS: JSON.stringify(PASS_TO_PASS),
    ...(family === 'swegym' ? { subset: 'gym' } : {}),
    ...(instance.plan ? { family } : {}),
  };
}
