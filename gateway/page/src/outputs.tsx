/** Files that an agent that comes as a program printed and wrote, to download. */
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import { useState } from 'react';
import type { PageDetail, PageOutput } from '../../src/page/data.ts';
import { get, rolloutPath } from './api.ts';
import { bytes } from './format.ts';
import { Notice } from './notice.tsx';

export function Outputs({ id, outputs }: { id: string; outputs: PageDetail['outputs'] }) {
  const [error, setError] = useState<Error | null>(null);
  if (outputs.length === 0) return null;
  return (
    <section aria-label="Outputs of the agent">
      <h2>Outputs of the agent</h2>
      <ul>
        {outputs.map(({ name, stored, bytes: size }) => (
          <li key={name}>
            <button type="button" className="link" onClick={() => void download(id, name).catch(setError)}>
              {terminalSafe(name)}
            </button>{' '}
            <span className="dim">
              {bytes(stored)}
              {size > stored && ` of ${bytes(size)}`}
            </span>
          </li>
        ))}
      </ul>
      {error && <Notice error={error} />}
    </section>
  );
}

/** Saves an output as a file. The request needs the token of the tab, so a link to the server would not do. */
async function download(id: string, name: string): Promise<void> {
  const path = `${rolloutPath(id)}/outputs/${encodeURIComponent(name)}`;
  const { output } = await get<PageOutput>(path);
  if (!output) throw new Error(`${name}: not stored`);
  const parts =
    output.base64 === null
      ? [output.text ?? '']
      : [Uint8Array.from(atob(output.base64), (byte) => byte.charCodeAt(0))];
  // Never a type that the browser would show or run.
  const url = URL.createObjectURL(new Blob(parts, { type: 'application/octet-stream' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}
