/** From a held call to what stands in its answer: the result of its rollout, or what its caller takes in place of one. */
import {
  type ArtifactContent,
  decodeArtifact,
  errorMessage,
  type Result,
  SwefarmError,
} from '@swefarm/shared';
import { hasTrainedTurn, type Unjudged } from '../../formats/gym/answer.ts';
import { type Cause, causeOf } from '../../formats/gym/cause.ts';
import type { RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import type { Hold } from './callconnection.ts';
import type { CallDesk, Found } from './calltracker.ts';
import { type CallEnding, CONSEQUENCES, type Mode, toldOf, trains } from './failuremode.ts';
import { createResultReaders } from './resultreaders.ts';

export type Served = {
  result: Result;
  content: ArtifactContent | null;
  /** Why it is no verdict, and how the answer shows that; null: it is one. */
  cause: Cause | null;
  unjudged: Unjudged | null;
  found: Found;
};

/** How the caller of this row takes what is no verdict. */
export type Terms = { mode: Mode; honoursMask: boolean };

export type Outcomes = {
  /**
   * A result, or what stands in its place for this caller, and a writer's slot with it.
   *
   * @throws Unserved, what `hold.gone` aborts with, errors of Redis
   */
  of(found: Found, terms: Terms, hold: Hold, takeSlot: () => Promise<() => void>): Promise<Served>;
};

/** Between a failed rollout and its successor, when a call is held on. */
const RETRY_MS = { first: 5_000, longest: 60_000 };

/** How often an artifact is read, with so long between. */
const READS = 3;
const READ_AGAIN_MS = 300;

const MASKS =
  'a caller whose trainer leaves masked samples out gets it masked: mask_sample: honoured in its entry, or gateway_mask_sample';

/** Told as 503 or 422, or as the failure of an episode. */
export class Unserved extends Refusal {
  readonly kept: Cause;

  constructor(kept: Cause, mode: Mode) {
    const status = kept.kind === 'passing' ? 503 : 422;
    const hint = kept.kind === 'withheld' ? `; ${MASKS}` : '';
    super(status, kept.class, `${kept.class}: ${kept.message}; ${CONSEQUENCES[mode]}${hint}`);
    this.kept = kept;
  }
}

export function createOutcomes(deps: RouteDeps, desk: CallDesk): Outcomes {
  const { farm, log, signal } = deps;
  const results = createResultReaders(farm, log, signal);

  return {
    async of(first, terms, hold, takeSlot) {
      let found = first;
      let pause = RETRY_MS.first;
      for (let rollouts = 1; ; rollouts++) {
        const ended = await resultOf(found, hold, terms.mode);
        const given =
          'cause' in ended
            ? ended
            : await served(ended.result, found, { ...terms, rollouts, hold }, takeSlot);
        if ('found' in given) return given;
        const { cause, told } = given;
        if (told !== 'again' || hold.until - Date.now() - pause <= 0) throw new Unserved(cause, terms.mode);
        const said = { rollout_id: found.rolloutId, cause: cause.class };
        log.info(said, 'held on: another rollout takes its place');
        await hold.sleep(pause);
        pause = Math.min(pause * 2, RETRY_MS.longest);
        const next = await desk.retry(found);
        if (!next) throw new Unserved(cause, terms.mode);
        found = next;
      }
    },
  };

  /** What is answered of a result, holding a writer's slot; else why it is no answer for this caller. */
  async function served(
    result: Result,
    found: Found,
    { mode, honoursMask, rollouts, hold }: Terms & { rollouts: number; hold: Hold },
    takeSlot: () => Promise<() => void>,
  ): Promise<Served | { cause: Cause; told: CallEnding }> {
    const release = await takeSlot();
    const content = await contentOf(result, hold);
    const own = causeOf(result);
    // Only what would have been answered with what was said needs it.
    const needed = own === null || toldOf(own, mode, { maskable: honoursMask, rollouts }) === 'masked';
    const lost = needed && content === null && result.artifact !== null && isTrained(mode, found);
    const cause = lost ? UNREADABLE : (own ?? unfit(result, content, mode, found));
    if (cause === null) return { result, content, cause, unjudged: null, found };
    const told = toldOf(cause, mode, { maskable: honoursMask && hasTrainedTurn(content), rollouts });
    if (told === 'failure' || told === 'masked') {
      return { result, content, cause, unjudged: { ...cause, shown: told }, found };
    }
    release();
    return { cause, told };
  }

  /** `cause`: there is a result, and nobody here can read it. */
  async function resultOf(
    found: Found,
    hold: Hold,
    mode: Mode,
  ): Promise<{ result: Result } | { cause: Cause; told: CallEnding }> {
    const late = AbortSignal.timeout(Math.max(1, hold.until - Date.now()));
    try {
      const until = AbortSignal.any([hold.gone, late]);
      return { result: await results.wait(found.run.run_id, found.rolloutId, until) };
    } catch (error) {
      if (error instanceof SwefarmError && error.code === 'result_unreadable') {
        const cause: Cause = { class: error.code, message: error.message, kind: 'passing' };
        return { cause, told: toldOf(cause, mode, { maskable: false, rollouts: 1 }) };
      }
      if (!late.aborted || hold.gone.aborted) throw error;
      await farm.cancel.cancelRollouts([found.rolloutId], 'deadline');
      const { seconds, field } = hold.limit;
      const message = `no verdict within ${seconds} s (${field}); the rollout is cancelled`;
      throw new Unserved({ class: 'hold_expired', message, kind: 'passing' }, mode);
    }
  }

  /** A store may fail once: what was judged is not played again for that. */
  async function contentOf(result: Result, hold: Hold): Promise<ArtifactContent | null> {
    if (result.artifact === null) return null;
    for (let reads = 1; ; reads++) {
      try {
        return await decodeArtifact(await farm.artifacts.get(result.artifact));
      } catch (error) {
        const said = { rollout_id: result.rollout_id, reads, err: errorMessage(error) };
        log.warn(said, 'the artifact cannot be read');
        if (reads === READS) return null;
        await hold.sleep(READ_AGAIN_MS);
      }
    }
  }
}

/** There is a sample perhaps, and nobody here can read it now. */
const UNREADABLE: Cause = {
  class: 'artifact_unreadable',
  message: 'it was played, but its trajectory cannot be read',
  kind: 'passing',
};

const isTrained = (mode: Mode, found: Found): boolean => trains(mode) && found.run.policy !== null;

/** Judged, but no sample that a trainer could take: with a policy there must be tokens of it. */
function unfit(result: Result, content: ArtifactContent | null, mode: Mode, found: Found): Cause | null {
  if (!isTrained(mode, found) || hasTrainedTurn(content)) return null;
  return {
    class: 'no_trained_turn',
    message: `judged after ${result.turns} turns, but none has token ids`,
    kind: 'broken',
  };
}
