/** Determines which weights generated an answer: by the trainer's record, the answer's header, the run's version or the list of models. */
import type { PolicyConfig, PolicyKey, PolicyRecord, Span } from '@swefarm/shared';
import { servedModel } from './servedmodels.ts';
import { openTokenSplit, type TokenSplit } from './tokensplit.ts';
import type { FollowedPolicy } from './watch.ts';

type AnswerHead = { version: string | null; streamed: boolean };
/** `spans` is absent when the endpoint sent no token ids. */
type AnswerVersions = {
  policy_version: { start: string | null; end: string | null };
  spans?: Span[];
};

/** Versions of one turn. The caller reports the begin and the end of each request. */
export type TurnVersions = ReturnType<ReturnType<typeof createVersions>>;

/** Returns a function that begins a turn. */
export function createVersions(
  config: PolicyConfig,
  { followed, apiKey, model }: { followed: FollowedPolicy; apiKey: PolicyKey | null; model: () => string },
) {
  let reported: string | null = null;
  const known = (): string | null => followed.record()?.version ?? reported ?? config.version;
  return () => {
    const parts: Part[] = [];
    /** The trainer's record when the last request was sent. */
    let announced: Announced = null;
    let head: AnswerHead | null = null;
    let split: TokenSplit | null = null;
    const versionsNow = (): StartAndEnd =>
      // If the trainer names a model for its version, the weights stay the same during the whole answer.
      config.name !== null && announced?.model
        ? { start: announced.version, end: announced.version }
        : versionsOf(announced, head, known());
    const partsOfRequest = (tokens: number): Part[] => {
      const isStream = head?.streamed === true;
      return splitParts(versionsNow(), tokens, isStream ? announced : null, split);
    };
    const endSplit = () => split?.[Symbol.dispose]();
    return {
      /** @param generated number of tokens that the request has returned so far */
      onRequest(generated: () => number): void {
        announced = followed.record();
        head = null;
        endSplit();
        split = openTokenSplit(followed, generated);
      },
      /** Returns whether the trainer has announced something since the last request. */
      isOutdated: (): boolean => followed.record()?.changed_at !== announced?.changed_at,
      onHead(latest: AnswerHead): void {
        head = latest;
        if (latest.version !== null) reported = latest.version;
      },
      /** Adds parts that an earlier attempt received to the beginning of the answer. */
      resume: (begun: readonly Part[]) => void parts.push(...begun),
      /** Returns the parts of an incomplete answer with this many tokens. */
      partsOf(tokens: number): Part[] {
        const rest = tokens - parts.reduce((sum, part) => sum + part.tokens, 0);
        return rest > 0 ? [...parts, ...partsOfRequest(rest)] : [...parts];
      },
      /** Reports that the request was interrupted after this many usable tokens. */
      onBroken(tokens: number): void {
        if (tokens > 0) parts.push(...partsOfRequest(tokens));
        endSplit();
      },
      /** Reports that the last request returned this many tokens; null: the endpoint sent no ids. Returns the versions of the answer. */
      async finish(url: string, tokens: number | null): Promise<AnswerVersions> {
        if ((head?.version ?? null) === null && known() === null)
          reported = (await servedModel(url, model(), apiKey)).version;
        endSplit();
        return tokens === null ? { policy_version: versionsNow() } : withSpans(parts, partsOfRequest(tokens));
      },
    };
  };
}

type Announced = Pick<PolicyRecord, 'version' | 'model' | 'changed_at'> | null;
type StartAndEnd = AnswerVersions['policy_version'];

/** The head of a streamed answer arrives when the answer begins, the head of a whole answer when it ends. */
function versionsOf(announced: Announced, head: AnswerHead | null, known: string | null): StartAndEnd {
  const header = head?.version ?? null;
  const end = head?.streamed ? known : (header ?? known);
  const start = announced?.version ?? (head?.streamed ? (header ?? end) : end);
  return { start, end };
}

type Part = StartAndEnd & { tokens: number };

/**
 * Returns the tokens of a request by version. The start and end version of a part differ if the weights changed while its tokens arrived.
 * @param announced the trainer's record when the request was sent; null for an answer without a stream, because only a stream shows how many
 *   tokens had arrived when the trainer announced new weights
 */
function splitParts(
  { start, end }: StartAndEnd,
  tokens: number,
  announced: Announced,
  split: TokenSplit | null,
): Part[] {
  const isSplit = start !== end && tokens > 0 && announced !== null && start === announced.version;
  const spans = isSplit ? split?.spans(tokens, end) : undefined;
  if (!spans) return [{ start, end, tokens }];
  return spans.map(({ version, tokens: count }) =>
    version === null ? { start, end, tokens: count } : { start: version, end: version, tokens: count },
  );
}

function withSpans(interrupted: readonly Part[], last: readonly Part[]): AnswerVersions {
  // If the last request returned no tokens, the answer was complete before that request.
  const isComplete = interrupted.length > 0 && last.every(({ tokens }) => tokens === 0);
  const parts = isComplete ? interrupted : [...interrupted, ...last];
  const policy_version = { start: parts[0]?.start ?? null, end: parts.at(-1)?.end ?? null };
  // The version is null when the weights changed during the request.
  const spans = parts.map(({ start, end, tokens }) => ({ version: start === end ? end : null, tokens }));
  return { policy_version, spans };
}
