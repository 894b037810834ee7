/** Interface of import formats, and functions that several formats use. */
import type { ExitStatus, Message, RewardFacts, Trajectory } from '@swefarm/shared';
import type { CarriedRollout, CarriedTurn } from './carried.ts';
import { commandOf, conversationOf, type Step } from './conversation.ts';

export type ImportedRollout = {
  /** Source file, and the line if the file has several rollouts. */
  where: string;
  instance_id: string;
  model: string | null;
  patch: string | null;
  /** The trajectory; null: the source has only a patch. */
  trajectory: Trajectory | null;
  /** Verdict in the file; null: none. */
  resolved: boolean | null;
  /** Cost in US dollars; absent or 0: unknown. */
  cost?: number | null;
  /** Facts of the evaluation that the source states. */
  states?: Pick<RewardFacts, 'patch_state' | 'evaluation'>;
  /** Facts that swefarm exported; null: another program wrote the file. */
  carried: CarriedRollout | null;
};

export type ImportProblem = { where: string; problem: string };

export type ImportFormat = {
  description: string;
  /** Reads all rollouts at `path`. Throws UsageError if the path cannot be read. */
  read(path: string): AsyncGenerator<ImportedRollout | ImportProblem>;
};

/** Returns the text of a message: a string, or text parts that are joined; null for no content. Throws TypeError for other parts. */
export function textOf(content: unknown): string | null {
  if (content === null || content === undefined) return null;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw new TypeError('a message whose content is no text');
  return content
    .map((part: { type?: unknown; text?: unknown }) => {
      if (typeof part.text === 'string') return part.text;
      throw new TypeError(`a message with a part of type ${String(part.type)}, which is no text`);
    })
    .join('');
}

/** Returns a chat message without program-specific fields. Throws TypeError for a value that is not a chat message. */
export function messageOf(raw: Readonly<Record<string, unknown>>): Message {
  const { role, tool_calls, tool_call_id, reasoning_content } = raw;
  if (role !== 'system' && role !== 'user' && role !== 'assistant' && role !== 'tool') {
    throw new TypeError(`a message of the role ${JSON.stringify(role ?? null)}; only chat messages are read`);
  }
  const calls = Array.isArray(tool_calls) ? tool_calls.map(toolCallOf) : [];
  return {
    role,
    content: textOf(raw.content),
    ...(typeof reasoning_content === 'string' ? { reasoning_content } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(typeof tool_call_id === 'string' ? { tool_call_id } : {}),
  };
}

type ToolCall = NonNullable<Message['tool_calls']>[number];

function toolCallOf(raw: { id?: unknown; function?: { name?: unknown; arguments?: unknown } }): ToolCall {
  const { name, arguments: given } = raw.function ?? {};
  if (typeof name !== 'string') throw new TypeError('a tool call without a name');
  const text = typeof given === 'string' ? given : JSON.stringify(given ?? {});
  return {
    id: typeof raw.id === 'string' ? raw.id : '',
    type: 'function',
    function: { name, arguments: text },
  };
}

/** A rollout in the form of a chat. `trajectory` and `resolved` follow from the other fields. */
type ImportedChat = Omit<ImportedRollout, 'trajectory' | 'resolved'> & {
  messages: Message[];
  exitStatus: ExitStatus | null;
  tools?: Trajectory['tools'];
  /** Returns the value of the field `swefarm` of an answer, by the index of the answer. */
  carriedTurn(answer: number): unknown;
};

/** Builds a rollout. An answer without a turn that swefarm exported gets a turn that is made from the message. */
export function importedChat({
  messages,
  exitStatus,
  tools,
  carriedTurn,
  ...rest
}: ImportedChat): ImportedRollout {
  const { model, carried } = rest;
  const known = carried?.trajectory;
  const shown = known?.tools ?? tools;
  const { steps } = conversationOf({ messages, turns: [] });
  const trajectory: Trajectory = {
    format: 'swefarm-trajectory-1',
    token_mode: 'text',
    model,
    endpoint: known?.endpoint ?? null,
    ...(known?.sampling === undefined ? {} : { sampling: known.sampling }),
    ...(shown === undefined ? {} : { tools: shown }),
    messages,
    turns: steps.map((step, answer) => {
      const turn = (carriedTurn(answer) as CarriedTurn | undefined) ?? turnOf(step);
      return { ...turn, message: step.at, tokens: null };
    }),
    exit_status: known ? known.exit_status : exitStatus,
    ...(known?.limit === undefined ? {} : { limit: known.limit }),
  };
  return { ...rest, trajectory, resolved: carried?.resolved ?? null };
}

/** Makes the turn of an answer. Reads exit codes from observations in the form of the prompts of mini-swe-agent and swefarm. */
const turnOf = ({ calls, observations }: Step): CarriedTurn => ({
  finish_reason: null,
  model_seconds: 0,
  usage: null,
  policy_version: { start: null, end: null },
  commands: calls.flatMap((call, at) => {
    const command = commandOf(call);
    if (command === null) return [];
    const seen = observations[at]?.content ?? '';
    const code = /<returncode>(-?\d+)<\/returncode>/.exec(seen)?.[1];
    const exit_code = code === undefined ? null : Number(code);
    return [{ command, exit_code, seconds: 0, output_bytes: Buffer.byteLength(seen), note: null }];
  }),
});

/** Returns the exit status whose name in another program is `word`; null if no status has that name. */
export function exitStatusOf(word: unknown, words: Readonly<Record<ExitStatus, string>>): ExitStatus | null {
  const found = Object.entries(words).find(([, own]) => own === word);
  if (found) return found[0] as ExitStatus;
  // SWE-agent writes `submitted (exit_cost)` when it submits because of a limit.
  return typeof word === 'string' && /^submitted\b/i.test(word) ? 'submitted' : null;
}
