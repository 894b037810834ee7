/** Shows a patch file by file, beside the golden patch or the patch of another rollout. */
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import { Fragment, useMemo, useState } from 'react';
import { type DiffFile, pairFiles, parseDiff } from './diff.ts';
import { integer } from './format.ts';

type Side = { name: string; patch: string | null; none: string };

export function Patches({ left, right }: { left: Side; right: Side | null }) {
  const pairs = useMemo(
    () => pairFiles(parse(left.patch), parse(right?.patch ?? null)),
    [left.patch, right?.patch],
  );
  const columns = right === null ? 'patches one' : 'patches';
  return (
    <div className={columns}>
      <h4>{left.name}</h4>
      {right && <h4>{right.name}</h4>}
      {pairs.length === 0 && (
        <>
          <p className="empty">{left.none}</p>
          {right && <p className="empty">{right.none}</p>}
        </>
      )}
      {pairs.map(([path, own, other]) => (
        <Fragment key={path}>
          <File path={path} file={own} />
          {right && <File path={path} file={other} />}
        </Fragment>
      ))}
    </div>
  );
}

const parse = (patch: string | null): DiffFile[] => (patch ? parseDiff(terminalSafe(patch)) : []);

const MOST_LINES = 400;

function File({ path, file }: { path: string; file: DiffFile | undefined }) {
  const [all, setAll] = useState(false);
  if (!file) {
    return (
      <div className="file none">
        <p className="dim">
          <span className="mono">{path}</span> is not touched
        </p>
      </div>
    );
  }
  const lines = all ? file.lines : file.lines.slice(0, MOST_LINES);
  return (
    <figure className="file">
      <figcaption>
        <span className="mono cut" title={path}>
          {path || 'patch'}
        </span>
        <span className="plus">+{integer(file.added)}</span>{' '}
        <span className="minus">−{integer(file.removed)}</span>
      </figcaption>
      <pre className="diff">
        {lines.map(({ kind, text }, at) => (
          <span key={at} className={kind}>
            {text}
            {'\n'}
          </span>
        ))}
      </pre>
      {lines.length < file.lines.length && (
        <button type="button" className="more" onClick={() => setAll(true)}>
          {integer(file.lines.length - lines.length)} more lines
        </button>
      )}
    </figure>
  );
}
