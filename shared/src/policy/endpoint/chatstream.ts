/** A streamed chat completion: its deltas put together to the message that the same answer unstreamed would hold. */
import { MOST } from '../../records/bounds.ts';
import { growableIds, growableLogProbs } from '../tokens/growable.ts';
import { parseIds, parseLogProbs } from '../tokens/ids.ts';
import { AnswerError } from './errors.ts';
import { type ModelReply, readMessage, requireFinished } from './reply.ts';
import {
  type AnswerSink,
  type Chunk,
  choiceOf,
  chunkReader,
  cutShortError,
  requireNoError,
} from './stream.ts';
import { parseUsage } from './usage.ts';

export type ChatStream = AnswerSink & {
  /** Tokens that came so far: by their ids, else chunks with text. */
  readonly tokens: number;
  /** The answer, when the stream is over. @throws WireFault as readReply(), and `cut_short` when it ended before the answer */
  end(): ModelReply;
};

type Call = { id: string; name: string; arguments: string };
const MOST_CALLS = 1000;

export function openChatStream(): ChatStream {
  /** Pieces of texts by field, joined at the end; what is no text is the last that came. */
  const texts = new Map<string, string[]>();
  const others = new Map<string, unknown>();
  const lists = new Map<string, unknown[]>();
  const calls = new Map<number, Call>();
  let characters = 0;
  const ids = growableIds();
  const logProbs = growableLogProbs();
  let promptIds: Int32Array | null = null;
  let finish: string | null = null;
  let usage: ModelReply['usage'] = null;
  let chunks = 0;
  let [anyIds, anyScores, scored] = [false, false, true];

  const onTokens = (choice: Record<string, unknown>): void => {
    const more = parseIds(choice.token_ids);
    if (more) ids.push(more);
    anyIds ||= more !== null;
    const { content } = (choice.logprobs ?? {}) as { content?: unknown };
    if (!Array.isArray(content)) return;
    anyScores = true;
    const values = parseLogProbs(content.map((entry: { logprob?: unknown } | null) => entry?.logprob));
    if (values) logProbs.push(values);
    else scored = false;
  };
  const onField = (name: string, value: unknown): void => {
    if (name === 'role' || value === null || value === undefined) return;
    if (name === 'tool_calls') takeCalls(calls, value);
    else if (typeof value === 'string') {
      characters += value.length;
      const pieces = texts.get(name) ?? [];
      pieces.push(value);
      texts.set(name, pieces);
    } else if (Array.isArray(value)) {
      const list = lists.get(name) ?? [];
      for (const item of value as unknown[]) list.push(item);
      lists.set(name, list);
    } else others.set(name, value);
  };
  const reader = chunkReader(({ json, promptIds: found }: Chunk): void => {
    requireNoError(json);
    promptIds ??= found;
    usage = parseUsage(json.usage) ?? usage;
    const choice = choiceOf(json);
    if (choice === null) return;
    onTokens(choice);
    const delta = Object.entries((choice.delta ?? {}) as Record<string, unknown>);
    for (const [name, value] of delta) onField(name, value);
    if (delta.some(([name, value]) => name !== 'role' && value !== '')) chunks++;
    if (typeof choice.finish_reason === 'string') finish = choice.finish_reason;
    if (characters > MOST.textBytes || ids.length > MOST.tokens)
      throw new AnswerError('garbage', 'an answer beyond all bounds');
  });
  return {
    take: reader.take,
    get done() {
      return reader.done;
    },
    get finished() {
      return finish !== null;
    },
    get tokens() {
      return Math.max(ids.length, chunks);
    },
    end() {
      if (finish === null) throw cutShortError(ids.length);
      requireFinished(finish);
      const made = [...calls]
        .sort(([a], [b]) => a - b)
        .map(([, { id, ...called }]) => ({ id, function: called }));
      const fields = [...texts]
        .map(([name, pieces]) => [name, pieces.join('')])
        // The first delta has an empty content; beside calls alone the same answer unstreamed has none.
        .filter(([name, text]) => name !== 'content' || text !== '' || made.length === 0);
      return {
        message: readMessage({ ...Object.fromEntries([...others, ...lists, ...fields]), tool_calls: made }),
        finish_reason: finish,
        usage,
        prompt_token_ids: promptIds,
        generation_token_ids: anyIds ? ids.all() : null,
        generation_log_probs: anyScores && scored ? logProbs.all() : null,
      };
    },
  };
}

/** Calls come in pieces by their index: id and name with the first one, the arguments bit by bit. */
function takeCalls(calls: Map<number, Call>, deltas: unknown): void {
  if (!Array.isArray(deltas)) return;
  for (const [place, delta] of (deltas as Record<string, unknown>[]).entries()) {
    const index = typeof delta?.index === 'number' ? delta.index : place;
    const call = calls.get(index) ?? { id: '', name: '', arguments: '' };
    if (!calls.has(index) && calls.size >= MOST_CALLS)
      throw new AnswerError('garbage', `an answer with over ${MOST_CALLS} tool calls`);
    calls.set(index, call);
    const { name, arguments: args } = (delta?.function ?? {}) as Record<string, unknown>;
    if (typeof delta?.id === 'string' && delta.id !== '') call.id = delta.id;
    // Some servers say the name again with each piece.
    if (typeof name === 'string' && name !== call.name) call.name += name;
    if (typeof args === 'string') call.arguments += args;
    else if (args !== undefined && args !== null) call.arguments = JSON.stringify(args);
  }
}
