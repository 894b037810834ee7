/** A streamed text completion, chunk by chunk, as vLLM and SGLang send it: text, ids and log-probabilities of what is new. */
import { MOST } from '../../records/bounds.ts';
import { growableIds, growableLogProbs } from '../tokens/growable.ts';
import { parseIds, parseLogProbs } from '../tokens/ids.ts';
import { type CompletionReply, missingIdsFailure } from './completion.ts';
import { AnswerError } from './errors.ts';
import {
  type AnswerSink,
  type Chunk,
  choiceOf,
  chunkReader,
  cutShortError,
  requireNoError,
} from './stream.ts';
import { parseUsage } from './usage.ts';

/** Tokens that came of an answer, with their log-probabilities and text; the lists are of one length. */
export type PartialCompletion = { text: string; ids: Int32Array; logProbs: Float32Array };

export type CompletionStream = AnswerSink & {
  /** Tokens that came so far. */
  readonly tokens: number;
  /**
   * What came, up to the last chunk whose text is all that its ids say, when ids and log-probabilities are complete up to there;
   * else null. A server tells ids at once, and holds text back: of a torn character, and of what may begin a text of `stop`.
   */
  part(): PartialCompletion | null;
  /**
   * The answer, when the stream is over.
   *
   * @throws WireFault `cut_short` when it ended before the answer; RolloutFailure `policy_tokens` when it told no ids
   */
  end(): CompletionReply;
};

export function openCompletionStream(): CompletionStream {
  const texts: string[] = [];
  let characters = 0;
  const ids = growableIds();
  const logProbs = growableLogProbs();
  let promptIds: Int32Array | null = null;
  let finish: string | null = null;
  let usage: CompletionReply['usage'] = null;
  /** False once a chunk brought text without its ids. */
  let told = true;
  let scored = true;
  /** Where the text was whole last, by texts and tokens. */
  let whole = { texts: 0, tokens: 0 };

  const onChunk = ({ json, promptIds: found }: Chunk): void => {
    requireNoError(json);
    promptIds ??= found;
    usage = parseUsage(json.usage) ?? usage;
    const choice = choiceOf(json);
    if (choice === null) return;
    if (typeof choice.text !== 'string')
      throw new AnswerError('garbage', 'a chunk of the stream has no text');
    if (choice.text !== '') texts.push(choice.text);
    characters += choice.text.length;
    const more = parseIds(choice.token_ids);
    if (more) ids.push(more);
    else if (choice.text !== '') told = false;
    const { token_logprobs: scores } = (choice.logprobs ?? {}) as { token_logprobs?: unknown };
    const values = parseLogProbs(scores);
    if (values) logProbs.push(values);
    // A chunk of no token may have no list; a list of other than numbers spoils all that follows.
    else if (more?.length || (scores !== undefined && scores !== null)) scored = false;
    if (isWhole(choice.text, more?.length ?? 0, choice.logprobs))
      whole = { texts: texts.length, tokens: ids.length };
    if (typeof choice.finish_reason === 'string') finish = choice.finish_reason;
    if (characters > MOST.textBytes || ids.length > MOST.tokens)
      throw new AnswerError('garbage', 'an answer beyond all bounds');
  };
  const chunks = chunkReader(onChunk);
  return {
    take: chunks.take,
    get done() {
      return chunks.done;
    },
    get finished() {
      return finish !== null;
    },
    get tokens() {
      return ids.length;
    },
    part: () =>
      told && scored && whole.tokens > 0 && ids.length === logProbs.length
        ? {
            text: texts.slice(0, whole.texts).join(''),
            ids: ids.all().slice(0, whole.tokens),
            logProbs: logProbs.all().slice(0, whole.tokens),
          }
        : null,
    end() {
      if (finish === null) throw cutShortError(ids.length);
      if (!told) throw missingIdsFailure();
      return {
        text: texts.join(''),
        finish_reason: finish,
        usage,
        prompt_token_ids: promptIds,
        generation_token_ids: ids.all(),
        generation_log_probs: scored ? logProbs.all() : null,
      };
    },
  };
}

/** Whether a chunk's text goes as far as its ids: it ends as its last token does; where tokens' texts are not told, it has one token. */
function isWhole(text: string, tokens: number, logProbs: unknown): boolean {
  if (text === '' || text.endsWith('\ufffd')) return false;
  const { tokens: words } = (logProbs ?? {}) as { tokens?: unknown };
  const last: unknown = Array.isArray(words) ? words.at(-1) : undefined;
  if (typeof last !== 'string' || last.startsWith('token_id:')) return tokens <= 1;
  return last !== '' && text.endsWith(last);
}
