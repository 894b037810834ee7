/** Decides whether a rollout or one of its replacements (`--again`) counts in exports and reports. */
import type { OutputLine } from './line.ts';

type Run = Pick<OutputLine, 'rollout_id' | 'outcome' | 'replaces'>;

/** The last rollout with a verdict counts, otherwise the last rollout. Call `note` for all lines before `isOutdated`. */
export class Replacements {
  readonly #judged = new Set<string>();
  readonly #later = new Map<string, string[]>();
  readonly #earlier = new Map<string, string>();

  note({ rollout_id: id, outcome, replaces }: Run): void {
    if (outcome === 'judged') this.#judged.add(id);
    if (replaces === undefined || this.#earlier.has(id)) return;
    this.#earlier.set(id, replaces);
    this.#later.set(replaces, [...(this.#later.get(replaces) ?? []), id]);
  }

  /** Returns whether another rollout counts in place of this one. */
  isOutdated(id: string): boolean {
    const later = this.#after(id);
    if (later.some((one) => this.#judged.has(one))) return true;
    return (
      !this.#judged.has(id) && (later.length > 0 || this.#before(id).some((one) => this.#judged.has(one)))
    );
  }

  /** Returns all direct and indirect replacements. */
  #after(id: string): string[] {
    const found = new Set<string>();
    const waiting = [id];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for (const one of this.#later.get(next) ?? []) {
        if (!found.has(one) && one !== id) waiting.push(one);
        found.add(one);
      }
    }
    return [...found];
  }

  #before(id: string): string[] {
    const found = new Set<string>();
    for (
      let next = this.#earlier.get(id);
      next !== undefined && !found.has(next);
      next = this.#earlier.get(next)
    )
      found.add(next);
    return [...found];
  }
}
