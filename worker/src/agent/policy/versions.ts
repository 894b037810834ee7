/** Which weights made an answer: what the trainer says of them, else the header of the answer, else the endpoint's list of models. */
import type { PolicyConfig, PolicyKey, Span } from '@swefarm/shared';
import { servedModel } from './servedmodels.ts';
import type { FollowedPolicy } from './watch.ts';

/** What the trainer said last when a request was sent. */
export type AnnouncedVersion = { changed: number; version: string | null };
type Head = { version: string | null; streamed: boolean };

export type Versions = {
  spoken(): AnnouncedVersion;
  /** Those of one turn. */
  openTurn(): TurnVersions;
};

export type TurnVersions = {
  /** A request is sent. */
  sent(spoken: AnnouncedVersion): void;
  heard(head: Head): void;
  /** It was broken off, and so many tokens of it are kept. */
  broke(tokens: number): void;
  /** It brought the rest, so many tokens; null when it told none. */
  ended(
    url: string,
    tokens: number | null,
  ): Promise<{ policy_version: { start: string | null; end: string | null }; spans?: Span[] }>;
};

export function openVersions(
  config: PolicyConfig,
  { followed, apiKey }: { followed: FollowedPolicy; apiKey: PolicyKey | null },
): Versions {
  let told: string | null = null;
  const known = (): string | null => followed.record()?.version ?? told ?? config.version;
  return {
    spoken: () => ({
      changed: followed.record()?.changed_at ?? 0,
      version: followed.record()?.version ?? null,
    }),
    openTurn() {
      const spans: Span[] = [];
      let at: AnnouncedVersion = { changed: 0, version: null };
      let head: Head | null = null;
      return {
        sent(spoken) {
          at = spoken;
          head = null;
        },
        heard(said) {
          head = said;
          if (said.version !== null) told = said.version;
        },
        broke(tokens) {
          if (tokens > 0) spans.push({ version: at.version ?? head?.version ?? known(), tokens });
        },
        async ended(url, tokens) {
          const header = head?.version ?? null;
          if (header === null && known() === null)
            told = (await servedModel(url, config.model, apiKey)).version;
          // The head of a stream was sent when the answer began, that of a whole answer when it was done.
          const end = head?.streamed ? known() : (header ?? known());
          const start = at.version ?? (head?.streamed ? (header ?? end) : end);
          // What one request brought while the weights changed cannot be told apart.
          // A request that brought none of several says nothing: the answer was whole before it.
          const none = tokens === 0 && spans.length > 0;
          if (tokens !== null && !none) spans.push({ version: start === end ? end : null, tokens });
          const [first, last] = [spans[0], spans.at(-1)];
          const policy_version = {
            start: first && (none || first !== last) ? first.version : start,
            end: last && none ? last.version : end,
          };
          return tokens === null ? { policy_version } : { policy_version, spans };
        },
      };
    },
  };
}
