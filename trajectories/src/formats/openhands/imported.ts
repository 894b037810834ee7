/** Reads OpenHands' evaluation lines: the completions of a line if it has them, otherwise its events. */
import type { Message, ToolDefinition } from '@swefarm/shared';
import { carriedIn } from '../../export/carried.ts';
import { type ImportedRollout, type ImportFormat, importedChat, messageOf } from '../../export/importing.ts';
import { importLines, listIn, numberIn, objectIn, requireText, stringIn } from '../../export/importtree.ts';

export const openHandsImport: ImportFormat = {
  description: "OpenHands' output.jsonl, also with completions and gzipped",
  read: (path) => importLines(path, rolloutOf),
};

type Json = Record<string, unknown>;

function rolloutOf(row: Json, where: string): ImportedRollout {
  const carried = carriedIn(objectIn(row, 'metadata', 'details').swefarm);
  const events = (listIn(row, 'history') ?? []).flat() as Json[];
  const messages = listIn(row, 'raw_completions', 'messages')?.map(messageOf) ?? messagesOf(events);
  const answers = events.filter(isAnswer);
  const report = objectIn(row, 'test_result', 'report');
  const tools = (listIn(row, 'raw_completions', 'tools') ?? []) as unknown as ToolDefinition[];
  const rollout = importedChat({
    where,
    messages,
    instance_id: requireText(row, 'instance_id'),
    model: stringIn(row, 'metadata', 'llm_config', 'model'),
    patch: stringIn(row, 'test_result', 'git_patch'),
    exitStatus: events.some(({ action }) => action === 'finish') ? 'submitted' : null,
    ...(tools.length === 0 ? {} : { tools }),
    cost: numberIn(row, 'metrics', 'accumulated_cost'),
    carried,
    carriedTurn: (answer) => answers[answer]?.swefarm,
  });
  if (messages.length === 0) rollout.trajectory = null;
  if (typeof report.resolved !== 'boolean') return rollout;
  const resolved = report.resolved === carried?.success ? carried.resolved : report.resolved;
  return { ...rollout, resolved, states: statesOf(report) };
}

const statesOf = (report: Json): NonNullable<ImportedRollout['states']> => ({
  patch_state:
    report.failed_apply_patch === true
      ? 'not_applied'
      : report.empty_generation === true
        ? 'empty'
        : 'applied',
  evaluation:
    report.test_timeout === true
      ? 'timed_out'
      : report.error_eval === true
        ? 'tests_cannot_start'
        : 'completed',
});

const isAnswer = (event: Json): boolean =>
  event.source === 'agent' && event.action !== undefined && event.action !== 'system';

function messagesOf(events: readonly Json[]): Message[] {
  const messages: Message[] = [];
  let answered: string | null = null;
  for (const event of events) {
    const args = objectIn(event, 'args');
    if (isAnswer(event)) {
      const response = objectIn(event, 'tool_call_metadata', 'model_response');
      const [choice = {}] = listIn(response, 'choices') ?? [];
      // One answer may have several events, one for each action.
      const id = stringIn(response, 'id');
      if (id !== null && id === answered) continue;
      answered = id;
      const whole = objectIn(choice, 'message');
      messages.push('role' in whole ? messageOf(whole) : actionAnswer(event, args));
    } else if (event.observation !== undefined) messages.push(observed(event));
    else if (typeof args.content === 'string') {
      messages.push({ role: event.action === 'system' ? 'system' : 'user', content: args.content });
    }
  }
  return messages;
}

/** Builds an answer from its action, for an event without the model's response. */
function actionAnswer(event: Json, args: Json): Message {
  const thought = stringIn(args, 'thought') ?? stringIn(args, 'content') ?? stringIn(event, 'message') ?? '';
  const command = stringIn(args, 'command');
  if (command === null) return { role: 'assistant', content: thought };
  return { role: 'assistant', content: `${thought}\n\n\`\`\`bash\n${command}\n\`\`\``.trimStart() };
}

function observed(event: Json): Message {
  const content = stringIn(event, 'content') ?? '';
  const id =
    stringIn(event, 'extras', 'tool_call_id') ?? stringIn(event, 'tool_call_metadata', 'tool_call_id');
  return id === null || id === '' ? { role: 'user', content } : { role: 'tool', content, tool_call_id: id };
}
