/** Writes trajectories of mini-swe-agent (`INSTANCE/INSTANCE.traj.json`, preds.json) in the format of version 1 or 2 (1.1). */
import { type ExitStatus, jsonText, type Message } from '@swefarm/shared';
import { carriedRollout, carriedTurn } from '../../export/carried.ts';
import {
  type Conversation,
  commandOf,
  conversationOf,
  plainMessage,
  requireNoPictures,
  type Step,
} from '../../export/conversation.ts';
import { type ExportFormat, trajectoryOf } from '../../export/format.ts';
import { agentOf, type ExportedRollout, modelName } from '../../export/rollout.ts';
import { openTreeWriter, type TreeFiles } from '../../export/treewriter.ts';

export const miniSweAgent: ExportFormat = {
  description: 'trajectories of mini-swe-agent, as its inspector shows them',
  forms: ['1.1', '1'],
  lines: ['main'],
  shape: 'folder',
  open: (request) => openTreeWriter(request, (rollout) => files(rollout, request.form)),
};

export const MINI_EXIT: Readonly<Record<ExitStatus, string>> = {
  submitted: 'Submitted',
  turn_limit: 'LimitsExceeded',
  time_limit: 'TimeExceeded',
  context_limit: 'ContextWindowExceededError',
  format_limit: 'RepeatedFormatError',
  agent_error: 'AgentError',
};

function files(rollout: ExportedRollout, form: string): TreeFiles {
  const trajectory = trajectoryOf(rollout);
  // Messages of version 1 contain only text.
  if (form === '1') requireNoPictures(trajectory);
  const conversation = conversationOf(trajectory);
  const status = trajectory.exit_status === null ? '' : MINI_EXIT[trajectory.exit_status];
  const submission = rollout.patch ?? '';
  const text = jsonText(
    {
      info: {
        exit_status: status,
        submission,
        model_stats: { instance_cost: rollout.line.cost ?? 0, api_calls: conversation.steps.length },
        mini_version: form === '1' ? '1.0.0' : '2.0.0',
        config: {
          agent: {},
          agent_type: agentOf(rollout).name,
          model: { model_name: modelName(rollout) },
          model_type: 'swefarm',
          environment: {},
          environment_type: rollout.line.runtime,
        },
        swefarm: carriedRollout(rollout),
      },
      messages: form === '1' ? plainMessages(conversation) : nativeMessages(conversation, status, submission),
      trajectory_format: form === '1' ? 'mini-swe-agent-1' : 'mini-swe-agent-1.1',
      instance_id: rollout.line.instance_id,
    },
    1,
  );
  return { files: { [`${rollout.line.instance_id}.traj.json`]: text }, status };
}

type MiniMessage = Record<string, unknown> & { role: string };

/** Returns the messages of version 2: messages of the model's API, with the actions in `extra`. */
function nativeMessages({ prompt, steps }: Conversation, status: string, submission: string): MiniMessage[] {
  const exit = {
    role: 'exit',
    content: submission,
    extra: { exit_status: status, submission, model_response: '' },
  };
  return [
    ...prompt.map(plainMessage),
    ...steps.flatMap((step) => [
      answerOf(step),
      ...step.observations.map((one, at) => observed(one, step, at)),
    ]),
    exit,
  ];
}

function answerOf(step: Step): MiniMessage {
  const actions = step.ran.map((call) => ({
    command: commandOf(call) ?? (call.name === 'bash' ? call.raw : call.name),
    tool_call_id: call.id ?? undefined,
  }));
  return { ...plainMessage(step.message), extra: { actions, cost: 0, timestamp: 0, ...facts(step) } };
}

const facts = ({ turn }: Step) => ({ swefarm: turn === null ? undefined : carriedTurn(turn) });

function observed(message: Message, { turn }: Step, at: number): MiniMessage {
  const { exit_code = null } = turn?.commands[at] ?? {};
  return {
    ...plainMessage(message),
    extra: { returncode: exit_code ?? -1, raw_output: message.content ?? '', timestamp: 0 },
  };
}

/** Returns the messages of version 1: three roles with text, where each call is a fenced block of the text. */
function plainMessages({ prompt, steps }: Conversation): MiniMessage[] {
  return [
    ...prompt.map(({ role, content }) => ({ role, content: content ?? '' })),
    ...steps.flatMap((step) => [
      { role: 'assistant', content: blockText(step), extra: facts(step) },
      ...step.observations.map(({ content }) => ({ role: 'user', content: content ?? '' })),
    ]),
  ];
}

function blockText({ message, thought, calls }: Step): string {
  if (!message.tool_calls || message.tool_calls.length === 0) return message.content ?? '';
  const blocks = calls.map((call) => `\`\`\`bash\n${commandOf(call) ?? `echo ${SUBMIT}`}\n\`\`\``);
  return [thought, ...blocks].filter((part) => part !== '').join('\n\n');
}

const SUBMIT = 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';
