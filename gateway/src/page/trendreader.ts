/** Reads the trends of runs in Redis: each result once, however often the page asks. */
import type { Farm } from '@swefarm/shared';
import { Trend } from './trends.ts';

const BATCH = 1000;
/** Runs whose trends stay in memory: some 100 kB each. */
const MOST_RUNS = 200;

type Known = { trend: Trend; cursor: string; reading: Promise<void> };

export class TrendReader {
  readonly #farm: Farm;
  /** The one that was asked for last stands last. */
  readonly #known = new Map<string, Known>();

  constructor(farm: Farm) {
    this.#farm = farm;
  }

  /** The trend of a run with all results so far; it goes on changing. Throws UnusableError of Redis. */
  async of(runId: string): Promise<Trend> {
    const own = this.#known.get(runId) ?? { trend: new Trend(), cursor: '0', reading: Promise.resolve() };
    this.#known.delete(runId);
    this.#known.set(runId, own);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_RUNS && oldest !== undefined) this.#known.delete(oldest);
    // One reading after the other; one that failed keeps what it had, and the next goes on there.
    own.reading = own.reading.catch(() => undefined).then(() => this.#readOn(runId, own));
    await own.reading;
    return own.trend;
  }

  async #readOn(runId: string, own: Known): Promise<void> {
    for (;;) {
      const { results, unreadable, last_id } = await this.#farm.results.read(runId, own.cursor, {
        count: BATCH,
      });
      for (const { result } of results) {
        const { prompt, completion } = result.tokens;
        own.trend.add({ ...result, tokens: prompt + completion, version: result.policy_version });
      }
      for (const { stream_id } of unreadable) {
        own.trend.add({
          ...{ outcome: 'failed', resolved: null, reward: null, turns: 0, tokens: 0, version: null },
          finished_at: Number.parseInt(stream_id, 10),
        });
      }
      own.cursor = last_id;
      if (results.length + unreadable.length < BATCH) return;
    }
  }
}
