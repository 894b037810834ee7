/**
 * Returns a function that finds the next match at or after a position. The function caches the match, so a pass over a log is linear.
 * Positions must not decrease, and `pattern` must have the flag `g`.
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
