/** Makes the record of a trial (`result.json`) of Harbor 0.25 from a rollout. */
import { createHash } from 'node:crypto';
import { UsageError } from '@swefarm/shared';
import { agentOf, type ExportedRollout } from '../../export/rollout.ts';
import type { OutputLine } from '../../output/line.ts';
import { exceptionOf } from './exceptions.ts';

/** Job to which trials belong. `uri` is the address of the folder, with a slash at the end. */
export type Job = { id: string; name: string; folder: string; uri: string };

export type Trial = ReturnType<typeof trialOf>;

/** Returns a UUID that depends only on the text, so a repeated export has equal ids. */
export function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

const TASK_CHARACTERS = 32;
const HASH_CHARACTERS = 16;

/**
 * Returns the name of a trial's folder: the task's name, shortened as Harbor does, and 16 characters of the hash of the rollout's id.
 * Throws UsageError if the task's name cannot be the name of a folder.
 */
function trialName(task: string, { rollout_id }: OutputLine): string {
  if (task.includes('/'))
    throw new UsageError(`${rollout_id}: the instance id ${task} cannot be the name of a folder`);
  const hash = createHash('sha256').update(rollout_id).digest('hex').slice(0, HASH_CHARACTERS);
  return `${[...task].slice(0, TASK_CHARACTERS).join('')}__${hash}`;
}

/**
 * Returns the record. `details` has the token ids by turn, or is null if the form is not `tokens`. Throws UsageError for an instance id or
 * a time that Harbor cannot represent.
 */
export function trialOf(job: Job, rollout: ExportedRollout, details: readonly object[] | null) {
  const { line, content, instance, provenance } = rollout;
  const { name, version } = agentOf(rollout);
  const { model } = provenance;
  // `dataset to-harbor` names the folder of a task by the same id. `harbor job regrade` finds the task by this name.
  const task_name = instance?.shown_id ?? line.instance_id;
  const trial_name = trialName(task_name, line);
  const task = { path: task_name };
  const raised = exceptionOf(line);
  const times = timesOf(line);
  return {
    id: uuidOf(line.rollout_id),
    task_name,
    trial_name,
    trial_uri: `${job.uri}${encodeURIComponent(trial_name)}`,
    task_id: task,
    source: line.family ?? null,
    // An instance of the farm is not a folder, so the farm has no checksum of a folder.
    task_checksum: '',
    config: {
      task: { ...task, source: line.family ?? null },
      trial_name,
      trials_dir: job.folder,
      // Harbor accepts only names of its own agents here, even for a regrade, which runs no agent. `agent_info` has the real name.
      agent: { name: 'nop', model_name: model },
      job_id: job.id,
    },
    agent_info: { name, version, model_info: model === null ? null : modelInfo(model) },
    agent_result: {
      n_input_tokens: line.tokens.prompt,
      n_cache_tokens: null,
      n_output_tokens: line.tokens.completion,
      cost_usd: line.cost ?? null,
      rollout_details: details,
      metadata: { swefarm: provenance },
    },
    verifier_result: line.reward === null ? null : { rewards: { reward: line.reward } },
    verifier_environment_mode: 'separate',
    exception_info: raised && {
      exception_type: raised.type,
      exception_message: raised.message,
      exception_traceback: content?.failure_detail ?? '',
      occurred_at: times.finished_at,
    },
    ...times,
    step_results: null,
  };
}

/** Returns provider and model of `provider/model`; a name without a slash has no provider. */
function modelInfo(model: string): { name: string; provider: string | null } {
  const at = model.indexOf('/');
  return at < 0
    ? { name: model, provider: null }
    : { name: model.slice(at + 1), provider: model.slice(0, at) };
}

type Span = { started_at: string; finished_at: string };

/** Returns start and end of the trial and of each phase. Each stage of a rollout begins when the previous stage ends. */
function timesOf({ rollout_id, seconds, finished_at }: OutputLine) {
  const stages = {
    environment_setup: seconds.image + seconds.sandbox,
    agent_execution: seconds.agent + seconds.patch,
    verifier: seconds.evaluation,
  };
  let at = finished_at - 1000 * Object.values(stages).reduce((sum, one) => sum + one, 0);
  if (![at, finished_at].every((ms) => Number.isFinite(new Date(ms).getTime())))
    throw new UsageError(`${rollout_id}: the times cannot be written as dates`);
  const started_at = timeText(at);
  const span = (length: number): Span | null => {
    const from = at;
    at += 1000 * length;
    return length === 0 ? null : { started_at: timeText(from), finished_at: timeText(at) };
  };
  return {
    started_at,
    finished_at: timeText(finished_at),
    environment_setup: span(stages.environment_setup),
    agent_setup: null,
    agent_execution: span(stages.agent_execution),
    verifier: span(stages.verifier),
  };
}

const timeText = (ms: number): string => new Date(ms).toISOString();
