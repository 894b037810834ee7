/** Text of a model or a container, with visible control characters and a folded middle, and details that load their content when opened. */
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import { type ReactNode, useState } from 'react';
import { integer } from './format.ts';

type Props = { text: string; lines?: number; className?: string };

/** Maximum number of characters of a line in folded text: longer lines are minified code or base64. */
const LONG = 2_000;

export function Fold({ text, lines = 16, className = '' }: Props) {
  const [open, setOpen] = useState(false);
  const safe = terminalSafe(text).replace(/\n+$/, '');
  const all = safe.split('\n');
  const folds = all.length > lines + 4 || safe.length > lines * LONG;
  if (!folds || open) {
    return (
      <>
        <pre className={className}>{safe}</pre>
        {folds && (
          <button type="button" className="more" onClick={() => setOpen(false)}>
            Fold again
          </button>
        )}
      </>
    );
  }
  const tail = Math.floor(lines / 3);
  const cut = (line: string): string => (line.length > LONG ? `${line.slice(0, LONG)} …` : line);
  const head = all.slice(0, lines - tail).map(cut);
  const rest = all.length > lines ? all.slice(-tail).map(cut) : [];
  const hidden = all.length - head.length - rest.length;
  return (
    <>
      <pre className={`${className} ${rest.length > 0 ? 'above' : ''}`}>{head.join('\n')}</pre>
      <button type="button" className="more" onClick={() => setOpen(true)}>
        {hidden > 0 ? `${integer(hidden)} more lines` : `all ${integer(safe.length)} characters`}
      </button>
      {rest.length > 0 && <pre className={`${className} below`}>{rest.join('\n')}</pre>}
    </>
  );
}

/** Details that are drawn only while they are open, because the content loads data. */
export function OnDemand({ summary, children }: { summary: string; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {open && children}
    </details>
  );
}
