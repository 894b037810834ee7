/**
 * Writes `ng_trajectory` in pieces, for Gym's `eval health-check` and `eval export` (TrajectoryRecord of
 * nemo_gym/rollout_observability.py). Each turn repeats the whole earlier conversation.
 */
import { withNamedPictures } from '@swefarm/policy';
import { jsonText, type Turn, type WholeLine } from '@swefarm/shared';
import { JsonList } from './json.ts';
import { type Conversation, conversationOf, type ResponseItem } from './responseitems.ts';

export type TrajectoryFacts = {
  taskId: string;
  rolloutId: string;
  status: 'completed' | 'failed';
  seconds: number;
  finishedAt: number;
  resolved: boolean | null;
};

/** An invocation of the agent: one of its lines. `first`: number of its first model call in the rollout. */
type Invocation = Conversation & { id: string; parent: string | null; first: number };

const MAIN = 'main';

/** Returns the lines as invocations. The main line is the parent of each line that was rendered whole. */
function invocationsOf([main, ...others]: readonly [WholeLine, ...WholeLine[]]): Invocation[] {
  const nameOf = (id: string): string => (id === main.id ? MAIN : id);
  let first = 0;
  return [main, ...others].map((line) => {
    // Each turn repeats the prompt, so names replace the pictures.
    const conversation = conversationOf({ ...line, messages: line.messages.map(withNamedPictures) });
    const parent = line === main ? null : nameOf(line.from?.line ?? main.id);
    const invocation = { ...conversation, id: nameOf(line.id), parent, first };
    first += conversation.calls.length;
    return invocation;
  });
}

const refsOf = ({ calls, first }: Invocation) => calls.map((_, at) => ({ model_call_id: `m${first + at}` }));

export function* trajectoryParts(
  lines: readonly [WholeLine, ...WholeLine[]],
  facts: TrajectoryFacts,
): Generator<string | Buffer> {
  const invocations = invocationsOf(lines);
  const head = { schema_version: '1.0', task_id: facts.taskId, rollout_id: facts.rolloutId, gaps: [] };
  yield `${jsonText(head).slice(0, -1)},"turns":[`;
  const conversations: Buffer[] = [];
  for (const invocation of invocations) conversations.push(yield* turnPieces(invocation, facts));
  yield '],"invocations":[';
  for (const [at, invocation] of invocations.entries()) {
    const { id, parent, calls } = invocation;
    const model = calls.reduce((sum, { turn }) => sum + turn.model_seconds, 0);
    const record = {
      kind: 'agent_invocation',
      invocation_id: id,
      ...(parent === null ? {} : { parent_invocation_id: parent }),
      status: facts.status,
      duration_ms: Math.max(0, (parent === null ? facts.seconds : model) * 1000),
      model_calls: refsOf(invocation),
    };
    yield `${at === 0 ? '' : ','}${jsonText(record).slice(0, -1)},"conversation":[`;
    yield conversations[at] ?? '';
    yield ']}';
  }
  yield '],"model_calls":[';
  for (const { calls, first } of invocations)
    for (const [at, call] of calls.entries())
      yield `${first + at === 0 ? '' : ','}${jsonText(modelCall(first + at, call.turn, call.answer))}`;
  yield `],"tool_calls":${jsonText(invocations.flatMap((one) => one.calls.flatMap((call) => toolCalls(call, one.id))))}}`;
}

/** Yields the turns of an invocation. Returns its whole conversation. */
function* turnPieces(invocation: Invocation, facts: TrajectoryFacts): Generator<string | Buffer, Buffer> {
  const { prompt, calls, id, first } = invocation;
  const refs = refsOf(invocation);
  const all = new JsonList();
  const add = (items: readonly ResponseItem[]): void => {
    for (const item of items) all.push(jsonText(item));
  };
  add(prompt);
  let steps = 0;
  for (const [index, { answer, observations }] of calls.entries()) {
    steps += answer.filter((item) => item.type === 'function_call').length;
    const isLast = id === MAIN && index === calls.length - 1;
    yield `${first + index === 0 ? '' : ','}{"question":[`;
    yield all.bytes;
    const turn = {
      answer,
      invocation_id: id,
      task_id: facts.taskId,
      rollout_id: facts.rolloutId,
      turn_no: index + 1,
      timestamp: facts.finishedAt / 1000,
      step_count: steps,
      model_calls: [refs[index]],
      ...(isLast && facts.resolved !== null ? { resolved: facts.resolved } : {}),
    };
    yield `],${jsonText(turn).slice(1)}`;
    add(answer);
    add(observations);
  }
  return all.bytes;
}

function modelCall(index: number, turn: Turn, answer: readonly ResponseItem[]) {
  const { prompt_tokens = 0, completion_tokens = 0 } = turn.usage ?? {};
  const total_tokens = prompt_tokens + completion_tokens;
  const usage = { input_tokens: prompt_tokens, output_tokens: completion_tokens, total_tokens };
  const status = turn.finish_reason === 'length' ? 'incomplete' : 'completed';
  return {
    model_call_id: `m${index}`,
    duration_ms: Math.max(0, turn.model_seconds * 1000),
    response: { status, output: answer, usage: turn.usage && usage },
    response_metadata: { status_code: 200, finish_reason: turn.finish_reason, response_status: status },
    token_stats: turn.usage ? { prompt_tokens, completion_tokens, total_tokens } : {},
  };
}

function toolCalls({ turn, answer, observations }: Conversation['calls'][number], invocation_id: string) {
  return answer
    .filter((item) => item.type === 'function_call')
    .map((item, index) => ({
      kind: 'tool_call',
      invocation_id,
      tool_call_id: item.call_id,
      tool_name: item.name,
      duration_ms: Math.max(0, (turn.commands[index]?.seconds ?? 0) * 1000),
      status: turn.commands[index]?.note === 'timed_out' ? 'timeout' : 'completed',
      output: observations.find((one) => one.call_id === item.call_id)?.output ?? null,
    }));
}
