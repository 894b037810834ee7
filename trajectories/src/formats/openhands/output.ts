/** Writes OpenHands' evaluation lines: `output.jsonl`, or with `raw_completions`, the form on which SWE-Gym trains. */
import { dataUrl, picturesOf } from '@swefarm/policy';
import type { Message } from '@swefarm/shared';
import { carriedRollout, carriedTurn } from '../../export/carried.ts';
import {
  commandOf,
  conversationOf,
  isSubmit,
  plainMessage,
  type Step,
  type StepCall,
} from '../../export/conversation.ts';
import { type ExportFormat, trajectoryOf } from '../../export/format.ts';
import { openLineWriter } from '../../export/linewriter.ts';
import { agentOf, type ExportedRollout, modelName } from '../../export/rollout.ts';

export const openHands: ExportFormat = {
  description: "OpenHands' output.jsonl, or with completions (name it output.with_completions.jsonl.gz)",
  forms: ['output', 'completions'],
  lines: ['main'],
  shape: 'file',
  open: (request) => openLineWriter(request, (rollout) => rowOf(rollout, request.form === 'completions')),
};

function rowOf(rollout: ExportedRollout, completions: boolean) {
  const { line: result, instance, patch, provenance } = rollout;
  const trajectory = trajectoryOf(rollout);
  const { prompt, steps } = conversationOf(trajectory);
  const task = prompt.findLast(({ role }) => role === 'user')?.content ?? '';
  return {
    instance_id: result.instance_id,
    instruction: task,
    instance: instance ?? { instance_id: result.instance_id },
    test_result: {
      git_patch: patch ?? '',
      report: result.resolved === null ? undefined : verdictOf(rollout),
    },
    metadata: {
      agent_class: agentOf(rollout).name,
      llm_config: { model: modelName(rollout) },
      max_iterations: steps.length,
      eval_output_dir: '',
      start_time: new Date(result.finished_at - result.seconds.total * 1000).toISOString(),
      git_commit: provenance.software_version ?? '',
      dataset: null,
      data_split: null,
      details: { swefarm: carriedRollout(rollout) },
    },
    history: [...prompt.map((message, id) => promptEvent(id, message)), ...eventsOf(steps, prompt.length)],
    metrics: { accumulated_cost: result.cost ?? 0 },
    error: result.failure?.message ?? null,
    raw_completions: completions
      ? { messages: trajectory.messages.map(plainMessage), tools: trajectory.tools ?? [] }
      : undefined,
  };
}

function verdictOf({ line: { report, facts }, provenance }: ExportedRollout) {
  const { patch_state, evaluation } = report ?? facts ?? {};
  return {
    empty_generation: patch_state === 'empty' || patch_state === 'none',
    resolved: provenance.success === true,
    failed_apply_patch: patch_state === 'not_applied',
    error_eval: evaluation === 'tests_cannot_start',
    test_timeout: evaluation === 'timed_out',
  };
}

function promptEvent(id: number, message: Message) {
  const urls = picturesOf(message).map(dataUrl);
  return {
    id,
    source: message.role === 'system' ? 'agent' : 'user',
    action: message.role === 'system' ? 'system' : 'message',
    args: { content: message.content ?? '', image_urls: urls.length === 0 ? undefined : urls },
  };
}

/** Returns an action event for each step, then its observations. A step that submits becomes the action `finish`. */
function eventsOf(steps: readonly Step[], first: number): Record<string, unknown>[] {
  let id = first;
  return steps.flatMap((step) => {
    const { message, turn } = step;
    const answer = {
      ...{ id: id++, source: 'agent', ...actionOf(step), message: message.content ?? '' },
      swefarm: turn ? carriedTurn(turn) : undefined,
      tool_call_metadata: metadataOf(step),
    };
    const observations = step.observations.map((observation, at) => ({
      id: id++,
      source: 'agent',
      observation: 'run',
      content: observation.content ?? '',
      cause: answer.id,
      extras: {
        command: commandAt(step, at),
        tool_call_id: observation.tool_call_id,
        metadata: { exit_code: turn?.commands[at]?.exit_code ?? -1 },
      },
    }));
    return [answer, ...observations];
  });
}

/** Returns the model's answer in OpenHands' field for tool calls. */
const metadataOf = ({ message, calls }: Step) => ({
  function_name: calls[0]?.name ?? '',
  tool_call_id: calls[0]?.id ?? '',
  total_calls_in_response: calls.length,
  model_response: { choices: [{ message: plainMessage(message) }] },
});

const commandIn = (call: StepCall): string => commandOf(call) ?? call.raw;

/** Returns the command of an observation; an empty text when no command ran. */
const commandAt = ({ ran }: Step, at: number): string => (ran[at] ? commandIn(ran[at]) : '');

function actionOf(step: Step) {
  const { ran, thought } = step;
  if (ran.length === 0) return { action: 'message', args: { content: thought } };
  if (ran.some(isSubmit)) return { action: 'finish', args: { thought, outputs: {} } };
  return { action: 'run', args: { command: ran.map(commandIn).join('\n'), thought } };
}
