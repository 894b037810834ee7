/** Records events with their times, to find out why a seed failed. */

export type Moment = { seconds: number; what: string };

export type Timeline = {
  note(what: string): void;
  readonly moments: readonly Moment[];
  render(): string;
};

export function startTimeline(onNote: (line: string) => void): Timeline {
  const from = performance.now();
  const moments: Moment[] = [];
  const line = ({ seconds, what }: Moment): string => `${seconds.toFixed(1).padStart(7)} s  ${what}`;
  return {
    moments,
    note(what) {
      const moment = { seconds: (performance.now() - from) / 1000, what };
      moments.push(moment);
      onNote(line(moment));
    },
    render: () => moments.map(line).join('\n'),
  };
}

/** Returns the quantile at `share` (nearest rank); null without values. */
export function quantile(values: readonly number[], share: number): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}
