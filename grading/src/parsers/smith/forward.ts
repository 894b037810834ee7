/**
 * Returns a function that finds the next match from a position on. It caches the match, so that one pass over a log stays linear.
 * Positions must not decrease; `pattern` needs the flag g.
 */
export function forward(text: string, pattern: RegExp): (from: number) => RegExpExecArray | null {
  let hit: RegExpExecArray | null = null;
  let searched = -1;
  return (from) => {
    if (searched < 0 || (hit !== null && hit.index < from)) {
      pattern.lastIndex = from;
      hit = pattern.exec(text);
      searched = from;
    }
    return hit;
  };
}
