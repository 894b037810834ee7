/** Renders a summary of an evaluation: the statuses with their counts, and the predictions without a verdict. */
import {
  countStatuses,
  type EvaluationStatus,
  GAP,
  renderTable,
  STATUS_MEANINGS,
  safeFirstLine,
} from '@swefarm/trajectories';

export type EvaluationEnd = {
  instance_id: string;
  round: number;
  end: EvaluationStatus;
  message: string | null;
};

const SHOWN = 20;
const WITHOUT_DETAIL = new Set(['resolved', 'unresolved', 'scored', 'earlier', 'empty_patch']);

export function renderStatuses(ended: readonly EvaluationEnd[], width: number): string {
  const counts = countStatuses(ended.map(({ end }) => end));
  const names = Math.max(4, ...counts.map(([end]) => end.length)) + GAP;
  const rest = Math.max(20, Math.min(width, 140) - names - 'count'.length - GAP - 1);
  const table = renderTable(
    [
      { name: 'end', width: names },
      { name: 'count', width: 'count'.length + GAP, align: 'right' },
      { name: 'meaning', width: rest },
    ],
    counts.map(([end, count]) => [end, String(count), STATUS_MEANINGS[end] ?? '']),
  );
  return [table, ...named(ended)].join('\n');
}

function named(ended: readonly EvaluationEnd[]): string[] {
  const unjudged = ended.filter(({ end }) => !WITHOUT_DETAIL.has(end));
  const lines = unjudged.slice(0, SHOWN).map(({ instance_id, round, end, message }) => {
    const which = round === 0 ? instance_id : `${instance_id} (evaluation ${round + 1})`;
    const detail = message === null ? '' : `: ${safeFirstLine(message)}`;
    return `${end}: ${which}${detail}`;
  });
  return unjudged.length > SHOWN ? [...lines, `… and ${unjudged.length - SHOWN} more`] : lines;
}
