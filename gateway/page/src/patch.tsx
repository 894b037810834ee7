/** Shows a patch file by file, beside the golden patch or the patch of another rollout. */
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import { Fragment, useMemo, useState } from 'react';
import { integer } from './format.ts';

type DiffFile = { path: string; head: string[]; hunks: string[] };

/** Classes of the lines of a hunk by their first character. Other lines of a hunk, and the lines of the head, are dim. */
const CLASSES: Record<string, string> = { '+': 'added', '-': 'removed', ' ': '', '': '' };

const linesOf = (part: string): string[] => (part === '' ? [] : part.replace(/\n$/, '').split('\n'));

/**
 * Returns the files of a patch. A file begins with `diff --git`, or with `---` before `+++` in a patch without `diff --git`. Every line
 * is in a file, even if the text is no diff.
 */
function parseDiff(patch: string | null): DiffFile[] {
  const text = terminalSafe(patch ?? '').replace(/\n$/, '');
  if (text === '') return [];
  const begin = /^diff --git /m.test(text) ? /^(?=diff --git )/m : /^(?=--- .*\n\+\+\+ )/m;
  return text.split(begin).map((file) => {
    const [head = '', ...hunks] = file.split(/^(?=@@ -)/m);
    const [, path = ''] =
      /^diff --git a\/.+ b\/(.+)$/m.exec(head) ?? /^\+\+\+ (?:b\/)?([^\t\n]+)/m.exec(head) ?? [];
    return { path, head: linesOf(head), hunks: hunks.flatMap(linesOf) };
  });
}

/** Pairs the files of two patches by path. Files that are in both patches come first. */
function pairFiles(
  own: readonly DiffFile[],
  other: readonly DiffFile[],
): [string, DiffFile | undefined, DiffFile | undefined][] {
  const find = (files: readonly DiffFile[], path: string) => files.find((file) => file.path === path);
  const isIn = (path: string): number => Number(Boolean(find(own, path) && find(other, path)));
  return [...new Set([...own, ...other].map(({ path }) => path))]
    .sort((a, b) => isIn(b) - isIn(a))
    .map((path) => [path, find(own, path), find(other, path)]);
}

type Side = { name: string; patch: string | null; none: string };

export function Patches({ left, right }: { left: Side; right: Side | null }) {
  const pairs = useMemo(
    () => pairFiles(parseDiff(left.patch), parseDiff(right?.patch ?? null)),
    [left.patch, right?.patch],
  );
  return (
    <div className={right === null ? '' : 'pair'}>
      <h3>{left.name}</h3>
      {right && <h3>{right.name}</h3>}
      {pairs.length === 0 && (
        <>
          <p className="notice dim">{left.none}</p>
          {right && <p className="notice dim">{right.none}</p>}
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

const MOST_LINES = 400;

function File({ path, file }: { path: string; file: DiffFile | undefined }) {
  const [all, setAll] = useState(false);
  if (!file) {
    return (
      <p className="notice dim">
        <span className="mono">{path}</span> is not touched
      </p>
    );
  }
  const { head, hunks } = file;
  const lines = [
    ...head.map((text) => ['dim', text]),
    ...hunks.map((text) => [CLASSES[text.charAt(0)] ?? 'dim', text]),
  ];
  const shown = all ? lines : lines.slice(0, MOST_LINES);
  const count = (sign: string): string => integer(hunks.filter((text) => text.startsWith(sign)).length);
  return (
    <figure className="file">
      <figcaption>
        <span className="mono cut" title={path}>
          {path || 'patch'}
        </span>
        <span className="state resolved">+{count('+')}</span>{' '}
        <span className="state unresolved">−{count('-')}</span>
      </figcaption>
      <pre className="diff">
        {shown.map(([className, text], at) => (
          <span key={at} className={className}>
            {text}
            {'\n'}
          </span>
        ))}
      </pre>
      {shown.length < lines.length && (
        <button type="button" className="more" onClick={() => setAll(true)}>
          {integer(lines.length - shown.length)} more lines
        </button>
      )}
    </figure>
  );
}
