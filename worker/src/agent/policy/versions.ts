/** Determines which weights generated an answer: by the trainer's announcement, the answer's header, or the endpoint's list of models. */
import type { PolicyConfig, PolicyKey, Span } from '@swefarm/shared';
import { servedModel } from './servedmodels.ts';
import type { FollowedPolicy } from './watch.ts';

/** The last announcement of the trainer when a request was sent. */
export type AnnouncedVersion = { changed: number; version: string | null };
export type AnswerHead = { version: string | null; streamed: boolean };
/** `spans` is absent when the endpoint sent no token ids. */
type AnswerVersions = {
  policy_version: { start: string | null; end: string | null };
  spans?: Span[];
};

export type Versions = {
  announced(): AnnouncedVersion;
  openTurn(): TurnVersions;
};

/** Versions of one turn. The caller reports the begin and the end of each request. */
export type TurnVersions = {
  onRequest(announced: AnnouncedVersion): void;
  onHead(head: AnswerHead): void;
  /** Reports that the request was interrupted after this many usable tokens. */
  onBroken(tokens: number): void;
  /** Reports that the last request returned this many tokens; null: the endpoint sent no ids. Returns the versions of the answer. */
  finish(url: string, tokens: number | null): Promise<AnswerVersions>;
};

export function createVersions(
  config: PolicyConfig,
  { followed, apiKey }: { followed: FollowedPolicy; apiKey: PolicyKey | null },
): Versions {
  let reported: string | null = null;
  const known = (): string | null => followed.record()?.version ?? reported ?? config.version;
  const openTurn = (): TurnVersions => {
    const parts: Part[] = [];
    let announced: AnnouncedVersion = { changed: 0, version: null };
    let head: AnswerHead | null = null;
    return {
      onRequest(latest) {
        announced = latest;
        head = null;
      },
      onHead(latest) {
        head = latest;
        if (latest.version !== null) reported = latest.version;
      },
      onBroken(tokens) {
        if (tokens > 0) parts.push({ ...versionsOf(announced, head, known()), tokens });
      },
      async finish(url, tokens) {
        if ((head?.version ?? null) === null && known() === null)
          reported = (await servedModel(url, config.model, apiKey)).version;
        const last = versionsOf(announced, head, known());
        return tokens === null ? { policy_version: last } : withSpans(parts, { ...last, tokens });
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

/** The head of a streamed answer arrives when the answer begins, the head of a whole answer when it ends. */
function versionsOf(announced: AnnouncedVersion, head: AnswerHead | null, known: string | null): StartAndEnd {
  const header = head?.version ?? null;
  const end = head?.streamed ? known : (header ?? known);
  const start = announced.version ?? (head?.streamed ? (header ?? end) : end);
  return { start, end };
}

type Part = StartAndEnd & { tokens: number };

/** The version is null when the weights changed during the request. */
const spanOf = ({ start, end, tokens }: Part): Span => ({ version: start === end ? end : null, tokens });

function withSpans(interrupted: readonly Part[], last: Part): AnswerVersions {
  // If the last request returned no tokens, the answer was complete before that request.
  const parts = last.tokens === 0 && interrupted.length > 0 ? interrupted : [...interrupted, last];
  const [begin = last, end = last] = [parts[0], parts.at(-1)];
  return { policy_version: { start: begin.start, end: end.end }, spans: parts.map(spanOf) };
}
