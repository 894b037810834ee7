/** Writes the output items of a line with their token ids, and the list of the lines beside the main line. */
import { jsonText, ownTurns, type TurnTokens, type WholeLine } from '@swefarm/shared';
import { type LineChoice, lineFacts, sampledTokens } from '../../export/lines.ts';
import { openExpertTable } from './experts.ts';
import { JsonList, type Piece, single } from './json.ts';
import { type Conversation, conversationOf } from './responseitems.ts';

/** Yields the items of a line's own answers, without brackets. The prompts of the answers contain the tokens of the earlier lines. */
export function* outputPieces(
  line: WholeLine,
  conversation: Conversation,
  withExperts: boolean,
): Generator<Piece> {
  const ids = new JsonList();
  const experts = openExpertTable();
  for (const { tokens } of line.turns.slice(0, line.shared.turns)) {
    if (!hasIds(tokens)) continue;
    addIds(ids, tokens);
    if (withExperts) experts.addShared(tokens);
  }
  let first = true;
  for (const { turn, answer, observations } of conversation.calls) {
    for (const [index, item] of [...answer, ...observations].entries()) {
      yield `${first ? '' : ','}${jsonText(item).slice(0, -1)}`;
      first = false;
      // The last item of the model's answer carries the tokens of the whole call.
      if (index === answer.length - 1) {
        if (hasIds(turn.tokens)) yield* tokenPieces(turn.tokens, ids);
        if (turn.tokens && withExperts) yield* experts.add(turn.tokens);
        const version = turn.policy_version.end ?? turn.policy_version.start;
        if (version !== null) yield `,"policy_version":${jsonText(version)}`;
        if (turn.spans && turn.spans.length > 1) yield `,"policy_spans":${jsonText(turn.spans)}`;
      }
      yield '}';
    }
  }
}

const hasIds = (tokens: TurnTokens | null): tokens is TurnTokens =>
  tokens !== null && tokens.generation.length > 0 && tokens.generation.length === tokens.log_probs.length;

function* tokenPieces(tokens: TurnTokens, ids: JsonList): Generator<Piece> {
  const { prefix_length, prompt_suffix, generation } = tokens;
  ids.truncate(prefix_length);
  ids.push(prompt_suffix.join(','), prompt_suffix.length);
  yield ',"prompt_token_ids":[';
  yield ids.bytes;
  const generated = generation.join(',');
  yield `],"generation_token_ids":[${generated}]`;
  yield `,"generation_log_probs":[${Array.from(tokens.log_probs, single).join(',')}]`;
  ids.push(generated, generation.length);
}

function addIds(ids: JsonList, { prefix_length, prompt_suffix, generation }: TurnTokens): void {
  ids.truncate(prefix_length);
  ids.push(prompt_suffix.join(','), prompt_suffix.length);
  ids.push(generation.join(','), generation.length);
}

/**
 * Yields `line_count` (the lines that are trained on), `line_weight` (its reciprocal) and `lines`: the lines beside the main line, of which
 * `choice` decides whether their answers are written. A masked line has no answers.
 */
export function* linePieces(
  lines: readonly WholeLine[],
  choice: LineChoice,
  withExperts: boolean,
): Generator<Piece> {
  const trained = lines.filter(
    (line) => line.masked === null && ownTurns(line).some(({ tokens }) => hasIds(tokens)),
  );
  const count = trained.length;
  yield `,"line_count":${count},"line_weight":${count === 0 ? '0.0' : single(1 / count)},"lines":[`;
  for (const [at, line] of lines.slice(1).entries()) {
    const facts = {
      ...lineFacts(line),
      masked: line.masked,
      turns: ownTurns(line).length,
      generated_tokens: sampledTokens(line),
    };
    yield `${at === 0 ? '' : ','}${jsonText(facts).slice(0, -1)}`;
    if (choice === 'all' && trained.includes(line)) {
      yield ',"output":[';
      yield* outputPieces(line, conversationOf(line), withExperts);
      yield ']';
    }
    yield '}';
  }
  yield ']';
}
