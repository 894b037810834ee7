/** Writes trajectories of SWE-agent: `INSTANCE/INSTANCE.traj`, `.pred` and `.patch`, preds.json and the list of exit statuses. */
import { type ExitStatus, jsonText, type Message } from '@swefarm/shared';
import { carriedRollout, carriedTurn } from '../../export/carried.ts';
import {
  commandOf,
  contentParts,
  conversationOf,
  isSubmit,
  plainMessage,
  type Step,
} from '../../export/conversation.ts';
import { type ExportFormat, trajectoryOf } from '../../export/format.ts';
import { usageOf } from '../../export/lines.ts';
import { type ExportedRollout, modelName, predictionOf } from '../../export/rollout.ts';
import { openTreeWriter, type TreeFiles } from '../../export/treewriter.ts';

export const sweAgent: ExportFormat = {
  description: 'trajectories of SWE-agent: .traj, .pred, .patch and preds.json',
  forms: ['tree'],
  lines: ['main'],
  shape: 'folder',
  open: (request) => openTreeWriter(request, files),
};

export const SWE_AGENT_EXIT: Readonly<Record<ExitStatus, string>> = {
  submitted: 'submitted',
  turn_limit: 'exit_cost',
  time_limit: 'exit_total_execution_time',
  context_limit: 'exit_context',
  format_limit: 'exit_format',
  agent_error: 'exit_error',
};

const AGENT = 'main';

function files(rollout: ExportedRollout): TreeFiles {
  const trajectory = trajectoryOf(rollout);
  const { prompt, steps } = conversationOf(trajectory);
  const earlier = steps.slice(0, -1).flatMap((step) => [answered(step), ...step.observations.map(inParts)]);
  const status = trajectory.exit_status === null ? null : SWE_AGENT_EXIT[trajectory.exit_status];
  const id = rollout.line.instance_id;
  const submission = rollout.patch ?? '';
  const traj = {
    trajectory: steps.map((step, at) =>
      // Only the last step has a query, because each query would repeat the whole conversation.
      stepOf(step, at === steps.length - 1 ? [...prompt.map(inParts), ...earlier] : []),
    ),
    history: [
      ...prompt.map((message) => past(message, message.role === 'system' ? 'system_prompt' : 'observation')),
      ...steps.flatMap((step) => [
        actionPast(step),
        ...step.observations.map((message) => past(message, 'observation')),
      ]),
    ],
    info: {
      model_stats: statsOf(steps, rollout.line.cost),
      exit_status: status,
      submission,
      swefarm: carriedRollout(rollout),
    },
    replay_config: jsonText({ agent: { model: { name: modelName(rollout) } } }),
    environment: AGENT,
  };
  return {
    files: {
      [`${id}.traj`]: jsonText(traj, 1),
      [`${id}.pred`]: jsonText(predictionOf(rollout)),
      [`${id}.patch`]: submission,
    },
    status,
  };
}

function stepOf(step: Step, query: readonly object[]) {
  const seconds = step.turn?.commands.reduce((sum, command) => sum + command.seconds, 0) ?? 0;
  return {
    action: actionOf(step),
    observation: step.observations.map(({ content }) => content ?? '').join('\n'),
    response: step.message.content ?? '',
    thought: step.thought,
    execution_time: seconds,
    state: {},
    query,
    extra_info: step.turn ? { swefarm: carriedTurn(step.turn) } : {},
  };
}

const actionOf = ({ ran }: Step): string =>
  ran.map((call) => (isSubmit(call) ? 'submit' : (commandOf(call) ?? call.raw))).join('\n');

const actionPast = (step: Step) => ({ ...answered(step), agent: AGENT, message_type: 'action' });

const answered = (step: Step) => ({
  ...historic(step.message),
  thought: step.thought,
  action: actionOf(step),
});

/** Returns a message of a query, with its content as parts, because SWE-smith reads the text from parts. */
const inParts = (message: Message) => ({
  ...historic(message),
  ...(message.role === 'system' ? {} : { content: contentParts(message) }),
});

const past = (message: Message, message_type: string) => ({
  ...historic(message),
  agent: AGENT,
  message_type,
});

/** Returns a message in SWE-agent's form, where an observation has the ids of its calls in a list. */
const historic = (message: Message) => ({
  ...plainMessage(message),
  tool_call_ids: message.tool_call_id === undefined ? undefined : [message.tool_call_id],
});

function statsOf(steps: readonly Step[], cost: number | undefined) {
  const { prompt, completion } = usageOf(steps.map(({ turn }) => turn));
  return {
    instance_cost: cost ?? 0,
    tokens_sent: prompt,
    tokens_received: completion,
    api_calls: steps.length,
  };
}
