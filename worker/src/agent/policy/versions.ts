/** Which weights made an answer: what the trainer announced, else the header of the answer, else the endpoint's list of models. */
import type { PolicyConfig, PolicyKey, Span } from '@swefarm/shared';
import { servedModel } from './servedmodels.ts';
import type { FollowedPolicy } from './watch.ts';

/** The trainer's last announcement when a request was sent. */
export type AnnouncedVersion = { changed: number; version: string | null };
export type AnswerHead = { version: string | null; streamed: boolean };
/** Spans are absent when the endpoint sent no token ids. */
export type AnswerVersions = {
  policy_version: { start: string | null; end: string | null };
  spans?: Span[];
};

export type Versions = {
  announced(): AnnouncedVersion;
  openTurn(): TurnVersions;
};

/** The versions of one turn: the caller reports its requests as they begin and end. */
export type TurnVersions = {
  onRequest(announced: AnnouncedVersion): void;
  onHead(head: AnswerHead): void;
  /** The request was interrupted, and this many of its tokens are kept. */
  onBroken(tokens: number): void;
  /** The request brought the rest, this many tokens; null when it sent no ids. */
  finish(url: string, tokens: number | null): Promise<AnswerVersions>;
};

export function createVersions(
  config: PolicyConfig,
  { followed, apiKey }: { followed: FollowedPolicy; apiKey: PolicyKey | null },
): Versions {
  /** The version that the endpoint itself reported last. */
  let told: string | null = null;
  const known = (): string | null => followed.record()?.version ?? told ?? config.version;
  const openTurn = (): TurnVersions => {
    const spans: Span[] = [];
    let announced: AnnouncedVersion = { changed: 0, version: null };
    let head: AnswerHead | null = null;
    return {
      onRequest(latest) {
        announced = latest;
        head = null;
      },
      onHead(latest) {
        head = latest;
        if (latest.version !== null) told = latest.version;
      },
      onBroken(tokens) {
        if (tokens > 0) spans.push({ version: announced.version ?? head?.version ?? known(), tokens });
      },
      async finish(url, tokens) {
        if ((head?.version ?? null) === null && known() === null)
          told = (await servedModel(url, config.model, apiKey)).version;
        const last = versionsOf(announced, head, known());
        return tokens === null ? { policy_version: last } : withSpans(spans, last, tokens);
      },
    };
  };
  return {
    announced: () => ({
      changed: followed.record()?.changed_at ?? 0,
      version: followed.record()?.version ?? null,
    }),
    openTurn,
  };
}

type StartAndEnd = AnswerVersions['policy_version'];

/** A stream sends its head when the answer begins; a whole answer sends it at the end. */
function versionsOf(announced: AnnouncedVersion, head: AnswerHead | null, known: string | null): StartAndEnd {
  const header = head?.version ?? null;
  const end = head?.streamed ? known : (header ?? known);
  const start = announced.version ?? (head?.streamed ? (header ?? end) : end);
  return { start, end };
}

/** Adds the tokens of the last request to those of the ones before it. */
function withSpans(spans: Span[], { start, end }: StartAndEnd, tokens: number): AnswerVersions {
  // A last request without tokens adds no version: the answer was complete before it.
  const none = tokens === 0 && spans.length > 0;
  // When the weights changed during one request, its tokens cannot be assigned to either version.
  if (!none) spans.push({ version: start === end ? end : null, tokens });
  const [first, last] = [spans[0], spans.at(-1)];
  const policy_version = {
    start: first && (none || first !== last) ? first.version : start,
    end: last && none ? last.version : end,
  };
  return { policy_version, spans };
}
