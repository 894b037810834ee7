/** Reads the trends of runs from Redis. Each result is read only once. */
import type { Farm } from '@swefarm/shared';
import { pageRollout, pageUnreadable } from './records.ts';
import { Trend } from './trends.ts';

const BATCH = 1000;
/** Maximum number of trends in memory; a trend takes some 100 kB. */
const MOST_RUNS = 200;

type Known = { trend: Trend; cursor: string; reading: Promise<void> };

export class TrendReader {
  readonly #farm: Farm;
  /** Trends by run id, ordered by last use. */
  readonly #known = new Map<string, Known>();

  constructor(farm: Farm) {
    this.#farm = farm;
  }

  /** Returns the trend of a run. Later calls update the same object. Throws the UnusableError of Redis. */
  async of(runId: string): Promise<Trend> {
    const own = this.#known.get(runId) ?? { trend: new Trend(), cursor: '0', reading: Promise.resolve() };
    this.#known.delete(runId);
    this.#known.set(runId, own);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_RUNS && oldest !== undefined) this.#known.delete(oldest);
    // Reads of one run do not overlap. After a failed read, the next read continues at the cursor.
    own.reading = own.reading.catch(() => undefined).then(() => this.#readOn(runId, own));
    await own.reading;
    return own.trend;
  }

  async #readOn(runId: string, own: Known): Promise<void> {
    for (;;) {
      const { results, unreadable, last_id } = await this.#farm.results.read(runId, own.cursor, {
        count: BATCH,
      });
      for (const { result } of results) own.trend.add(pageRollout(result, 0));
      for (const entry of unreadable) own.trend.add(pageUnreadable(entry, 0, 0));
      own.cursor = last_id;
      if (results.length + unreadable.length < BATCH) return;
    }
  }
}
