/** Writes Harbor's ATIF (harbor/models/trajectories). ATIF forbids unknown fields, so fields of swefarm are in `extra`. */
import { withNamedPictures } from '@swefarm/policy';
import { jsonText, type Message, ownTurns, type Trajectory, type WholeLine } from '@swefarm/shared';
import { carriedRollout, carriedTurn } from '../../export/carried.ts';
import { conversationOf, type Step, type StepCall } from '../../export/conversation.ts';
import { openFolderTree } from '../../export/foldertree.ts';
import { type ExportFormat, type ExportRequest, trajectoryOf } from '../../export/format.ts';
import { chosenLines, isProgram, type LineChoice, lineFacts, usageOf } from '../../export/lines.ts';
import { floatsText, idsText } from '../../export/numbers.ts';
import { agentOf, type ExportedRollout, modelName } from '../../export/rollout.ts';
import { IMPOSSIBLE } from './details.ts';

export const atif: ExportFormat = {
  description: "Harbor's trajectory files (ATIF)",
  forms: ['1.7'],
  lines: ['all', 'main'],
  shape: 'folder',
  async open({ path, lines }: ExportRequest) {
    const tree = await openFolderTree(path);
    return {
      ...tree,
      write: async (rollout) =>
        tree.write(`${rollout.line.rollout_id}.trajectory.json`, trajectoryText(rollout, lines)),
    };
  },
};

/**
 * Returns the JSON of the file: the main line, with the other lines as embedded trajectories of sub-agents. Throws NotExportable if no
 * trajectory is stored.
 */
export function trajectoryText(rollout: ExportedRollout, choice: LineChoice): string {
  const trajectory = trajectoryOf(rollout);
  const [main, ...others] = chosenLines(trajectory, choice);
  if (!main) return '';
  const { prompt, completion } = rollout.line.tokens;
  const whole = documentOf(rollout, trajectory, main, {
    // The tokens and the cost of all lines.
    metrics: {
      total_prompt_tokens: prompt,
      total_completion_tokens: completion,
      total_cost_usd: rollout.line.cost,
    },
    extra: { swefarm: carriedRollout(rollout), patch: rollout.patch },
  });
  if (others.length === 0) return whole;
  const embedded = others.map((line) => {
    const own = usageOf(ownTurns(line));
    return documentOf(rollout, trajectory, line, {
      metrics: { total_prompt_tokens: own.prompt, total_completion_tokens: own.completion },
      extra: { swefarm: lineFacts(line) },
    });
  });
  return withField(whole, 'subagent_trajectories', `[${embedded.join(',')}]`);
}

/** Returns the JSON of one line. Most of the text is token ids and log-probabilities, which numbers.ts writes faster. */
function documentOf(
  rollout: ExportedRollout,
  trajectory: Trajectory,
  line: WholeLine,
  { metrics, extra }: { metrics: object; extra: object },
): string {
  const { prompt, steps } = conversationOf({ ...trajectory, ...line });
  const copied = (at: number): { is_copied_context?: true } =>
    at < line.shared.messages ? { is_copied_context: true } : {};
  const first = prompt.map((message, at) =>
    jsonText({ step_id: at + 1, ...promptStep(message), ...copied(at) }),
  );
  const worked = steps.map((step, at) => {
    // An agent that comes as a program may write answers itself, for example a summary.
    const isCopied = step.at < line.shared.messages || (step.turn === null && isProgram(line));
    return stepText(step, first.length + at + 1, isCopied);
  });
  const head = {
    schema_version: 'ATIF-v1.7',
    session_id: rollout.line.rollout_id,
    trajectory_id: trajectory.lines?.length ? `${rollout.line.rollout_id}.${line.id}` : undefined,
    agent: { ...nameOf(rollout), model_name: modelName(rollout), tool_definitions: line.tools },
    final_metrics: { ...metrics, total_steps: first.length + steps.length },
    extra,
  };
  return withField(jsonText(head), 'steps', `[${[...first, ...worked].join(',')}]`);
}

const nameOf = (rollout: ExportedRollout) => {
  const { name, version } = agentOf(rollout);
  return { name, version };
};

/** Adds a field to the JSON text of an object that is not empty. */
const withField = (json: string, name: string, value: string): string =>
  `${json.slice(0, -1)},"${name}":${value}}`;

/** Converts a message of the prompt. The format has no pictures, so the text contains their names instead. */
const promptStep = (message: Message) => ({
  source: message.role === 'system' ? 'system' : 'user',
  message: withNamedPictures(message).content ?? '',
});

function stepText(step: Step, step_id: number, isCopied: boolean): string {
  const copied = isCopied ? { is_copied_context: true } : {};
  const json = jsonText({ step_id, ...agentStep(step), ...copied });
  return step.turn === null || isCopied ? json : withField(json, 'metrics', metricsText(step.turn));
}

function agentStep({ message, turn, calls, thought, observations }: Step) {
  const called = calls.filter(({ id }) => id !== null);
  const ids = new Set(called.map(({ id }) => id));
  return {
    source: 'agent',
    message: called.length > 0 ? thought : (message.content ?? ''),
    reasoning_content: message.reasoning_content,
    tool_calls: called.length === 0 ? undefined : called.map(toolCall),
    observation:
      observations.length === 0 ? undefined : { results: observations.map((one) => observed(one, ids)) },
    extra: turn === null ? undefined : { swefarm: carriedTurn(turn) },
  };
}

const toolCall = ({ id, name, args, raw }: StepCall) => ({
  tool_call_id: id,
  function_name: name,
  arguments: args ?? {},
  extra: args === null ? { arguments: raw } : undefined,
});

const observed = ({ role, content, tool_call_id }: Message, ids: ReadonlySet<string | null>) => ({
  source_call_id: tool_call_id !== undefined && ids.has(tool_call_id) ? tool_call_id : undefined,
  content: content ?? '',
  extra: role === 'tool' ? undefined : { role },
});

/** Returns the metrics of a turn without prompt ids, which would repeat the conversation in every step. */
function metricsText({ usage, tokens }: NonNullable<Step['turn']>): string {
  const counts = jsonText(usage ?? {});
  if (tokens === null) return counts;
  const packed = `"completion_token_ids":${idsText(tokens.generation)},"logprobs":${floatsText(tokens.log_probs, IMPOSSIBLE)}}`;
  return `${usage === null ? '{' : `${counts.slice(0, -1)},`}${packed}`;
}
