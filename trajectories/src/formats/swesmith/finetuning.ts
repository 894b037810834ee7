/** Writes SWE-smith's fine-tuning lines (`ft_xml_*.jsonl`; swesmith/train/traj_mgr). Forms: XML, tool calls, or fenced blocks. */
import { jsonText, type Message, type ToolDefinition } from '@swefarm/shared';
import {
  commandOf,
  conversationOf,
  isSubmit,
  requireNoPictures,
  type Step,
  type StepCall,
} from '../../export/conversation.ts';
import { type ExportFormat, trajectoryOf } from '../../export/format.ts';
import { openLineWriter } from '../../export/linewriter.ts';
import { type ExportedRollout, modelName } from '../../export/rollout.ts';

export const swesmithFinetuning: ExportFormat = {
  description: "SWE-smith's fine-tuning lines",
  forms: ['xml', 'tool', 'user'],
  lines: ['main'],
  shape: 'file',
  open: (request) => {
    const form = FORMS[request.form as keyof typeof FORMS];
    return openLineWriter(request, (rollout) => rowOf(rollout, form));
  },
};

type Form = { system: string; answer(step: Step): Message; observations(step: Step): Message[] };

/** Forms of calls. The system prompt of each form describes how to write calls. */
const FORMS: Readonly<Record<'xml' | 'tool' | 'user', Form>> = {
  xml: {
    system: `You are a software engineer who works in a repository through two functions. Each answer is a short thought, a blank line and one call:

<function=NAME>
<parameter=KEY>VALUE</parameter>
</function>

bash runs the shell command of its parameter "command" and shows you its exit code and output.
submit has no parameter and ends the work: call it once the issue is solved.`,
    answer: (step) => ({ role: 'assistant', content: joined(step.thought, step.calls.map(xmlCall)) }),
    observations: asUser,
  },
  tool: {
    system: `You are a software engineer who works in a repository through tools. Think briefly, then call one: bash runs a shell command, submit ends the work.`,
    answer: ({ at, thought, calls }) => ({
      role: 'assistant',
      content: thought,
      ...(calls.length === 0 ? {} : { tool_calls: calls.map((call, index) => toolCall(call, at, index)) }),
    }),
    observations: asTool,
  },
  user: {
    system: `You are a software engineer who works in a repository through a shell. Each answer is a short thought and one command in a block of three backticks. Its exit code and output come back as the next message. The command submit ends the work.`,
    answer: (step) => ({ role: 'assistant', content: joined(step.thought, step.calls.map(block)) }),
    observations: asUser,
  },
};

/** Tools that the system prompts of the forms describe. */
const DESCRIBED = new Set(['bash', 'submit', 'submit_solution']);

/** Returns the system prompt of the form, and a description of the tools of an agent that has others. */
function systemText(form: Form, tools: readonly ToolDefinition[]): string {
  const own = tools.filter(({ function: { name } }) => !DESCRIBED.has(name));
  if (own.length === 0) return form.system;
  const described = own.map(({ function: { name, description, parameters } }) => {
    const { properties = {} } = parameters as { properties?: Record<string, { description?: string }> };
    const lines = Object.entries(properties).map(([key, of]) =>
      `- ${key}: ${of.description ?? ''}`.trimEnd(),
    );
    return [`${name}: ${description}`, ...lines].join('\n');
  });
  return `${form.system}\n\nFurther functions:\n\n${described.join('\n\n')}`;
}

const ISSUE_END = '</issue>';
const RULES = `Change the source files so that the issue is solved in general, not only for the example it shows. Do not change existing tests or the project's configuration; other tests will judge your work.`;

/** Replaces the text after the issue: in the farm's prompts, that text describes another form of answers. */
function taskOf(text: string): string {
  const end = text.lastIndexOf(ISSUE_END);
  return end < 0 ? text : `${text.slice(0, end + ISSUE_END.length)}\n\n${RULES}`;
}

function rowOf(rollout: ExportedRollout, form: Form) {
  const { provenance, patch } = rollout;
  const trajectory = trajectoryOf(rollout, 'turns');
  requireNoPictures(trajectory);
  const { prompt, steps } = conversationOf(trajectory);
  const task = prompt.filter(({ role }) => role !== 'system').map(({ content: text }) => text ?? '');
  return {
    messages: [
      { role: 'system', content: systemText(form, trajectory.tools ?? []) },
      { role: 'user', content: taskOf(task.join('\n\n')) },
      ...steps.flatMap((step, at) => [
        form.answer(step),
        // No answer follows the last observation, so the row omits it.
        ...(at === steps.length - 1 ? [] : form.observations(step)),
      ]),
    ],
    instance_id: provenance.instance_id,
    resolved: provenance.success,
    model: modelName(rollout),
    traj_id: provenance.rollout_id,
    patch,
    swefarm: provenance,
  };
}

/** Joins thought and calls as SWE-smith does: a blank line before the calls, and no blank line between calls. */
const joined = (thought: string, calls: readonly string[]): string =>
  [thought, calls.join('\n')].filter((part) => part !== '').join('\n\n');

/** Parameters whose values begin and end with a line feed. */
const WRAPPED = new Set(['old_str', 'new_str', 'file_text']);

function xmlCall(call: StepCall): string {
  if (isSubmit(call)) return '<function=submit>\n</function>';
  const parameters = Object.entries(call.args ?? { arguments: call.raw }).map(([key, value]) => {
    const text = typeof value === 'string' ? value : jsonText(value);
    return `<parameter=${key}>${WRAPPED.has(key) ? `\n${text}\n` : text}</parameter>\n`;
  });
  return `<function=${call.name}>\n${parameters.join('')}</function>`;
}

const block = (call: StepCall): string =>
  `\`\`\`\n${isSubmit(call) ? 'submit' : (commandOf(call) ?? `${call.name} ${call.raw}`)}\n\`\`\``;

const idOf = (call: StepCall, at: number, index: number): string => call.id ?? `call_${at}_${index}`;

function toolCall(call: StepCall, at: number, index: number) {
  const submit = isSubmit(call);
  return {
    id: idOf(call, at, index),
    type: 'function' as const,
    function: { name: submit ? 'submit' : call.name, arguments: submit ? '{}' : call.raw },
  };
}

/** Joins observations to one message, because chat templates require that user and assistant alternate. */
function asUser({ observations }: Step): Message[] {
  if (observations.length === 0) return [];
  return [{ role: 'user', content: observations.map(({ content }) => content ?? '').join('\n\n') }];
}

function asTool(step: Step): Message[] {
  const [call] = step.calls;
  return step.observations.map((message) => {
    if (message.role === 'tool' || !call) return { ...message, content: message.content ?? '' };
    return { role: 'tool', content: message.content ?? '', tool_call_id: idOf(call, step.at, 0) };
  });
}
